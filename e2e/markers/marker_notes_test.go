// Notes in the test of markers: what a person writes on records is shown to no credential.

package markers

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/signin"
)

// The person of role all, who writes the notes.
const owner, owners = "owner", "a-long-passphrase-of-the-owner"

// withOwner is a file of users with the owner beside others.
func withOwner(t *testing.T, others string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(path, func(u *signin.Users) error { return u.Add(owner, "all", owners) }); err != nil {
		t.Fatal(err)
	}
	return rig.ReadFile(t, path) + others
}

// asOwner signs the owner in and returns the cookie.
func asOwner(t *testing.T, web string) string {
	t.Helper()
	r, err := rig.Ask("POST", "", web+"/-/sign-in", url.Values{"name": {owner}, "password": {owners}}.Encode(), "Origin", web)
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, ok := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	if !ok || r.Status != 303 {
		t.Fatalf("the owner cannot sign in: %d %s", r.Status, rig.Tail(string(r.Body), 300))
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
		if r, err := rig.Ask("GET", "", record, "", "Cookie", cookie, "Prefer", "wait=20"); err != nil || r.Status != 200 {
			continue // its address needs more than the id
		}
		g.mu.Lock()
		text := g.mark(nobodies, "a note on "+k.Name)
		g.mu.Unlock()
		for _, form := range []url.Values{{"do": {"add"}, "text": {text}}, {"do": {"handled"}}} {
			r, err := rig.Ask("POST", "", web+"/-/do/twilio/"+k.Name+"/note/"+id, form.Encode(), "Cookie", cookie, "Origin", web)
			if err != nil || r.Status != 303 {
				t.Fatalf("a note on %s: %v, %d %s", k.Name, err, r.Status, rig.Tail(string(r.Body), 300))
			}
		}
		for _, shows := range []string{record, web + "/-/search?q=noted:owner+kind:" + k.Name, web + "/search?q=handled:owner&kind=" + k.Name} {
			if r, err := rig.Ask("GET", "", shows, "", "Cookie", cookie, "Prefer", "wait=20"); err != nil || !strings.Contains(string(r.Body), text) {
				t.Errorf("%s does not show the owner the note: %v", shows, err)
			}
		}
		planted++
	}
	if planted < 5 {
		t.Errorf("notes were planted on %d kinds", planted)
	}
}
