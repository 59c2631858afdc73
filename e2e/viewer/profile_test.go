// The page of profiles.

package viewer

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

// The page of profiles stands in the viewer's frame, with and without a profile.
func TestProfilesStandInTheFrame(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "10")
	web := demo.URL("viewer")
	if a := rig.Get(t, "", web+"/-/profile/allocs?for=100ms"); a.Status != 200 {
		t.Fatalf("a profile: %d %s", a.Status, a.Body)
	}
	var list struct{ Kept []struct{ ID string } }
	if err := json.Unmarshal(rig.Get(t, "", web+"/-/profile?format=json").Body, &list); err != nil || len(list.Kept) != 1 {
		t.Fatalf("%d profiles are kept, %v", len(list.Kept), err)
	}
	id := list.Kept[0].ID
	when, _, _ := strings.Cut(id, "_")
	for path, want := range map[string]string{"/-/profile": "Take a profile of allocations", "/-/profile?id=" + url.QueryEscape(id): "<h3>Functions</h3>"} {
		shown := string(rig.Get(t, "", web+path).Body)
		for _, want := range []string{`<header class="top">`, "<h1>Profiles</h1>", when, want, "</html>"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
	}
}
