// This file computes a checksum of a policy. It shows whether another policy gives a caller the same decisions.

package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"understudy"
)

// PolicyFingerprint returns a checksum of everything that decides what a caller may do and see. That is its
// grant and source, the levels, row rules and permissions of its role in every source, the accounts of the
// sources, and what the specs say about fields. Two gates with equal fingerprints give a caller the same
// decisions. The fingerprint is "" for a caller without a role of this gate.
func (g *Gate) PolicyFingerprint(c understudy.Caller) string {
	role := c.Role()
	if role == "" || g.CheckRole(role) != nil {
		return ""
	}
	of := g.options
	of.Roles = Roles{role: of.Roles[role]}
	of.Rows = map[string]map[string]RowRules{role: of.Rows[role]}
	of.Do = Permissions{role: of.Do[role]}
	grant := *c.Grant
	text, err := json.Marshal(struct {
		Name, Source, Role, By, Expires string
		MaxStale                        *time.Duration
		Allow                           []understudy.Allow
		Users                           map[string]string
		Policy                          string
	}{c.Name, c.Source, grant.Role, grant.IssuedBy, grant.Expires.UTC().Format(time.RFC3339Nano), grant.MaxStale, grant.Allow, g.users,
		fingerprint(of)})
	if err != nil {
		panic("access: strings, numbers and lists of them always marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fingerprint returns a checksum of the roles and of the fields that the specs name.
func fingerprint(o Options) string {
	type field struct{ Name, Class, From, Tells string }
	type kind struct {
		Name   string
		Fields []field
	}
	specs := map[string][]kind{}
	for source, s := range o.Specs {
		for _, k := range s.Kinds {
			entry := kind{Name: k.Name}
			for _, f := range k.Fields {
				entry.Fields = append(entry.Fields, field{f.Name, f.Class, f.DerivedFrom, f.Reveals})
			}
			specs[source] = append(specs[source], entry)
		}
	}
	text, err := json.Marshal(struct {
		Roles Roles
		Rows  map[string]map[string]RowRules
		Do    Permissions
		Specs map[string][]kind
	}{o.Roles, o.Rows, o.Do, specs})
	if err != nil {
		panic("access: strings and maps of them always marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
