// The budget of requests to the API is one for all processes.

package nodes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// The budget of the test. A process may also save up the requests of a second, as if it were alone, and at least one request.
const budgetRate, budgetSlots = 40, 20

// meter passes requests to the API, and notes when they came and how many there were at the same time.
type meter struct {
	mu       sync.Mutex
	came     []time.Time
	now, max int
}

func (m *meter) count(more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if more > 0 {
		m.came = append(m.came, time.Now())
	}
	m.now += more
	m.max = max(m.max, m.now)
}

// since returns how many requests have come since a time.
func (m *meter) since(at time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := slices.BinarySearchFunc(m.came, at, time.Time.Compare)
	return len(m.came) - i
}

// check fails the test if too many requests came, in whatever time, or too many at the same time.
func (m *meter) check(t *testing.T, nodes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	checktest.True(t, m.max <= budgetSlots, "%d requests at the same time, want at most %d", m.max, budgetSlots)
	for i := range m.came {
		for j := i; j < len(m.came); j++ {
			took := m.came[j].Sub(m.came[i])
			// A request may come later than it was sent, so those of a tenth of a second more may be among them.
			allowed := float64(budgetRate)*(took.Seconds()+1.1) + float64(nodes)
			checktest.MustTrue(t, float64(j-i+1) <= allowed, "%d requests came within %v, want at most %.0f", j-i+1, took, allowed)
		}
	}
}

// TestBudgetIsOneForAll: one busy process of three sends nearly as much as if it were alone. Busy ones share. What a dead one
// had returns to the others. At no time is the sum too large. What the API asks one process to wait, the others wait, too.
func TestBudgetIsOneForAll(t *testing.T) {
	api, err := url.Parse(rig.StartAPI(t, "--latency", "100ms", "--records", "300").URL("slowapi"))
	checktest.MustNoError(t, err, "address of the API")
	m := &meter{}
	var limited atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(api)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.count(1)
		defer m.count(-1)
		if limited.CompareAndSwap(true, false) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	g := &group{api: front.URL, budget: fmt.Sprintf("rate: %d, concurrency: %d", budgetRate, budgetSlots)}
	dsn := databases.Database(t)
	for range 3 {
		s, dir := rig.StartServer(t, g.settings(dsn))
		g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	}
	var pages atomic.Int64
	answered := make([]atomic.Int64, len(g.nodes))
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	read := func(node int) { // 20 readers of pages that nobody has read before
		for range 20 {
			readers.Go(func() {
				for ctx.Err() == nil {
					path := fmt.Sprintf("%s/Calls.json?PageSize=1&To=%%2B1555%07d", rig.Base, pages.Add(1))
					r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.APIToken, g.nodes[node].URL("twilio")+path, "")
					if err != nil {
						return // it was killed
					}
					checktest.Equal(t, r.Status, 200, "status of %s at node %d (%.200s)", path, node, r.Body)
					answered[node].Add(1)
				}
			})
		}
	}
	await := func(what string, check func(used float64) string) { // until what is true of a second
		t.Helper()
		rig.Await(t, func() string {
			began := time.Now()
			rig.Pause(t.Context(), time.Second)
			used := float64(m.since(began)) / time.Since(began).Seconds() / budgetRate
			why := check(used)
			t.Logf("%s: %.2f of the rate is used. %s", what, used, why)
			return why
		})
	}
	isUsed := func(used float64) string {
		if used < 0.8 {
			return "It should be more"
		}
		return ""
	}

	read(1)
	await("one of three processes is busy", isUsed)
	read(0)
	read(2)
	var before [3]int64
	await("three processes are busy", func(used float64) string {
		sum, least := int64(0), int64(1<<62)
		for i := range before {
			n := answered[i].Load()
			sum, least, before[i] = sum+n-before[i], min(least, n-before[i]), n
		}
		if float64(least) < 0.25*float64(sum) {
			return fmt.Sprintf("One of them has %d of %d answers", least, sum)
		}
		return isUsed(used)
	})
	if sample.Count(2, 3) == 3 {
		g.nodes[2].Kill()
		await("two processes are busy, and one was killed", isUsed)
		rig.Pause(t.Context(), 10*time.Second)
	}
	m.check(t, len(g.nodes))

	cancel()
	readers.Wait()
	limited.Store(true)
	ask := func(node int) {
		path := fmt.Sprintf("%s/Calls.json?PageSize=1&To=%%2B1555%07d", rig.Base, pages.Add(1))
		_, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.APIToken, g.nodes[node].URL("twilio")+path, "")
		checktest.MustNoError(t, err, "GET %s", path)
	}
	ask(0)
	rig.Await(t, func() string { // the API has asked one process to wait, so another one waits, too
		began := time.Now()
		if ask(1); m.since(began) > 0 {
			return "the other process still asks the API"
		}
		return ""
	})
}
