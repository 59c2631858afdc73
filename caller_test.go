// Grants: what they cover, and until when.

package understudy

import (
	"testing"
	"time"
)

func TestAllowCovers(t *testing.T) {
	a := Allow{Method: "POST", Path: "/1/Accounts/*/Messages.json"}
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{"POST", "/1/Accounts/AC1/Messages.json", true},
		{"POST", "/1/Accounts/*/Messages.json", true},
		{"GET", "/1/Accounts/AC1/Messages.json", false},
		{"post", "/1/Accounts/AC1/Messages.json", false},
		{"POST", "/1/Accounts//Messages.json", false},
		{"POST", "/1/Accounts/AC1/x/Messages.json", false},
		{"POST", "/1/Accounts/Messages.json", false},
		{"POST", "/1/Accounts/AC1/Messages.json/", false},
		{"POST", "/1/Accounts/AC1/Messages", false},
		{"POST", "1/Accounts/AC1/Messages.json", false},
		{"POST", "", false},
	} {
		if a.Match(c.method, c.path) != c.want {
			t.Errorf("%s %s: not %v", c.method, c.path, c.want)
		}
	}
	for path, want := range map[string]bool{"/a/b": true, "/a/b/c/d": true, "/a/": true, "/a": false, "/b/a": false} {
		if (Allow{"*", "/a/**"}).Match("M-SEARCH", path) != want {
			t.Errorf("/a/** and %s: not %v", path, want)
		}
	}
	if !(Allow{"*", "/**"}).Match("PUT", "/") || (Allow{"GET", "/**"}).Match("PUT", "/") || (Allow{"GET", "/**/b"}).Match("GET", "/a/b") {
		t.Error("two stars")
	}
	// A star is a whole segment or a character like any other.
	if (Allow{"GET", "/a*"}).Match("GET", "/ab") || !(Allow{"GET", "/*"}).Match("GET", "/ab") || (Allow{"GET", "/*"}).Match("GET", "/") {
		t.Error("stars")
	}
}

func TestGrantLive(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var none *Grant
	if none.IsActive(now) || !(&Grant{}).IsActive(now) || !(&Grant{Expires: now.Add(1)}).IsActive(now) ||
		(&Grant{Expires: now}).IsActive(now) ||
		(&Grant{Expires: now.Add(-1)}).IsActive(now) {
		t.Error("a grant is in force until it expires")
	}
	if (Caller{}).Role() != "" || (Caller{Grant: &Grant{Role: RoleAll}}).Role() != "all" {
		t.Error("roles")
	}
}
