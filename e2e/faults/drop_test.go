// Drop: connections to upstream that are lost, in every way one can be.

package faults

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// dropper passes requests on to an API, and drops some connections: 3 of each
// ten, with the first request of each, so that no reader meets ten in a row. Of
// the others none serves more than five, so that new ones are made all the time.
type dropper struct {
	to      *httputil.ReverseProxy
	mu      sync.Mutex
	rng     *rand.Rand
	ten     []int        // what becomes of the next ones
	reached atomic.Int64 // requests that came to the API
	dropped atomic.Int64
	conns   atomic.Int64
}

// doom is what becomes of a connection.
type doom struct {
	way  int // how it is dropped; 0: it is not
	left int // requests it still serves
}

type doomKey struct{}

// The ways a connection is dropped.
const (
	resetBefore   = 1 + iota // the API is not asked
	resetAfter               // it is, and its answer is lost
	silentBefore             // nothing comes, and the API is not asked
	silentAfter              // nothing comes of its answer
	stoppedInside            // it stops in the middle
	ways          = iota
)

// startDropper opens one.
func startDropper(t *testing.T, api string, rng *rand.Rand) (*dropper, string) {
	t.Helper()
	to, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	d := &dropper{to: httputil.NewSingleHostReverseProxy(to), rng: rng}
	srv := httptest.NewUnstartedServer(d)
	srv.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.ten) == 0 {
			d.ten = d.rng.Perm(10)
		}
		f, drawn := &doom{left: 1 + d.rng.IntN(5)}, d.ten[0]
		d.ten = d.ten[1:]
		d.conns.Add(1)
		if drawn < 3 {
			f.way = 1 + d.rng.IntN(ways)
			d.dropped.Add(1)
		}
		return context.WithValue(ctx, doomKey{}, f)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return d, srv.URL
}

func (d *dropper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := r.Context().Value(doomKey{}).(*doom)
	if f.way != resetBefore && f.way != silentBefore {
		d.reached.Add(1)
	}
	switch f.way {
	case 0:
		if f.left--; f.left == 0 {
			w.Header().Set("Connection", "close")
		}
		d.to.ServeHTTP(w, r)
		return
	case resetAfter, silentAfter, stoppedInside:
		whole := httptest.NewRecorder()
		d.to.ServeHTTP(whole, r)
		if f.way == stoppedInside {
			maps.Copy(w.Header(), whole.Header())
			w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
			_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
			_ = http.NewResponseController(w).Flush()
		}
	}
	if f.way > resetAfter {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

// dropUsual is how many reads TestDroppedConnections makes.
const dropUsual = 400

// TestDroppedConnections: 30 % of the connections to upstream are dropped. Every
// read of a record that was not requested before gets the right response. The
// API gets at most 1.2 requests for each read. Only requests that reach the API
// are counted: half of the dropped ones do not reach it.
func TestDroppedConnections(t *testing.T) {
	reads := sample.CountFrom("PROVE_DROPS", dropUsual)
	up := rig.StartAPI(t, "--latency", "10ms", "--records", strconv.Itoa(reads)).URL("slowapi")
	d, through := startDropper(t, up, rig.Random(t))
	s, _ := rig.StartServer(t, rig.Settings{Upstream: through})
	ids := slices.Sorted(maps.Keys(everyRecord(t, up, "Calls")))
	if len(ids) < reads {
		t.Fatalf("%d calls of %d", len(ids), reads)
	}
	next := make(chan string)
	var readers sync.WaitGroup
	for range 8 { // of fewer, too few connections serve; of more, five keys that fail together count as an outage
		readers.Go(func() {
			for id := range next {
				path := rig.Base + "/Calls/" + id + ".json"
				want, began := readOnce(t, up+path, rig.Account, rig.APIToken), time.Now()
				if got := readOnce(t, s.URL("twilio")+path, rig.Account, rig.DemoToken); got != want {
					t.Errorf("%s: after %v %.200s\nwant %.200s", id, time.Since(began), got, want)
				}
			}
		})
	}
	for _, id := range ids[:reads] {
		next <- id
	}
	close(next)
	readers.Wait()
	if load := float64(d.reached.Load()) / float64(reads); load > 1.2 {
		t.Errorf("upstream got %.3f requests a read", load)
	}
	if n, of := d.dropped.Load(), d.conns.Load(); n < of/5 || n < int64(reads)/50 {
		t.Errorf("%d of %d connections were dropped", n, of)
	}
	t.Logf("%d reads right, %d requests came to upstream, %d of %d connections dropped", reads, d.reached.Load(), d.dropped.Load(), d.conns.Load())
}

// readOnce is status and body.
func readOnce(t testing.TB, at, user, secret string) string {
	req, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		return err.Error()
	}
	req.SetBasicAuth(user, secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(body), " ", err)
}
