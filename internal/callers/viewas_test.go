// View-as: rights are taken away, never given.

package callers

import (
	"net/http"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// lens has everybody look through one role.
type lens string

func (l lens) Role(*http.Request, string) string { return string(l) }

// Every caller that a book knows looks through every role: only one of the role all becomes
// another, with its own name and without a right to write; and it stays that, or ends, when
// the caller's own role changes.
func TestThroughARole(t *testing.T) {
	const pair = "user"
	own := []string{"all", "support", "narrow"}
	for _, role := range own {
		for _, wanted := range []string{"", "support", "narrow", "gone", "all"} {
			made := credential("demo", "twilio", pair, "secretsecret", role)
			made.Grant.Allow = []understudy.Allow{{Method: "POST", Path: "/x"}}
			made.Grant.Expires = start.Add(time.Hour)
			o := Options{Credentials: []Credential{made}, ViewAs: lens(wanted), Salt: []byte("salt")}
			c, err := book(t, o).IdentifyPerson(request(basicHeader(pair, "secretsecret")))
			if err != nil {
				t.Fatal(err)
			}
			want := role
			if role == understudy.RoleAll && wanted != "" {
				want = wanted
			}
			checktest.Equal(t, c.Role(), want, "c.Role()")
			checktest.Equal(t, c.Name, "demo", "c.Name")
			checktest.Equal(t, c.Source, "twilio", "c.Source")
			checktest.True(t, c.Grant.Expires.Equal(made.Grant.Expires),
				"c.Grant.Expires.Equal(made.Grant.Expires) is false")
			through := role == understudy.RoleAll && wanted != ""
			if through != (c.Grant.IssuedBy == understudy.IssuedByViewAs) || through && len(c.Grant.Allow) > 0 {
				t.Errorf("%s through %q: by %q, allows %v", role, wanted, c.Grant.IssuedBy, c.Grant.Allow)
			}
			for _, later := range own {
				o.Credentials[0].Grant.Role = later
				now, ok := book(t, o).Recheck(c)
				switch {
				case through && later == understudy.RoleAll:
					checktest.MustTrue(t, ok, "through %q again: ok is false", wanted)
					checktest.Equal(t, now.Role(), wanted, "through %q again: now.Role()", wanted)
					checktest.Equal(t, now.Grant.IssuedBy, understudy.IssuedByViewAs,
						"through %q again: now.Grant.IssuedBy", wanted)
				case through:
					if ok {
						t.Errorf("through %q, and later %s: role %q", wanted, later, now.Role())
					}
				case !ok || now.Role() != later:
					t.Errorf("%s, and later %s: role %q, %t", role, later, now.Role(), ok)
				}
			}
		}
	}
}
