// Notes in the test of markers: what a person writes on records is shown to no credential.

package e2e

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/signin"
)

// The person of role all, who writes the notes.
const owner, owners = "owner", "a-long-passphrase-of-the-owner"

// withOwner is a file of users with the owner beside others.
func withOwner(t *testing.T, others string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	if err := signin.Edit(path, func(u *signin.Users) error { return u.Add(owner, "all", owners) }); err != nil {
		t.Fatal(err)
	}
	return read(t, path) + others
}

// asOwner signs the owner in and returns the cookie.
func asOwner(t *testing.T, web string) string {
	t.Helper()
	r, err := ask("POST", "", web+"/-/sign-in", url.Values{"name": {owner}, "password": {owners}}.Encode(), "Origin", web)
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, ok := strings.Cut(r.header.Get("Set-Cookie"), ";")
	if !ok || r.status != 303 {
		t.Fatalf("the owner cannot sign in: %d %s", r.status, tail(string(r.body), 300))
	}
	return cookie
}

// plantNotes writes notes on records of each kind and marks them as handled.
func (g *garden) plantNotes(t *testing.T, web string) {
	t.Helper()
	cookie := asOwner(t, web)
	planted := 0
	for _, k := range g.spec.Kinds {
		if len(k.ID) != 1 || len(k.Instances) == 0 {
			continue
		}
		id := g.id(k, 0)
		record := web + "/twilio/" + k.Name + "/" + id
		if r, err := ask("GET", "", record, "", "Cookie", cookie, "Prefer", "wait=20"); err != nil || r.status != 200 {
			continue // its address needs more than the id
		}
		g.mu.Lock()
		text := g.mark(nobodies, "a note on "+k.Name)
		g.mu.Unlock()
		for _, form := range []url.Values{{"do": {"add"}, "text": {text}}, {"do": {"handled"}}} {
			r, err := ask("POST", "", web+"/-/do/twilio/"+k.Name+"/note/"+id, form.Encode(), "Cookie", cookie, "Origin", web)
			if err != nil || r.status != 303 {
				t.Fatalf("a note on %s: %v, %d %s", k.Name, err, r.status, tail(string(r.body), 300))
			}
		}
		for _, shows := range []string{record, web + "/-/search?q=noted:owner+kind:" + k.Name, web + "/search?q=handled:owner&kind=" + k.Name} {
			if r, err := ask("GET", "", shows, "", "Cookie", cookie, "Prefer", "wait=20"); err != nil || !strings.Contains(string(r.body), text) {
				t.Errorf("%s does not show the owner the note: %v", shows, err)
			}
		}
		planted++
	}
	if planted < 5 {
		t.Errorf("notes were planted on %d kinds", planted)
	}
}
