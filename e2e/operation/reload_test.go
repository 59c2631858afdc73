// Reload: the settings are read again under load, without an effect on any caller.

package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"understudy/e2e/rig"
)

// The upstream token is rotated while readers ask for what is held and for
// what is not: no request is lost, none is answered 401 or 503.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "50ms", "--records", "2000").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1s, older: 1s, settled_age: 1s, stale: 1s}"})
	user := rig.Account + ":" + rig.DemoToken
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	var answers, fresh atomic.Int64
	for n := range 8 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				path := rig.Base + "/Calls.json?PageSize=20"
				if i%2 == 0 { // this was not requested before
					path = fmt.Sprintf("%s/Messages.json?PageSize=%d&Page=%d", rig.Base, 5+n, i)
					fresh.Add(1)
				}
				r, err := rig.Ask(http.MethodGet, user, house.URL("twilio")+path, "")
				if err != nil || r.Status != 200 {
					t.Errorf("%s: %d %.300s %v", path, r.Status, r.Body, err)
					return
				}
				answers.Add(1)
			}
		})
	}
	loaded := func() string {
		var h struct {
			LoadedAt string `json:"loaded_at"`
		}
		if err := json.Unmarshal(rig.Get(t, "", house.URL("viewer")+"/-/health").Body, &h); err != nil || h.LoadedAt == "" {
			t.Fatalf("health says nothing of the settings: %v", err)
		}
		return h.LoadedAt
	}
	after := func(n int64) { // n more answers
		from := answers.Load()
		rig.Await(t, func() string {
			if got := answers.Load() - from; got < n && ctx.Err() == nil && !t.Failed() {
				return fmt.Sprintf("%d of %d answers", got, n)
			}
			return ""
		})
	}
	after(50)
	token := rig.APIToken
	for round := range 6 {
		next := fmt.Sprintf("rotated%dtoken", round)
		rig.Control(t, up, "/-/token", fmt.Sprintf(`{"tokens":[%q,%q]}`, token, next))
		if err := os.WriteFile(filepath.Join(dir, "twilio.token"), []byte(next+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := loaded()
		if err := house.Reload(); err != nil {
			t.Fatal(err)
		}
		rig.Await(t, func() string {
			if loaded() == before {
				return "the settings have not been read again"
			}
			return ""
		})
		// A request under way may still carry the former one; it is sent again.
		rig.Control(t, up, "/-/token", fmt.Sprintf(`{"tokens":[%q]}`, next))
		token = next
		after(50)
	}
	stop()
	wg.Wait()
	t.Logf("%d answers through 6 rotations, about %d of them for keys nobody had asked for", answers.Load(), fresh.Load())
	if log := house.Stderr(); strings.Contains(log, "token") && strings.Contains(log, "rotated") {
		t.Error("a token is in the log")
	}
}
