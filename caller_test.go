// Grants: what they cover, and until when.

package understudy

import (
	"fmt"
	"testing"
	"time"

	"understudy/internal/checktest"
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
	checktest.True(t, (Allow{"*", "/**"}).Match("PUT", "/"),
		`two stars: (Allow{"*", "/**"}).Match("PUT", "/") is false`)
	checktest.True(t, !(Allow{"GET", "/**"}).Match("PUT", "/"),
		`two stars: (Allow{"GET", "/**"}).Match("PUT", "/") is true`)
	checktest.True(t, !(Allow{"GET", "/**/b"}).Match("GET", "/a/b"),
		`two stars: (Allow{"GET", "/**/b"}).Match("GET", "/a/b") is true`)
	// A star is a whole segment or a character like any other.
	checktest.True(t, !(Allow{"GET", "/a*"}).Match("GET", "/ab"),
		`stars: (Allow{"GET", "/a*"}).Match("GET", "/ab") is true`)
	checktest.True(t, (Allow{"GET", "/*"}).Match("GET", "/ab"),
		`stars: (Allow{"GET", "/*"}).Match("GET", "/ab") is false`)
	checktest.True(t, !(Allow{"GET", "/*"}).Match("GET", "/"),
		`stars: (Allow{"GET", "/*"}).Match("GET", "/") is true`)
}

func TestGrantLive(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var none *Grant
	checktest.True(t, !none.IsActive(now), "a grant is in force until it expires: none.IsActive(now) is true")
	checktest.True(t, (&Grant{}).IsActive(now),
		"a grant is in force until it expires: (&Grant{}).IsActive(now) is false")
	checktest.True(t, (&Grant{Expires: now.Add(1)}).IsActive(now),
		"a grant is in force until it expires: (&Grant{Expires: now.Add(1)}).IsActive(now) is false")
	checktest.True(t, !(&Grant{Expires: now}).IsActive(now),
		"a grant is in force until it expires: (&Grant{Expires: now}).IsActive(now) is true")
	checktest.True(t, !(&Grant{Expires: now.Add(-1)}).IsActive(now),
		"a grant is in force until it expires: (&Grant{Expires: now.Add(-1)}).IsActive(now) is true")
	if (Caller{}).Role() != "" || (Caller{Grant: &Grant{Role: RoleAll}}).Role() != "all" {
		t.Error("roles")
	}
}

// The words for outcomes are those of package request, whose test compares them.
func TestUsageCounts(t *testing.T) {
	var u Usage
	for _, c := range []struct {
		outcome string
		status  int
	}{{"warm", 200}, {"warm", 404}, {"stale", 200}, {"cold", 503}, {"composed", 200}, {"", 401}, {"", 499}, {"", 201}, {"unknown", 600}} {
		u.Count(c.outcome, c.status)
	}
	checktest.Equal(t, fmt.Sprint(u.Counts()), "map[cold:1 composed:1 failed:2 other:4 rejected:3 stale:1 warm:2]", "the counts")
	var none *Usage
	none.Count("warm", 200) // counts nothing
}
