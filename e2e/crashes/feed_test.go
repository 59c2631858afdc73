// Feed: a follower and a webhook's receiver through kill -9 of the server.

package crashes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"understudy/e2e/rig"
	"understudy/follow"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver keeps the numbers a webhook brings, and fails now and then.
type receiver struct {
	t       *testing.T
	mu      sync.Mutex
	count   int
	seen    map[string][]int64 // by message
	order   []string
	paused  bool // answers 503
	numbers map[int64]bool
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the server was killed
	}
	key, err := standardwebhooks.NewWebhook(hookSecret)
	if err == nil {
		err = key.Verify(body, req.Header)
	}
	if err != nil {
		r.t.Errorf("webhook: %v", err)
	}
	var m struct {
		Data struct{ Changes []follow.Change }
	}
	if err := json.Unmarshal(body, &m); err != nil || len(m.Data.Changes) == 0 {
		r.t.Errorf("webhook: %v in %.200s", err, body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count++; r.count%5 == 2 || r.paused {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	id := req.Header.Get(standardwebhooks.HeaderWebhookID)
	if r.seen[id] == nil {
		r.order = append(r.order, id)
	}
	r.seen[id] = nil
	for _, ch := range m.Data.Changes {
		r.seen[id] = append(r.seen[id], ch.N)
		r.numbers[ch.N] = true
	}
}

// upTo fails unless every number to n came, in order but for what was sent twice.
func (r *receiver) upTo(n int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := int64(1)
	for _, id := range r.order {
		for _, got := range r.seen[id] {
			if got > next {
				return fmt.Sprintf("change %d came before %d", got, next)
			}
			next = max(next, got+1)
		}
	}
	if next != n+1 {
		return fmt.Sprintf("%d of %d changes came", next-1, n)
	}
	return ""
}

func TestFeedThroughKills(t *testing.T) {
	t.Parallel()
	to := &receiver{t: t, seen: map[string][]int64{}, numbers: map[int64]bool{}}
	hook := httptest.NewServer(to)
	defer hook.Close()
	up := rig.StartAPI(t, "--latency", "5ms", "--records", "200").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: fmt.Sprintf(`{}
feed: {poll_every: 1s}
webhooks:
  - {name: crm, url: %q, secret: "cmd:printf %s", role: all, allow_private: true}`, hook.URL, hookSecret)})
	user := rig.Account + ":" + rig.DemoToken
	var followed []int64
	for round := range 3 {
		// Messages are sent and notified repeatedly while a subscriber reads the feed.
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		after := "0"
		if len(followed) > 0 {
			after = fmt.Sprint(followed[len(followed)-1])
		}
		want := 10 * (round + 1)
		go func() {
			enough := errors.New("enough")
			err := follow.Receive(ctx, follow.Options{URL: house.URL("viewer"), User: rig.Account, Secret: rig.DemoToken, After: after}, func(ch follow.Change) error {
				followed = append(followed, ch.N)
				if len(followed) == want {
					return enough
				}
				return nil
			})
			if err == enough {
				err = nil
			}
			done <- err
		}()
		for i := range 10 {
			r, err := rig.Ask(http.MethodPost, user, house.URL("twilio")+rig.Base+"/Messages.json", fmt.Sprintf("To=%%2B1555%07d&From=%%2B15005550006&Body=x", 10*round+i))
			if err != nil || r.Status != 201 {
				t.Fatalf("POST: %d %s %v", r.Status, r.Body, err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		stop()
		if round < 2 {
			house.Kill()
			house = rig.Start(t, dir, "serve")
		}
	}
	for i, n := range followed {
		if n != int64(i+1) {
			t.Fatalf("followed %v", followed)
		}
	}
	rig.Await(t, func() string { return to.upTo(30) })
	hooks := func() string {
		return string(rig.Get(t, user, house.URL("viewer")+"/-/webhooks").Body)
	}
	rig.Await(t, func() string {
		var all struct {
			Webhooks []struct {
				State         string
				After, Behind int64
			}
		}
		text := hooks()
		if err := json.Unmarshal([]byte(text), &all); err != nil || len(all.Webhooks) != 1 || all.Webhooks[0].State != "ok" || all.Webhooks[0].After != 30 || all.Webhooks[0].Behind != 0 {
			return text
		}
		return ""
	})
	// From any number once more.
	to.mu.Lock()
	to.numbers = map[int64]bool{}
	to.mu.Unlock()
	r, err := rig.Ask(http.MethodPost, user, house.URL("viewer")+"/-/webhooks/crm", `{"after":20}`, "Content-Type", "application/json")
	if err != nil || r.Status != 200 {
		t.Fatalf("replay: %d %s %v", r.Status, r.Body, err)
	}
	rig.Await(t, func() string {
		to.mu.Lock()
		defer to.mu.Unlock()
		for n := int64(21); n <= 30; n++ {
			if !to.numbers[n] {
				return fmt.Sprintf("change %d is not replayed; %v", n, to.numbers)
			}
		}
		if to.numbers[20] {
			t.Error("more is replayed than was asked for")
		}
		return ""
	})
}
