// Fingerprint: whether another policy decides for a caller as this one does.

package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"understudy"
)

// PolicyFingerprint names everything that decides what a caller may do and see: its
// grant and source, the levels, row rules and actions of its role in every source, the users
// that sources ask as, and what the specs say of fields. Two gates with equal
// fingerprints of a caller decide alike for it. The fingerprint is "" for a caller
// without a role of this gate.
func (g *Gate) PolicyFingerprint(c understudy.Caller) string {
	role := c.Role()
	if role == "" || g.Known(role) != nil {
		return ""
	}
	of := g.stated
	of.Roles = Roles{role: of.Roles[role]}
	of.Rows = map[string]map[string]RowRules{role: of.Rows[role]}
	of.Do = Doings{role: of.Do[role]}
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

// fingerprint names a policy: equal roles over equal fields, equal names.
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
		Do    Doings
		Specs map[string][]kind
	}{o.Roles, o.Rows, o.Do, specs})
	if err != nil {
		panic("access: strings and maps of them always marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
