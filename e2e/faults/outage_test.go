// Outage: many readers go on reading while upstream answers nothing but 503.

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const (
	readers      = 16
	outageLength = 6 * time.Second
)

// Sixteen readers reload what is held, which is past all freshness by then:
// each reload would like upstream to be asked. A few ask for what is not held.
func TestOutage(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "30ms", "--records", "300").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1s, older: 1s, settled_age: 1s, stale: 1s}"})
	user := rig.Account + ":" + rig.DemoToken
	held := []string{
		rig.Base + "/Calls.json?PageSize=40", rig.Base + "/Messages.json?PageSize=40", rig.Base + "/IncomingPhoneNumbers.json",
		rig.Base + "/Calls.json?PageSize=40&Status=busy", rig.Version + "/Accounts/" + rig.Account + ".json",
	}
	want := map[string]string{}
	for _, path := range held {
		r := rig.Get(t, user, house.URL("twilio")+path)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", path, r.Status, r.Body)
		}
		want[path] = string(r.Body)
	}
	rig.Await(t, func() string { // a busy machine may take too long to read the store at first
		healthy := rig.Get(t, "", house.URL("viewer")+"/-/health")
		if healthy.Status != 200 || !strings.Contains(string(healthy.Body), `"ok"`) {
			return fmt.Sprintf("health before: %d %s", healthy.Status, healthy.Body)
		}
		return ""
	})

	rig.Control(t, up, "/-/faults", `{"rules":[{"match":"","status":503}]}`)
	before := rig.ReadAPIStats(t, up).Requests
	ctx, cancel := context.WithTimeout(t.Context(), outageLength)
	defer cancel()
	var wg sync.WaitGroup
	var reads, stale, refused atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	for n := range readers {
		wg.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond) // leaves the machine to the other tests
			defer pace.Stop()
			for i := n; ctx.Err() == nil; i++ {
				<-pace.C
				path := held[i%len(held)]
				began := time.Now()
				r, err := rig.Ask(http.MethodGet, user, house.URL("twilio")+path, "")
				if err != nil {
					t.Errorf("%s in the outage: %v", path, err)
					return
				}
				if r.Status != 200 || string(r.Body) != want[path] {
					t.Errorf("%s in the outage: %d %.200s", path, r.Status, r.Body)
					return
				}
				reads.Add(1)
				if strings.Contains(r.Header.Get("Cache-Status"), "stale") {
					stale.Add(1)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	for n := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r, err := rig.Ask(http.MethodGet, user, fmt.Sprintf("%s%s/Messages.json?PageSize=%d", house.URL("twilio"), rig.Base, 100+4*i+n), "", "Prefer", "wait=1")
				if err != nil {
					t.Errorf("what is not held: %v", err)
					return
				}
				checktest.Equal(t, r.Status, 503, "what is not held: status; body %s", r.Body)
				checktest.True(t, r.Header.Get("Retry-After") != "", "what is not held: no Retry-After: %v", r.Header)
				checktest.Contains(t, string(r.Body), `"code":20500`, "what is not held: body")
				if t.Failed() {
					return
				}
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	asked := rig.ReadAPIStats(t, up).Requests - before
	slices.Sort(took)
	if len(took) < 200 {
		t.Fatalf("only %d reads in %v", len(took), outageLength)
	}
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d reads (%d said stale), %d refusals, %d upstream requests; p50 %v, p99 %v, slowest %v",
		reads.Load(), stale.Load(), refused.Load(), asked, p50, p99, took[len(took)-1])
	// Until the source counts as down, each key may be fetched, and fetched again
	// after a second. From then on there are probes after 1, 2 and 4 s. That is
	// less than one request a second for each key, for any number of readers.
	if limit := len(held)*int(outageLength/time.Second) + 20; asked > limit {
		t.Errorf("%d upstream requests in an outage of %v, want at most %d", asked, outageLength, limit)
	}
	if stale.Load() < reads.Load()/2 {
		t.Errorf("only %d of %d answers say that they are stale", stale.Load(), reads.Load())
	}
	if p99 > time.Second {
		t.Errorf("p99 of held answers is %v, want less than a second", p99)
	}
	if h := rig.Get(t, "", house.URL("viewer")+"/-/health"); h.Status != 200 || !strings.Contains(string(h.Body), "degraded") {
		t.Errorf("health in the outage: %d %s, want 200 and degraded", h.Status, h.Body)
	}

	// Upstream comes back with something new.
	rig.Control(t, up, "/-/advance", `{"calls":3,"seconds":60}`)
	rig.Control(t, up, "/-/faults", `{"rules":[]}`)
	direct := rig.Get(t, rig.Account+":"+rig.APIToken, up+held[0])
	rig.Await(t, func() string {
		r := rig.Get(t, user, house.URL("twilio")+held[0])
		if string(r.Body) != string(direct.Body) {
			return fmt.Sprintf("after the outage still %d %s", r.Status, r.Header.Get("Cache-Status"))
		}
		return ""
	})
	rig.Await(t, func() string {
		r := rig.Get(t, user, house.URL("twilio")+rig.Base+"/Messages.json?PageSize=99", "Prefer", "wait=2")
		if r.Status != 200 {
			return fmt.Sprintf("what was not held: %d", r.Status)
		}
		return ""
	})
	rig.Await(t, func() string {
		var h struct{ Status string }
		r := rig.Get(t, "", house.URL("viewer")+"/-/health")
		if err := json.Unmarshal(r.Body, &h); err != nil || h.Status != "ok" {
			return fmt.Sprintf("health %s", r.Body)
		}
		return ""
	})
}
