// Tests of which caller an owner is.

package callers

import (
	"net/http/httptest"
	"testing"
	"time"

	"understudy"
	"understudy/spec"
)

func TestOwners(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	book := func(change func(*Options)) *Book {
		o := Options{Sources: []*spec.Source{{Name: "twilio", Spec: &spec.Spec{}}, {Name: "other", Spec: &spec.Spec{}}},
			Now:      func() time.Time { return now },
			Loopback: understudy.Grant{Role: "all"}, Salt: []byte("salt"),
			Credentials: []Credential{{Name: "desk", Source: "twilio", User: "AC1", Secret: understudy.NewSecret("a secret of the desk"),
				Grant: understudy.Grant{Role: "support", Expires: now.Add(time.Hour)}}}}
		change(&o)
		b, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := book(func(*Options) {})
	r := httptest.NewRequest("GET", "http://127.0.0.1:4114/", nil)
	r.RemoteAddr, r.Host = "127.0.0.1:1", "127.0.0.1:80"
	r.SetBasicAuth("AC1", "a secret of the desk")
	desk, err := b.IdentifyPerson(r)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Del("Authorization")
	local, err := b.IdentifyPerson(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		o      understudy.Owner
		change func(*Options)
		want   string // the role; "": none
	}{
		{"a credential", b.Owner(desk), func(*Options) {}, "support"},
		{"with another secret and role", b.Owner(desk), func(o *Options) {
			o.Credentials[0].Secret, o.Credentials[0].Grant.Role = understudy.NewSecret("another secret here"), "all"
		}, "all"},
		{"that is gone", b.Owner(desk), func(o *Options) { o.Credentials = nil }, ""},
		{"that has expired", b.Owner(desk), func(o *Options) { o.Credentials[0].Grant.Expires = now }, ""},
		{"that is for another source", b.Owner(desk), func(o *Options) { o.Credentials[0].Source = "other" }, ""},
		{"on this machine", b.Owner(local), func(*Options) {}, "all"},
		{"on this machine, without a role", b.Owner(local), func(o *Options) { o.Loopback.Role = "" }, ""},
		{"on this machine, behind a proxy", b.Owner(local), func(o *Options) { o.BehindProxy = true }, ""},
		{"a person where nobody signs in", understudy.Owner{Name: "anna", Role: "all"}, func(*Options) {}, ""},
	} {
		got, ok := book(c.change).Resolve(c.o)
		if ok != (c.want != "") || ok && got.Role() != c.want {
			t.Errorf("%s: %q as %q, %v; want %q", c.what, got.Name, got.Role(), ok, c.want)
		}
	}
}
