package signin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

func newHeader(roles ...string) *Header {
	return &Header{
		Name: "X-Remote-User", Roles: "X-Remote-Groups", Now: time.Now,
		From:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/30"), netip.MustParsePrefix("2001:db8::/32")},
		Has:   func(role string) bool { return slices.Contains(roles, role) },
		Taken: func(name string) bool { return name == "loopback" },
	}
}

func TestHeaders(t *testing.T) {
	h := newHeader("support", "desk")
	for _, c := range []struct {
		what, from    string
		names, groups []string
		role          string
		want          error
	}{
		{"a person", "10.0.0.1:1", []string{"anna"}, []string{"all-staff, desk,support"}, "desk", nil},
		{"groups in lines", "10.0.0.1:1", []string{"anna@example.com"}, []string{"staff", "support"}, "support", nil},
		{"over IPv6", "[2001:db8::1]:1", []string{"anna"}, []string{"support"}, "support", nil},
		{"IPv4 in IPv6", "[::ffff:10.0.0.2]:1", []string{"anna"}, []string{"support"}, "support", nil},
		{"another address", "10.0.0.4:1", []string{"anna"}, []string{"support"}, "", understudy.ErrUnauthorized},
		{"no address", "", []string{"anna"}, []string{"support"}, "", understudy.ErrUnauthorized},
		{"nobody", "10.0.0.1:1", nil, []string{"support"}, "", understudy.ErrUnauthorized},
		{"an empty name", "10.0.0.1:1", []string{""}, []string{"support"}, "", understudy.ErrUnauthorized},
		{"two names", "10.0.0.1:1", []string{"anna", "ben"}, []string{"support"}, "", understudy.ErrUnauthorized},
		{"names as a list", "10.0.0.1:1", []string{"anna, ben"}, []string{"support"}, "", understudy.ErrForbidden},
		{"a name that is taken", "10.0.0.1:1", []string{"loopback"}, []string{"support"}, "", understudy.ErrForbidden},
		{"no groups", "10.0.0.1:1", []string{"anna"}, nil, "", understudy.ErrForbidden},
		{"an unknown group", "10.0.0.1:1", []string{"anna"}, []string{"all", "Support"}, "", understudy.ErrForbidden},
		{"empty groups", "10.0.0.1:1", []string{"anna"}, []string{", ,"}, "", understudy.ErrForbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "/twilio/calls", nil)
		r.RemoteAddr, r.Header["X-Remote-User"], r.Header["X-Remote-Groups"] = c.from, c.names, c.groups
		r.Header.Set("X-Forwarded-For", "10.0.0.1")
		got, err := h.Identify(r)
		checktest.True(t, errors.Is(err, c.want), "%s: err is %v, want c.want", c.what, err)
		checktest.Equal(t, got.Role(), c.role, "%s: got.Role(); %v", c.what, err)
		checktest.True(t, !(c.want == nil && got.Name != c.names[0]),
			"%s: c.want == nil && got.Name != c.names[0]; %v", c.what, err)
	}
}

func TestHeadersAgain(t *testing.T) {
	h := newHeader("support")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header.Set("X-Remote-User", "anna")
	r.Header.Set("X-Remote-Groups", "support")
	c, err := h.Identify(r)
	if err != nil {
		t.Fatal(err)
	}
	if now, ok := h.Recheck(c); !ok || now.Role() != "support" {
		t.Errorf("again: %+v, %v", now, ok)
	}
	if _, ok := newHeader("desk").Recheck(c); ok {
		t.Error("known without the role")
	}
	later := newHeader("support")
	later.Now = func() time.Time { return time.Now().Add(headerLifetime) }
	if _, ok := later.Recheck(c); ok {
		t.Error("known after the end")
	}
	if _, ok := h.Recheck(understudy.Caller{Name: "anna", Grant: &understudy.Grant{Role: "support", IssuedBy: "users"}}); ok {
		t.Error("who signed in with a password is known to the proxy")
	}
}
