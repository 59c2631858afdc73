// Tests of whose rights work goes on with that no request asks for.

package signin

import (
	"net/http/httptest"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// wantResolved fails unless an owner has a role; "": none.
func wantResolved(t *testing.T, what string, p interface {
	Resolve(o understudy.Owner) (understudy.Caller, bool)
}, o understudy.Owner, role string) {
	t.Helper()
	c, ok := p.Resolve(o)
	if ok != (role != "") || ok && (c.Role() != role || c.Name != o.Name || c.Grant.Allow != nil) {
		t.Errorf("%s: %q as %q, %v; want %q", what, c.Name, c.Role(), ok, role)
	}
}

func TestOwnersOfAFile(t *testing.T) {
	b := newSigner(t, time.Now, "anna")
	if err := b.signIn("anna", annas); err != nil {
		t.Fatal(err)
	}
	c, err := b.Identify(b.request("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	o := b.Owner(c)
	checktest.Equal(t, o.Name, "anna", "the owner is: o.Name")
	checktest.Equal(t, o.Role, "support", "the owner is: o.Role")
	checktest.True(t, !o.LastSeen.IsZero(), "the owner is: o.LastSeen.IsZero() is true")
	if err := b.SignOut(httptest.NewRecorder(), b.request("127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	wantResolved(t, "signed out", b, o, "support")
	o.LastSeen = o.LastSeen.Add(-2 * understudy.OwnerLifetime)
	wantResolved(t, "long not here: the file says who is gone", b, o, "support")
	b.Users.all[0].Role = "desk"
	wantResolved(t, "another role", b, o, "desk")
	b.Users = &Users{byName: map[string]int{}}
	wantResolved(t, "nobody", b, o, "")
}

func TestOwnersOfAProvider(t *testing.T) {
	v := newGuest(t)
	v.from.claims["groups"] = "ops"
	if _, err := v.finish(v.begin()); err != nil {
		t.Fatal(err)
	}
	c, err := v.Identify(v.request("/"))
	if err != nil {
		t.Fatal(err)
	}
	o := v.Owner(c)
	wantResolved(t, "just here", v, o, c.Role())
	if err := v.SignOut(httptest.NewRecorder(), v.request("/")); err != nil {
		t.Fatal(err)
	}
	wantResolved(t, "signed out", v, o, c.Role())
	v.Provider.Roles = []Rule{{"ops", "desk"}}
	wantResolved(t, "another role for the group", v, o, "desk")
	late := o
	late.LastSeen = o.LastSeen.Add(-understudy.OwnerLifetime)
	wantResolved(t, "long not here", v, late, "")
	other := o
	other.Provider = "another provider"
	wantResolved(t, "from another provider", v, other, "")
	v.Provider.Roles = nil
	wantResolved(t, "a group without a role", v, o, "")
}

func TestOwnersOfAProxy(t *testing.T) {
	h := newHeader("support")
	o := h.Owner(understudy.Caller{Name: "anna", Grant: &understudy.Grant{Role: "support"}})
	wantResolved(t, "just here", h, o, "support")
	wantResolved(t, "without the role", newHeader("desk"), o, "")
	o.LastSeen = o.LastSeen.Add(-understudy.OwnerLifetime)
	wantResolved(t, "long not here", h, o, "")
	wantResolved(t, "a name that is taken", h, understudy.Owner{Name: "loopback", Role: "support", LastSeen: time.Now()}, "")
}
