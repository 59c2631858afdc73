// This file reads what a credential may do, for a credential in the settings or created at run time.

package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/callers"
	"understudy/internal/credentials"
	"understudy/kit/suggest"
)

func (cred *credentialConfig) scope() credentials.Scope {
	s := credentials.Scope{Source: cred.Source, Role: cred.Role, Allow: cred.Allow, Rate: cred.Rate, Addresses: cred.From}
	if at := time.Time(cred.Expires); !at.IsZero() {
		s.Expires = &at
	}
	if cred.Per > 0 {
		s.Per = shortDuration(cred.Per.Std())
	}
	if cred.MaxStale != nil {
		s.MaxStale = cred.MaxStale.Std().String()
	}
	return s
}

// serviceOf returns the service that allow names: understudy.ServiceJobs, understudy.ServiceMetrics, or "" for none.
func serviceOf(allow []string) string {
	for _, name := range []string{understudy.ServiceJobs, understudy.ServiceMetrics} {
		if slices.Contains(allow, name) {
			return name
		}
	}
	return ""
}

// shortDuration returns a duration as a text without trailing zeros: 1h for 1h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ParseScope returns a credential with the rights of a scope, without name, user and secret. The error says what is
// wrong with the scope.
func (c *Settings) ParseScope(s credentials.Scope, by string) (one callers.Credential, err error) {
	service := serviceOf(s.Allow)
	if _, ok := c.Sources[s.Source]; !ok && service == "" {
		return one, fmt.Errorf("source: %q is not configured%s", s.Source, suggest.Hint(s.Source, slices.Sorted(maps.Keys(c.Sources))))
	}
	switch {
	case service != "" && (len(s.Allow) > 1 || s.Source != "" || s.Role != "" || s.MaxStale != ""):
		return one, fmt.Errorf("allow: a credential for %s may do nothing else; remove source, role, max_stale and the other entries of allow",
			service)
	case s.Role == "" && service == "":
		return one, fmt.Errorf("role: every credential needs one")
	}
	if err := c.checkRole(s.Role); err != nil {
		return one, fmt.Errorf("role: %w", err)
	}
	if s.Rate < 0 {
		return one, fmt.Errorf("rate: %g is negative", s.Rate)
	}
	per, err := s.ParsePer()
	if err != nil {
		return one, err
	}
	one = callers.Credential{Source: s.Source, Rate: s.Rate, Per: per, Grant: understudy.Grant{Role: s.Role, IssuedBy: by, Service: service}}
	if s.Expires != nil {
		one.Grant.Expires = *s.Expires
	}
	if s.MaxStale != "" {
		d, err := understudy.ParseDuration(s.MaxStale)
		if err != nil || d < 0 {
			return one, fmt.Errorf("max_stale: %q is not a duration of 0 or more; write 30s, 5m, 24h or 30d", understudy.Clip(s.MaxStale))
		}
		one.Grant.MaxStale = &d
	}
	for _, text := range s.Allow {
		if service != "" {
			break
		}
		allow, err := parseAllow(text)
		if err != nil {
			return one, fmt.Errorf("allow: %w", err)
		}
		one.Grant.Allow = append(one.Grant.Allow, allow)
	}
	if one.From, err = parseBlocks(s.Addresses); err != nil {
		return one, fmt.Errorf("addresses: %w", err)
	}
	return one, nil
}

// parseBlocks parses address blocks.
func parseBlocks(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		block, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an address block, such as 10.0.0.0/8 or 192.0.2.7/32", text)
		}
		all = append(all, block.Masked())
	}
	return all, nil
}

// CheckMade returns an error if a credential cannot be created beside the credentials of the settings.
func (c *Settings) CheckMade(name string, s credentials.Scope) error {
	if err := credentials.CheckName(name); err != nil {
		return err
	}
	if c.isTaken(name) {
		return fmt.Errorf("%w: name: the settings have a credential %s", understudy.ErrInvalid, name)
	}
	if _, err := c.ParseScope(s, ""); err != nil {
		return fmt.Errorf("%w: %w", understudy.ErrInvalid, err)
	}
	return nil
}

// ConfiguredCredentials returns the credentials of the settings, with their users and without secrets.
func (c *Settings) ConfiguredCredentials() []credentials.Credential {
	var all []credentials.Credential
	for _, cred := range c.Credentials {
		all = append(all, credentials.Credential{Name: cred.Name, Scope: cred.scope(), Secrets: []credentials.Secret{{User: cred.User}}})
	}
	return all
}

// MadeCredentials returns the credentials that were created at run time and are valid under the settings. skipped
// names the other credentials, each with the reason why it is invalid.
func (c *Settings) MadeCredentials(all []credentials.Credential) (out []callers.Credential, skipped []string) {
	for _, made := range all {
		one, err := c.ParseScope(made.Scope, "credentials")
		if c.isTaken(made.Name) {
			err = fmt.Errorf("the settings have one of that name")
		}
		if err != nil {
			skipped = append(skipped, made.Name+": "+err.Error())
			continue
		}
		one.Name = made.Name
		for _, s := range made.Secrets {
			one.User, one.Digest = s.User, s.Digest
			secret := one
			secret.Grant.Revoked = s.Revoked
			if s.Until != nil && (secret.Grant.Expires.IsZero() || s.Until.Before(secret.Grant.Expires)) {
				secret.Grant.Expires = *s.Until
			}
			out = append(out, secret)
		}
	}
	return out, skipped
}
