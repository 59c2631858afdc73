// This file contains the settings of the audit log.

package config

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/audit"
	"understudy/internal/datadir"
	"understudy/kit/suggest"
)

// auditConfig has the settings of the audit log.
type auditConfig struct {
	Off        bool                `yaml:"off"`
	People     []string            `yaml:"people"`
	Programs   []string            `yaml:"programs"`
	Roles      map[string][]string `yaml:"roles"`
	Key        SecretRef           `yaml:"key"`
	Keep       Duration            `yaml:"keep"`
	Send       string              `yaml:"send"`
	SendSecret SecretRef           `yaml:"send_secret"`
	SendCA     SecretRef           `yaml:"send_ca"`
}

// checkAudit returns an error if the settings of the audit log contradict each other.
func (c *Settings) checkAudit() error {
	a := &c.Audit
	for name, of := range map[string][]string{"people": a.People, "programs": a.Programs} {
		if _, err := parseActions(of); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(a.Roles)) {
		if err := c.checkRole(role); err != nil {
			return fmt.Errorf("roles: %w", err)
		}
		if _, err := parseActions(a.Roles[role]); err != nil {
			return fmt.Errorf("roles.%s: %w", role, err)
		}
	}
	if err := checkLookups(c); err != nil {
		return err
	}
	if a.Send == "" {
		if a.SendSecret != "" {
			return errors.New("send_secret has no effect without audit.send; add send, or remove send_secret")
		}
		if a.SendCA != "" {
			return errors.New("send_ca has no effect without audit.send; add send, or remove send_ca")
		}
		return nil
	}
	if err := audit.CheckSend(a.Send, a.SendSecret != ""); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if a.SendCA != "" && !strings.HasPrefix(a.Send, "syslog+tls://") {
		return errors.New("send_ca: it applies only to syslog+tls://HOST:PORT")
	}
	return nil
}

// checkLookups returns an error if a role may look up numbers but its searches are not listed.
func checkLookups(c *Settings) error {
	policy := c.Audit.Policy()
	for _, role := range slices.Sorted(maps.Keys(c.Roles)) {
		for _, source := range slices.Sorted(maps.Keys(c.Roles[role])) {
			if !slices.Contains(c.Roles[role][source].actions, access.PermitLookup) {
				continue
			}
			if c.Audit.Off || !policy.MustListPeople(role, understudy.ActionSearch) {
				return fmt.Errorf("roles.%s.%s.do has lookup, and who looks up numbers must be listed: take lookup out, "+
					"or have the audit log list search for this role", role, source)
			}
		}
	}
	return nil
}

// parseActions returns the actions with the given names, or nil if names is nil.
func parseActions(names []string) ([]understudy.Action, error) {
	if names == nil {
		return nil, nil
	}
	known := make([]string, 0, len(understudy.Actions))
	for _, a := range understudy.Actions {
		known = append(known, string(a))
	}
	all := []understudy.Action{}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%q is not an action%s; write any of %s", understudy.Clip(name), suggest.Hint(name, known),
				strings.Join(known, ", "))
		}
		all = append(all, understudy.Action(name))
	}
	return all, nil
}

// Policy returns the policy that says which actions are listed.
func (a *auditConfig) Policy() audit.Policy {
	var p audit.Policy
	p.People, _ = parseActions(a.People) // an error is impossible, because checkAudit has checked the names
	p.Programs, _ = parseActions(a.Programs)
	for role, names := range a.Roles {
		if p.Roles == nil {
			p.Roles = map[string][]understudy.Action{}
		}
		p.Roles[role], _ = parseActions(append([]string{}, names...))
	}
	return p
}

// ReadOptions returns the options of the audit log in a data folder. If the settings name no key, it creates a key.
func (a *auditConfig) ReadOptions(ctx context.Context, data string, secrets Secrets) (o audit.Options, err error) {
	o = audit.Options{Dir: filepath.Join(data, datadir.AuditName), Heads: AuditHeads(data), Policy: a.Policy(), Keep: a.Keep.Std()}
	if o.Key, err = a.ReadKey(ctx, data, secrets, true); err != nil {
		return o, err
	}
	o.Send, err = a.readSend(ctx, secrets)
	return o, err
}

// readSend returns the options for sending the log, with their secrets. An empty secret is not checked.
func (a *auditConfig) readSend(ctx context.Context, secrets Secrets) (o audit.SendOptions, err error) {
	o.URL = a.Send
	if a.SendSecret != "" {
		if o.Secret, err = secrets(ctx, a.SendSecret); err != nil {
			return o, fmt.Errorf("audit.send_secret: %w", err)
		}
	}
	if a.SendCA == "" {
		return o, nil
	}
	certificates, err := secrets(ctx, a.SendCA)
	if err != nil {
		return o, fmt.Errorf("audit.send_ca: %w", err)
	}
	o.Roots = x509.NewCertPool()
	if !certificates.IsEmpty() && !o.Roots.AppendCertsFromPEM([]byte(certificates.Reveal())) {
		return o, errors.New("audit.send_ca has no certificate; write one or more certificates in PEM")
	}
	return o, nil
}

// CheckSecrets reads every secret that the settings name, and checks the secrets of the audit log. read may return
// an empty secret, which is not checked.
func CheckSecrets(ctx context.Context, c *Settings, read Secrets) error {
	for _, one := range NamedSecrets(c) {
		secret, err := read(ctx, one.Ref)
		if err == nil && one.Name == "audit.key" && !secret.IsEmpty() {
			_, err = audit.ParseKey(secret)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, understudy.StripPrefixes(err))
		}
	}
	_, err := c.Audit.readSend(ctx, read)
	return err
}

// AuditHeads returns the path of the file with the newest checkpoints of a data folder.
func AuditHeads(data string) string { return filepath.Join(data, datadir.AuditName+".heads") }

// ReadKey returns the key of a data folder's audit log. If the settings name no key, it reads the key file. If the
// file is missing and make is true, it creates the file.
func (a *auditConfig) ReadKey(ctx context.Context, data string, secrets Secrets, make bool) (audit.Key, error) {
	if a.Key == "" {
		return audit.ReadKey(filepath.Join(data, datadir.AuditName+".key"), make)
	}
	secret, err := secrets(ctx, a.Key)
	if err != nil {
		return audit.Key{}, fmt.Errorf("audit.key: %w", err)
	}
	key, err := audit.ParseKey(secret)
	if err != nil {
		return key, fmt.Errorf("audit.key: %w", understudy.StripPrefixes(err))
	}
	return key, nil
}
