// Syncs through kill -9: nothing is missing and nothing is asked twice but what
// was under way.

package crashes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
)

// TestSyncGoesOnAfterKill kills a server again and again while it fills up a
// kind in four stretches at once.
func TestSyncGoesOnAfterKill(t *testing.T) {
	t.Parallel()
	const (
		calls   = 1500
		size    = 20
		beside  = 4
		atLeast = 4 // kills
	)
	api := rig.StartAPI(t, "--latency", "10ms", "--records", strconv.Itoa(calls))
	up := api.URL("slowapi")
	dir := t.TempDir()
	files := map[string]string{"twilio.token": rig.APIToken, "demo.secret": rig.DemoToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: twilio, upstream: "` + up + `", user: ` + rig.Account + `, secret: "file:twilio.token", listen: "127.0.0.1:0", rate: 200, polls: [], sync: [calls]}
credentials:
  - {name: demo, source: twilio, user: ` + rig.Account + `, secret: "file:demo.secret", role: all}
sync: {page: ` + strconv.Itoa(size) + `}
log: {access: access.log}
`}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rng := rig.Random(t)
	kills := 0
	for {
		rig.ChooseLane(t, dir)
		s, err := binary.Start(rig.Program, dir, "serve")
		if err != nil {
			t.Fatal(err)
		}
		began := len(sizedTargets(t, up, size))
		until := began + 5 + rng.IntN(30)
		done := false
		rig.Await(t, func() string {
			done = rig.Incomplete(t, s.URL("viewer"), time.Time{}, "calls") == ""
			if done || len(sizedTargets(t, up, size)) >= until {
				return ""
			}
			return "the sync does not go on"
		})
		if done {
			if r := rig.Get(t, rig.Account+":"+rig.DemoToken, s.URL("viewer")+"/-/stats"); !strings.Contains(string(r.Body), `"calls":{"records":`+strconv.Itoa(calls)+`,"complete":true`) {
				t.Errorf("stats: %s", r.Body)
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			break
		}
		s.Kill()
		kills++
	}
	again := 0
	for _, times := range sizedTargets(t, up, size) {
		again += times - 1
	}
	if kills < atLeast {
		t.Errorf("only %d kills", kills)
	}
	if again > kills*beside {
		t.Errorf("%d pages were asked for again after %d kills", again, kills)
	}
	t.Logf("%d kills, %d pages asked for again", kills, again)
}

// sizedTargets are the requests for lists of a page size, with how often each
// was made.
func sizedTargets(t *testing.T, api string, size int) map[string]int {
	t.Helper()
	out := map[string]int{}
	for target, times := range rig.ReadAPIStats(t, api).ByTarget {
		if strings.Contains(target, "PageSize="+strconv.Itoa(size)) {
			out[target] = times
		}
	}
	return out
}
