// Calm: answers from memory while upstream is down.

package faults

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// TestReloadsInAnOutageDoNotWaitForUpstream: sixteen users reload stored pages in an outage. Half of the pages are past even the
// stale time, so that each reload would like upstream to be asked. An answer that waited for upstream would cost a request. There
// are hardly any, though there are many answers.
func TestReloadsInAnOutageDoNotWaitForUpstream(t *testing.T) {
	const rounds, most = 50, 10
	up := rig.StartAPI(t, "--records", "1000").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1ms, stale: 1ms}"})
	user := rig.Account + ":" + rig.DemoToken
	pages := []string{
		rig.Base + "/Calls.json?PageSize=20", rig.Base + "/Messages.json?PageSize=20",
		rig.Base + "/Calls.json?PageSize=20&Page=1", rig.Base + "/Messages.json?PageSize=20&Page=1",
	}
	for _, path := range pages {
		checktest.MustEqual(t, rig.Get(t, user, house.URL("twilio")+path).Status, 200, "status of %s", path)
	}
	// reload reloads the pages, and returns how many requests upstream has received meanwhile.
	reload := func(rounds int) int {
		before := rig.ReadAPIStats(t, up).Requests
		var wg sync.WaitGroup
		for n := range readers {
			wg.Go(func() {
				for i := range rounds {
					path := pages[(n+i)%len(pages)]
					r, err := rig.Ask(http.MethodGet, user, house.URL("twilio")+path, "")
					if err != nil || r.Status != 200 || !strings.Contains(r.Header.Get("Cache-Status"), "hit") {
						t.Errorf("%s: %d %q %.100s %v", path, r.Status, r.Header.Get("Cache-Status"), r.Body, err)
						return
					}
				}
			})
		}
		wg.Wait()
		return rig.ReadAPIStats(t, up).Requests - before
	}
	rig.Control(t, up, "/-/faults", `{"rules":[{"match":"","status":503}]}`)
	rig.Await(t, func() string { // until the source counts as down
		if asked := reload(1); asked > 0 {
			return fmt.Sprint("requests upstream: ", asked)
		}
		return ""
	})
	// From then on, one request asks now and then whether upstream is back: after 1, 2, 4, 8 s and so on.
	asked := reload(rounds)
	t.Logf("%d answers cost %d requests upstream", rounds*readers, asked)
	checktest.True(t, asked <= most, "%d answers cost %d requests upstream, want at most %d", rounds*readers, asked, most)
}
