// Standing: whether another policy decides of a caller as this one does.

package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"understudy"
)

// Standing names all that decides what a caller may do and see: its grant, the
// source it is for, its role's levels and row rules in every source, the users
// sources ask as, and what the specs say of fields. Gates of which a caller has
// equal standings decide of it alike; where they differ, they may not. "" is the
// standing of who has no role here.
func (g *Gate) PolicyFingerprint(c understudy.Caller) string {
	role := c.Role()
	if role == "" || g.Known(role) != nil {
		return ""
	}
	of := g.stated
	of.Roles = Roles{role: of.Roles[role]}
	of.Rows = map[string]map[string]RowRules{role: of.Rows[role]}
	grant := *c.Grant
	text, err := json.Marshal(struct {
		Name, Source, Role, By, Expires string
		MaxStale                        *time.Duration
		Allow                           []understudy.Allow
		Users                           map[string]string
		Policy                          string
	}{c.Name, c.Source, grant.Role, grant.By, grant.Expires.UTC().Format(time.RFC3339Nano), grant.MaxStale, grant.Allow, g.users,
		fingerprint(of)})
	if err != nil {
		panic("access: strings, numbers and lists of them always marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
