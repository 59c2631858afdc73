// Knee: how many requests at once the real binary sends to an API that serves few.

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
)

// Sixty readers ask for what is not held, of an API that serves four requests at once and lets more wait, and later
// sixteen. It refuses nobody.
func TestTheKneeOfARealAPI(t *testing.T) {
	up := rig.StartAPI(t, "--latency", "40ms", "--records", "100").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up})
	ctx, end := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	t.Cleanup(func() { end(); readers.Wait() })
	places := func(n int) { rig.Control(t, up, "/-/faults", fmt.Sprintf(`{"rules":[{"match":"","places":%d}]}`, n)) }
	places(4)
	var asked atomic.Int64
	for range 60 {
		readers.Go(func() {
			for ctx.Err() == nil {
				path := fmt.Sprintf("%s/Calls.json?PageSize=1&To=%%2B1415%07d", rig.Base, asked.Add(1))
				if r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.DemoToken, house.URL("twilio")+path, ""); err != nil || r.Status != 200 {
					t.Errorf("%s: %d %s %v", path, r.Status, r.Body, err)
					return
				}
			}
		})
	}
	atOnce := func(least, most int) {
		began, from := time.Now(), asked.Load()
		for ; ; time.Sleep(50 * time.Millisecond) {
			n, why := slots(t, house.URL("viewer"))
			switch {
			case n >= least && n <= most && why != "":
				t.Logf("%d at once after %d answers and %v: %s", n, asked.Load()-from, time.Since(began), why)
				return
			case time.Since(began) > time.Minute:
				t.Fatalf("%d at once after %d answers: %s", n, asked.Load()-from, why)
			}
		}
	}
	atOnce(3, 7)
	places(16)
	atOnce(12, 26)
}

// slots are how many requests go out at once, and what bounds them.
func slots(t *testing.T, diagnostics string) (n int, why string) {
	t.Helper()
	var stats struct {
		Sources map[string]struct {
			Limits map[string]struct {
				AtOnce int    `json:"at_once"`
				Why    string `json:"at_once_why"`
			}
		}
	}
	if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.DemoToken, diagnostics+"/-/stats").Body, &stats); err != nil {
		t.Fatal(err)
	}
	queue := stats.Sources["twilio"].Limits["queue"]
	return queue.AtOnce, queue.Why
}
