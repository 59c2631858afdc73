package access

import (
	"testing"

	"understudy/spec"
)

// M9: the page that refuses recommends the role that shows least, never all.
func TestNarrowest(t *testing.T) {
	sp := twilio(t)
	for want, roles := range map[string]Roles{
		"": {},
		"masked": {"full": {"twilio": {"*": "see"}}, "masked": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
			"nothing": {"twilio": {"*": "hide"}}},
		"billing": {"billing": {"twilio": {"calls": "see"}}, "support": {"twilio": {"*": "see", "phone": "last4"}}},
	} {
		g, err := NewWith(Options{Specs: map[string]*spec.Spec{"twilio": sp}, Roles: roles})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.NarrowestRole(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
