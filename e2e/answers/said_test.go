// Said: a source with a spec goes by what upstream says of the age of its answers.

package answers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
)

// sayings is a shop whose orders say of themselves how long they hold: that of the path
// /v1/orders/no-store says no-store, and so on.
type sayings struct {
	mu   sync.Mutex
	asks map[string]int // by id
	down atomic.Bool
}

var said = map[string]string{"plain": "", "no-store": "no-store", "no-cache": "no-cache", "zero": "max-age=0",
	"strict": "max-age=0, must-revalidate", "long": "max-age=3600", "soon": "max-age=0, stale-while-revalidate=600"}

func (s *sayings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.down.Load() {
		panic(http.ErrAbortHandler)
	}
	id := strings.TrimPrefix(r.URL.Path, "/v1/orders/")
	s.mu.Lock()
	s.asks[id]++
	n := s.asks[id]
	s.mu.Unlock()
	if said[id] != "" {
		w.Header().Set("Cache-Control", said[id])
	}
	w.Header().Set("Content-Type", "application/json")
	if id == "no-cache" {
		w.Header().Set("Etag", `"same"`)
		if n = 1; r.Header.Get("If-None-Match") == `"same"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	fmt.Fprintf(w, `{"id":%q,"total":%d}`, id, n)
}

func (s *sayings) count(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks[id]
}

// openSayings starts such a shop and Understudy in front of it.
func openSayings(t *testing.T) (*sayings, *binary.Server, string) {
	t.Helper()
	s := &sayings{asks: map[string]int{}}
	up := httptest.NewServer(s)
	t.Cleanup(up.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"shop.yaml": shopSpec, "shop.token": "upstreamtoken-1234", "till.secret": "a-token-of-the-till-567",
		"understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  shop: {spec: ./shop.yaml, upstream: "` + up.URL + `", secret: "file:shop.token", listen: "127.0.0.1:0", polls: [], freshness: upstream, rate: 1000}
credentials:
  - {name: till, source: shop, secret: "file:till.secret", role: all}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s, rig.Start(t, dir, "serve"), dir
}

func TestUpstreamsAges(t *testing.T) {
	t.Parallel()
	s, house, dir := openSayings(t)
	order := func(id string, headers ...string) rig.Reply {
		headers = append(headers, "Authorization", "Bearer a-token-of-the-till-567")
		r, err := rig.Ask(http.MethodGet, "", house.URL("shop")+"/v1/orders/"+id, "", headers...)
		if err != nil {
			t.Error(err)
		}
		return r
	}
	for _, one := range []struct {
		id    string
		asked int    // in three reads
		third string // body
	}{
		{"plain", 1, `{"id":"plain","total":1}`}, {"long", 1, `{"id":"long","total":1}`}, {"zero", 3, `{"id":"zero","total":3}`},
		{"strict", 3, `{"id":"strict","total":3}`}, {"no-store", 3, `{"id":"no-store","total":3}`},
		{"no-cache", 3, `{"id":"no-cache","total":1}`},
	} {
		var r rig.Reply
		for range 3 {
			r = order(one.id)
		}
		if n := s.count(one.id); n != one.asked || string(r.Body) != one.third {
			t.Errorf("%s: asked %d times, answered %s (%s)", one.id, n, r.Body, r.Header.Get("Cache-Status"))
		}
	}
	order("soon")
	if r := order("soon"); string(r.Body) != `{"id":"soon","total":1}` || !strings.Contains(r.Header.Get("Cache-Status"), "hit") {
		t.Errorf("stale-while-revalidate: %s, %s", r.Body, r.Header.Get("Cache-Status"))
	}
	rig.Await(t, func() string {
		if s.count("soon") < 2 {
			return "it is not renewed behind the answer"
		}
		return ""
	})
	if r := order("no-store"); !strings.Contains(r.Header.Get("Cache-Status"), "no-store") {
		t.Errorf("no-store: %s", r.Header.Get("Cache-Status"))
	}
	// In an outage, before and after a restart.
	s.down.Store(true)
	for _, when := range []string{"running", "started again"} {
		var asking sync.WaitGroup
		for id, status := range map[string]int{"plain": 200, "long": 200, "zero": 200, "strict": 503, "no-store": 503, "no-cache": 503} {
			asking.Go(func() {
				if r := order(id, "Prefer", "wait=1"); r.Status != status && (status != 503 || r.Status < 500) {
					t.Errorf("%s, %s in an outage: %d %s, want %d", when, id, r.Status, r.Body, status)
				}
			})
		}
		asking.Wait()
		if when == "running" {
			if err := house.Stop(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "data", "*"))
			for _, file := range files {
				if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), `"id":"no-store"`) {
					t.Errorf("%s holds what must not be stored", file)
				}
			}
			if err != nil || len(files) == 0 {
				t.Errorf("%v, %v", files, err)
			}
			house = rig.Start(t, dir, "serve")
		}
	}
}

// TestExpressObeysUpstreamsAges: the express lane answers what holds by upstream's own word, and
// nothing that does not.
func TestExpressObeysUpstreamsAges(t *testing.T) {
	t.Parallel()
	s, house, _ := openSayings(t)
	order := func(id string) {
		if r := rig.Get(t, "", house.URL("shop")+"/v1/orders/"+id, "Authorization", "Bearer a-token-of-the-till-567"); r.Status != http.StatusOK {
			t.Errorf("%s: %d %s", id, r.Status, r.Body)
		}
	}
	rig.Await(t, func() string {
		if order("long"); rig.ExpressAnswers(t, house.URL("viewer")) == 0 {
			return "no answer came from the express lane"
		}
		return ""
	})
	for _, id := range []string{"zero", "strict", "no-store", "no-cache"} {
		for range 10 {
			order(id)
		}
		if n := s.count(id); n != 10 {
			t.Errorf("%s: of 10 answers %d came from upstream", id, n)
		}
	}
	if n := s.count("long"); n != 1 {
		t.Errorf("upstream was asked %d times for what holds", n)
	}
}
