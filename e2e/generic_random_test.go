// A generic source at random: what its cache answers while the origin fails and changes, compared
// with what RFC 9111 lets a shared cache answer.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/sample"
)

// TestGenericAtRandom asks for some seconds, a minute and a half with UNDERSTUDY_PROVE. Each answer
// shows something that was true within the age it says, and no longer ago than its Cache-Control
// allows; never what was there before a write that was acknowledged, or a purge; never what was made
// for another request and may not be stored.
func TestGenericAtRandom(t *testing.T) {
	t.Parallel()
	took, every := 4*time.Second, 250*time.Millisecond
	if sample.Whole() {
		took, every = 90*time.Second, time.Second
	}
	chance := random(t)
	o, dir := newChangingOrigin(t, chance), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "understudy.yml"), []byte(fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
sources:
  web: {generic: %q, listen: "127.0.0.1:0", loopback: true, rate: 1000000, timeouts: {connect: 1s, first_byte: 1s, stall: 1s, total: 3s}}
`, o.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir, "serve")
	before := expressAnswers(t, s.URL("viewer"))
	all := &genericAnswers{TB: t, origin: o, at: s.URL("web"), orders: s.URL("viewer"), token: orderToken(t, dir)}
	ctx, stop := context.WithTimeout(t.Context(), took)
	defer stop()
	var wg sync.WaitGroup
	for range 16 {
		a := &genericAsker{genericAnswers: all, chance: rand.New(rand.NewPCG(chance.Uint64(), 1)), tags: map[string]string{},
			client: &http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true}}}
		wg.Go(func() {
			defer a.client.CloseIdleConnections()
			for ctx.Err() == nil && all.wrong.Load() < 10 {
				a.ask()
			}
		})
	}
	by := rand.New(rand.NewPCG(chance.Uint64(), 2))
	wg.Go(func() { o.changes(ctx, by) })
	o.storm(ctx, rand.New(rand.NewPCG(chance.Uint64(), 3)), every)
	wg.Wait()
	o.weather.Store(&weather{})
	all.told(expressAnswers(t, s.URL("viewer"))-before, withLane(t, dir))
	for n := range o.things { // it recovers
		await(t, func() string {
			r := get(t, "", all.at+o.things[n].path)
			if c, err := contentOf(strings.SplitN(string(r.body), " ", 2)[0]); r.status != 200 || err != nil || c.version != o.things[n].version() {
				return fmt.Sprintf("%s: %d %.100s", o.things[n].path, r.status, r.body)
			}
			return ""
		})
	}
}

// genericAnswers counts what was answered.
type genericAnswers struct {
	testing.TB
	origin  *changingOrigin
	at      string
	orders  string   // where commands of this machine go
	token   string   // of those
	serials sync.Map // that were seen

	writes, purged, right, hits, stale, excused, parts, bare, acknowledged, refused, broken, wrong atomic.Int64
}

func (g *genericAnswers) told(express int64, lane bool) {
	g.Logf("%d right (%d hits, %d stale, %d of them in an outage, %d by the express lane, %d parts, %d without a body), "+
		"%d writes acknowledged, %d purges, %d refused, %d broken off, %d wrong; upstream failed %d times and confirmed %d",
		g.right.Load(), g.hits.Load(), g.stale.Load(), g.excused.Load(), express, g.parts.Load(), g.bare.Load(),
		g.acknowledged.Load(), g.purged.Load(), g.refused.Load(), g.broken.Load(), g.wrong.Load(), g.origin.failed.Load(), g.origin.renewed.Load())
	seen := map[string]int64{"right": g.right.Load(), "hit": g.hits.Load(), "part": g.parts.Load(), "without a body": g.bare.Load(),
		"acknowledged write": g.acknowledged.Load(), "confirmed": g.origin.renewed.Load()}
	if lane {
		seen["of the express lane"] = express
	}
	if sample.Whole() { // a short run may be without
		seen["stale"], seen["in an outage"], seen["purge"] = g.stale.Load(), g.excused.Load(), g.purged.Load()
		seen["refused"], seen["broken off"] = g.refused.Load(), g.broken.Load()
	}
	for what, n := range seen {
		if n == 0 {
			g.Errorf("none %s: the answers were not what this test is about", what)
		}
	}
}

// genericAsker is one client.
type genericAsker struct {
	*genericAnswers
	client *http.Client
	chance *rand.Rand
	tags   map[string]string // last seen, by path and language
}

// ask sends a request and looks at its answer.
func (a *genericAsker) ask() {
	n := a.chance.IntN(len(a.origin.things))
	switch a.chance.IntN(200) {
	case 0:
		a.purge(n)
		return
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		a.write(n)
		return
	}
	t := a.origin.things[n]
	req, err := http.NewRequest([]string{http.MethodGet, http.MethodHead}[a.chance.IntN(10)/9], a.at+t.path, nil)
	if err != nil {
		a.Error(err)
		return
	}
	h := req.Header
	h.Set("Accept-Language", []string{"de", "en", "fr"}[a.chance.IntN(3)])
	if a.chance.IntN(4) == 0 {
		h.Set("Authorization", fmt.Sprintf("Bearer c%d", a.chance.IntN(3)))
	}
	switch tag := a.tags[t.path+h.Get("Accept-Language")]; a.chance.IntN(20) {
	case 0:
		h.Set("Cache-Control", "no-cache")
	case 1:
		h.Set("Cache-Control", "max-age=0")
	case 2:
		h.Set("Cache-Control", "only-if-cached")
	case 3, 4, 5:
		req.Method = http.MethodGet
		h.Set("Range", fmt.Sprintf("bytes=%d-%d", 1+a.chance.IntN(5), 6+a.chance.IntN(2000)))
	case 6, 7, 8, 9:
		if tag != "" {
			h.Set("If-None-Match", tag)
		}
	}
	floor, began := t.floor.Load(), time.Now()
	resp, err := a.client.Do(req)
	if err != nil {
		a.bad(req, resp, err.Error())
		return
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && (t.neverStored || h.Get("Authorization") != "" && !t.shared || h.Get("Range") != ""):
		a.broken.Add(1) // what is not stored passes as it comes
	case err != nil:
		a.bad(req, resp, err.Error())
	default:
		if why := a.judge(n, req, resp, string(body), floor, began); why != "" {
			a.bad(req, resp, why)
		}
	}
}

func (a *genericAsker) bad(req *http.Request, resp *http.Response, why string) {
	if a.wrong.Add(1) > 10 {
		return
	}
	answer := "no answer"
	if resp != nil {
		answer = fmt.Sprintf("%d %v", resp.StatusCode, resp.Header)
	}
	a.Errorf("%s %s %v: %s: %s", req.Method, req.URL.Path, req.Header, answer, why)
}

// write changes a thing, by its own path or by one whose answer names it.
func (a *genericAsker) write(n int) {
	t, name := a.origin.things[n], strconv.FormatInt(a.writes.Add(1), 10)
	path := t.path
	if a.chance.IntN(3) == 0 {
		path = fmt.Sprintf("/made/%d", n)
	}
	r, err := ask(http.MethodPost, "", a.at+path, "", "X-Write", name)
	switch {
	case err != nil || r.status >= 300 && r.status < 500:
		a.Errorf("POST %s: %d %v", path, r.status, err)
		return
	case r.status < 300:
		a.acknowledged.Add(1)
	case strings.TrimSpace(string(r.body)) == originError || path != t.path:
		return
	}
	a.origin.mu.Lock()
	version := a.origin.applied[name] // 0: it did not come there
	a.origin.mu.Unlock()
	t.atLeast(version)
}

// purge has what is held of a thing forgotten.
func (a *genericAsker) purge(n int) {
	t := a.origin.things[n]
	version := t.version()
	r, err := ask(http.MethodPost, "", a.orders+"/-/purge", fmt.Sprintf(`{"source":"web","what":%q}`, t.path),
		"Authorization", "Bearer "+a.token, "Content-Type", "application/json")
	if err != nil || r.status != http.StatusOK {
		a.Errorf("purge %s: %d %s %v", t.path, r.status, r.body, err)
	}
	a.purged.Add(1)
	t.atLeast(version)
}
