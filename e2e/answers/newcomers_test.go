// Newcomers: a walk through a composed list while records arrive.

package answers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
)

// TestWalkWhileCallsArrive follows links from page to page while calls arrive
// and older ones change: what was there when the walk began comes once, in
// upstream's order, and nothing comes twice.
func TestWalkWhileCallsArrive(t *testing.T) {
	t.Parallel()
	remote := rig.StartAPI(t, "--records", "300", "--latency", "0s", "--arrivals", "0")
	up := remote.URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Polls: "[calls]", Source: "sync: [calls], lists_from: records"})
	user, through := rig.Account+":"+rig.DemoToken, house.URL("twilio")
	rig.Await(t, func() string { return rig.Incomplete(t, house.URL("viewer"), time.Time{}, "calls") })
	list := rig.Base + "/Calls.json"
	for _, query := range []string{"?PageSize=7", "?PageSize=3&Status=completed"} {
		whole := list + strings.Replace(query, "PageSize="+query[10:11], "PageSize=1000", 1)
		var want []string
		rig.Await(t, func() string { // what the last walk has moved is known
			want = sidsIn(t, callsIn(t, rig.Get(t, rig.Account+":"+rig.APIToken, up+whole), "directly"))
			if held := sidsIn(t, callsIn(t, rig.Get(t, user, through+whole), "through")); !slices.Equal(held, want) {
				return "the house does not know all yet"
			}
			// That may have been upstream's own page, fetched for a sample. The
			// lists from records know what it shows when a newest page has come.
			if first := sidsIn(t, callsIn(t, rig.Get(t, user, through+list+query), "the first")); !slices.Equal(first, want[:len(first)]) {
				return "its lists do not end where upstream's do yet"
			}
			return ""
		})
		var got []string
		composed, pages := 0, 0
		for at := through + list + query; ; pages++ {
			r := rig.Get(t, user, at)
			page := callsIn(t, r, at)
			got = append(got, sidsIn(t, page)...)
			if strings.Contains(strings.Join(r.Header["Cache-Status"], ""), "composed") {
				composed++
			}
			if page.Next == "" {
				break
			}
			at = through + page.Next
			if pages%5 == 1 {
				rig.Control(t, up, "/-/advance", `{"calls":3,"seconds":1}`)
				newest := sidsIn(t, callsIn(t, rig.Get(t, rig.Account+":"+rig.APIToken, up+list+"?PageSize=1"), "the newest"))[0]
				rig.Await(t, func() string {
					if first := sidsIn(t, callsIn(t, rig.Get(t, user, through+list+"?PageSize=1", "Cache-Control", "no-cache"), "the newest")); first[0] != newest {
						return "the newest call is not here yet"
					}
					return ""
				})
			}
		}
		if query == "?PageSize=7" && !slices.Equal(got, want) {
			t.Errorf("%s: %d calls, want the %d that were there\n%v\n%v", query, len(got), len(want), got, want)
		}
		// Calls that were under way may have ended meanwhile: they may come, once.
		known := map[string]int{}
		for _, sid := range got {
			if known[sid]++; known[sid] > 1 {
				t.Errorf("%s: %s comes twice", query, sid)
			}
		}
		for _, sid := range want {
			if known[sid] == 0 {
				t.Errorf("%s: %s is missing", query, sid)
			}
		}
		if composed == 0 {
			t.Errorf("%s: none of %d pages was composed", query, pages+1)
		}
		t.Logf("%s: %d pages, %d composed, %d calls", query, pages+1, composed, len(got))
	}
}

func sidsIn(t *testing.T, p callPage) (sids []string) {
	t.Helper()
	for _, row := range p.Calls {
		sids = append(sids, sidOf(t, row))
	}
	return sids
}
