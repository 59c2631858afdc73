// This file contains the settings of the forward proxy, for clients that keep using the upstream's addresses and
// credential.

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"understudy"
	"understudy/internal/callers"
	"understudy/internal/connect"
	"understudy/kit/suggest"
	"understudy/spec"
)

// connectConfig says at which address clients reach the forward proxy, and what callers with a source's own
// credential may do there.
type connectConfig struct {
	Listen       string   `yaml:"listen"`
	Role         string   `yaml:"role"`
	Allow        []string `yaml:"allow"`
	Sources      []string `yaml:"sources"`
	Tunnel       []string `yaml:"tunnel"`
	Tunnels      int      `yaml:"tunnels"`
	AllowPrivate bool     `yaml:"allow_private"`
}

// connectName is the name of callers that send a source's own credential.
const connectName = "connect"

// ListenConnect sets the address of the forward proxy. It returns an error if the settings are then invalid.
func ListenConnect(c *Settings, address string) error {
	if c.Connect == nil {
		c.Connect = &connectConfig{}
	}
	c.Connect.Listen = address
	c.setDefaults()
	return errors.Join(c.Connect.check(c)...)
}

// Serves returns the sources that the forward proxy serves.
func (o *connectConfig) Serves(all []*spec.Source) (out []*spec.Source) {
	for _, src := range all {
		if o != nil && (len(o.Sources) == 0 || slices.Contains(o.Sources, src.Name)) {
			out = append(out, src)
		}
	}
	return out
}

// check returns what is wrong with the settings of the forward proxy.
func (o *connectConfig) check(c *Settings) (errs []error) {
	if o == nil {
		return nil
	}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("connect."+format, args...)) }
	if err := CheckAddress(o.Listen); err != nil {
		bad("listen: %w", err)
	}
	if err := c.checkRole(o.Role); err != nil {
		bad("role: %w", err)
	}
	for _, text := range o.Allow {
		if _, err := parseAllow(text); err != nil {
			bad("allow: %w", err)
		}
	}
	for _, name := range o.Sources {
		if c.Sources[name] == nil {
			bad("sources: %q is not configured%s", understudy.Clip(name), suggest.Hint(understudy.Clip(name), slices.Sorted(maps.Keys(c.Sources))))
		}
	}
	for _, text := range o.Tunnel {
		if err := connect.CheckTunnel(text); err != nil {
			bad("tunnel: %w", err)
		}
	}
	switch {
	case len(o.Tunnel) > 0 && openToNetwork(o.Listen):
		bad("tunnel: %s is open to the network, which could send through it; listen on 127.0.0.1, or leave tunnel out", o.Listen)
	case c.Sources[connectName] != nil:
		bad("listen: a source is called %s, as the proxy is; give it another name", connectName)
	case c.isCredential(connectName):
		bad("role: a credential is called %s, as callers of the proxy are; give it another name", connectName)
	}
	return errs
}

// ReadCredentials returns credentials for callers that send a source's own secret. A source has such a credential
// if its secret is sent unchanged.
func (o *connectConfig) ReadCredentials(ctx context.Context, c *Settings, sources []*spec.Source, secrets Secrets,
	by string) ([]callers.Credential, error) {
	if o == nil {
		return nil, nil
	}
	grant := understudy.Grant{Role: o.Role, IssuedBy: by}
	for _, text := range o.Allow {
		allow, err := parseAllow(text)
		if err != nil {
			return nil, fmt.Errorf("connect.allow: %w", err)
		}
		grant.Allow = append(grant.Allow, allow)
	}
	var out []callers.Credential
	for _, src := range o.Serves(sources) {
		s := c.Sources[src.Name]
		if src.Spec.Auth.Style == "none" || s.Token.Kind != "" {
			continue
		}
		all, err := s.ReadSecrets(ctx, src.Spec, secrets)
		if err != nil {
			return nil, fmt.Errorf("sources.%s.%w", src.Name, err)
		}
		for _, secret := range all {
			out = append(out, callers.Credential{Name: connectName, Source: src.Name, User: cmp.Or(s.Login, s.User, connectName), Secret: secret,
				Grant: grant, YieldsToOther: true})
		}
	}
	return out, nil
}

// checkOrigins returns an error if two sources have the same host, because a request inside a tunnel names only a host.
func (o *connectConfig) checkOrigins(c *Settings, sources []*spec.Source) error {
	if o == nil {
		return nil
	}
	by := map[string]string{}
	for _, src := range o.Serves(sources) {
		for _, at := range connect.Origins(src.Spec, c.Sources[src.Name].Upstream) {
			if other := by[at.Host]; other != "" {
				return fmt.Errorf("connect.sources: %s and %s are both at %s, and a caller in a tunnel names a host alone; name one of them",
					other, src.Name, at.Host)
			}
			by[at.Host] = src.Name
		}
	}
	if len(by) == 0 {
		return fmt.Errorf("connect.sources: none has an upstream with https and a name")
	}
	return nil
}
