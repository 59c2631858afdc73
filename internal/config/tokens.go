// This file reads the secrets of a source, and how they are exchanged for tokens.

package config

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/suggest"
	"understudy/spec"
	"understudy/upstream/tokens"
)

// tokenConfig says how a source's secret is exchanged for a short-lived token.
type tokenConfig struct {
	Kind         string    `yaml:"kind"`
	URL          string    `yaml:"url"`
	Client       string    `yaml:"client"`
	Secret       SecretRef `yaml:"secret"`
	Scope        string    `yaml:"scope"`
	Installation string    `yaml:"installation"`
}

// maxPool is the maximum number of secrets of a source in addition to the first.
const maxPool = 63

// ReadSecrets returns the secrets of a source, the main secret first. Errors name the setting.
func (s *Source) ReadSecrets(ctx context.Context, sp *spec.Spec, read Secrets) ([]understudy.Secret, error) {
	read = s.checkCarried(sp, read)
	first, err := read(ctx, s.Secret)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	all := []understudy.Secret{first}
	for i, setting := range s.Pool {
		secret, err := read(ctx, setting)
		if err != nil {
			return nil, fmt.Errorf("pool[%d]: %w", i, err)
		}
		if slices.ContainsFunc(all, func(other understudy.Secret) bool { return !secret.IsEmpty() && other.Equal(secret.Reveal()) }) {
			return nil, fmt.Errorf("pool[%d]: this secret appears twice; its limit counts once", i)
		}
		all = append(all, secret)
	}
	return all, nil
}

// checkCarried returns a reader that refuses a secret if the requests of the spec cannot carry it.
func (s *Source) checkCarried(sp *spec.Spec, read Secrets) Secrets {
	return func(ctx context.Context, ref SecretRef) (understudy.Secret, error) {
		secret, err := read(ctx, ref)
		schemes, _ := sp.Auth.ParseSent() // an error is impossible, because the spec was compiled before
		for _, scheme := range schemes {
			if err == nil && s.Token.Kind == "" && !secret.IsEmpty() && !scheme.CanCarry(secret.Reveal()) {
				return secret, fmt.Errorf("%s: the secret begins or ends with a blank, which HTTP removes; remove the blank", ref)
			}
		}
		return secret, err
	}
}

// checkTokens returns an error if the settings pool and token cannot work for a source with that spec.
func (s *Source) checkTokens(sp *spec.Spec) error {
	t := &s.Token
	switch {
	case len(s.Pool) > maxPool:
		return fmt.Errorf("pool: %d secrets, at most %d", len(s.Pool), maxPool)
	case t.Kind == "" && *t != tokenConfig{}:
		return fmt.Errorf("token.kind is missing; write one of %s", strings.Join(tokens.Kinds, ", "))
	case t.Kind == "":
		return nil
	case sp.Auth.Style == "none":
		return fmt.Errorf("token: spec %s sends no credential", sp.Name)
	case !slices.Contains(tokens.Kinds, t.Kind):
		return fmt.Errorf("token.kind: %q is not known; write one of %s%s", t.Kind, strings.Join(tokens.Kinds, ", "), suggest.Hint(t.Kind,
			tokens.Kinds))
	case t.Secret != "" && t.Kind != tokens.RefreshToken:
		return fmt.Errorf("token.secret: it is for %s; elsewhere the source's secret is the client's", tokens.RefreshToken)
	case (t.Installation != "") != (t.Kind == tokens.AppInstallation):
		return fmt.Errorf("token.installation: %s needs it, and no other kind has it", tokens.AppInstallation)
	}
	_, err := tokens.New(s.tokenOptions("", sp, noKV{}))
	if err != nil {
		return fmt.Errorf("token.%w", err)
	}
	return nil
}

// noKV is the KV store for checks, which exchange no token.
type noKV struct{ understudy.KV }

func (s *Source) tokenOptions(name string, sp *spec.Spec, kv understudy.KV) tokens.Options {
	t := &s.Token
	o := tokens.Options{Kind: t.Kind, Source: name, URL: t.URL, Client: cmp.Or(t.Client, s.Login, s.User), Scope: t.Scope, KV: kv}
	if t.Kind == tokens.AppInstallation && o.URL == "" {
		base := strings.TrimSuffix(cmp.Or(s.Upstream, sp.Hosts[0].URL), "/")
		o.URL = base + "/app/installations/" + url.PathEscape(t.Installation) + "/access_tokens"
	}
	return o
}

// NewIssuer returns the issuer that exchanges a source's secrets for tokens, or nil if the secrets themselves are sent.
func (s *Source) NewIssuer(ctx context.Context, src *spec.Source, read Secrets, kv understudy.KV) (*tokens.Issuer, error) {
	if s.Token.Kind == "" {
		return nil, nil
	}
	o := s.tokenOptions(src.Name, src.Spec, kv)
	if s.Token.Secret != "" {
		var err error
		if o.Secret, err = read(ctx, s.Token.Secret); err != nil {
			return nil, fmt.Errorf("token.secret: %w", err)
		}
	}
	return tokens.New(o)
}
