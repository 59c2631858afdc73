// Reads and writes at all processes of a group, while processes end and others take their places.

package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// place is where one process of a group runs. The process may be replaced.
type place struct {
	mu     sync.Mutex
	server *binary.Server // nil while no process runs
	busy   sync.WaitGroup // requests
}

// begin returns the process of the place, or nil. After it the caller calls busy.Done.
func (p *place) begin() *binary.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.busy.Add(1)
	}
	return p.server
}

// set sets the process, or nil, and returns the former one.
func (p *place) set(s *binary.Server) *binary.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	former := p.server
	p.server = s
	return former
}

func (p *place) has(s *binary.Server) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server == s
}

// load reads and writes messages at random processes. Whatever a living process answers must be right.
type load struct {
	t      *testing.T
	g      *group
	places []*place
	done   atomic.Bool
	work   sync.WaitGroup

	reads, writes         atomic.Int64
	ended, refused, stale atomic.Int64 // requests whose process ended; writes and reads without a lease
	slowest               atomic.Int64 // read

	mu      sync.Mutex
	written map[string]string // the texts of messages whose write was answered, by id
}

// startLoad starts readers of calls, and as many writers of messages.
func startLoad(t *testing.T, g *group, random *rand.Rand, workers int) *load {
	t.Helper()
	l := &load{t: t, g: g, written: map[string]string{}}
	for _, s := range g.nodes {
		l.places = append(l.places, &place{server: s})
	}
	calls := parse[struct{ Calls []message }](t, g.ask(t, 0, http.MethodGet, "/Calls.json?PageSize=200", "")).Calls
	checktest.MustTrue(t, len(calls) > 0, "there are no calls")
	for range workers {
		seed := random.Uint64()
		l.work.Go(func() {
			for r := rand.New(rand.NewPCG(seed, 1)); !l.done.Load(); {
				l.read(r, "/Calls/"+calls[r.IntN(len(calls))].Sid+".json")
			}
		})
		l.work.Go(func() {
			for r := rand.New(rand.NewPCG(seed, 2)); !l.done.Load(); {
				l.write(r)
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

// stop waits until all requests are answered.
func (l *load) stop() {
	l.done.Store(true)
	l.work.Wait()
}

// ask sends a request to a random process. It returns false if the process ended meanwhile or refuses to write.
// Any other failure ends the load.
func (l *load) ask(r *rand.Rand, method, user, path, body string, want int) (rig.Reply, bool) {
	p := l.places[r.IntN(len(l.places))]
	s := p.begin()
	if s == nil {
		return rig.Reply{}, false
	}
	defer p.busy.Done()
	got, err := rig.Ask(method, user, s.URL("twilio")+rig.Base+path, body)
	switch {
	case err == nil && got.Status == want:
		return got, true
	case !p.has(s):
		l.ended.Add(1)
		return got, false
	case got.Status == http.StatusServiceUnavailable && method == http.MethodPost: // nothing was sent
		l.refused.Add(1)
		return got, false
	}
	if !l.done.Swap(true) {
		l.t.Errorf("%s %s answers %d %.300s %v", method, path, got.Status, got.Body, err)
	}
	return got, false
}

// read reads a path until a process answers.
func (l *load) read(r *rand.Rand, path string) rig.Reply {
	for !l.done.Load() {
		began := time.Now()
		if got, ok := l.ask(r, http.MethodGet, rig.Account+":"+rig.APIToken, path, "", http.StatusOK); ok {
			l.reads.Add(1)
			for took := int64(time.Since(began)); ; {
				if old := l.slowest.Load(); took <= old || l.slowest.CompareAndSwap(old, took) {
					return got
				}
			}
		}
	}
	return rig.Reply{}
}

// write sends a message, and redacts one of two. After each answer, other processes must show the new text.
func (l *load) write(r *rand.Rand) {
	text := fmt.Sprint("text ", l.writes.Add(1))
	sent, ok := l.ask(r, http.MethodPost, rig.Account+":"+rig.DemoToken, "/Messages.json", "To=%2B14155550123&From=%2B14155550100&Body="+text, http.StatusCreated)
	if !ok {
		return
	}
	m := parse[message](l.t, sent)
	l.expect(r, m.Sid, text)
	if r.IntN(2) > 0 {
		if _, ok := l.ask(r, http.MethodPost, rig.Account+":"+rig.APIToken, "/Messages/"+m.Sid+".json", "Body=", http.StatusOK); ok {
			l.expect(r, m.Sid, "")
		} else {
			l.note(m.Sid, nil) // it is redacted, or it is not
		}
	}
}

// note notes what was written.
func (l *load) note(id string, text *string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.written, id); text != nil {
		l.written[id] = *text
	}
}

// expect reads a message at a random process after its write. A process without a lease may show an older text, and says that it is stale.
func (l *load) expect(r *rand.Rand, id, text string) {
	l.note(id, &text)
	got := l.read(r, "/Messages/"+id+".json")
	if got.Status != http.StatusOK || parse[message](l.t, got).Body == text {
		return
	}
	how := got.Header.Get("Cache-Status")
	checktest.True(l.t, staleAnswer.MatchString(how), "text of the message %s after its write is %s, want %q; Cache-Status %s", id, got.Body, text, how)
	l.stale.Add(1)
}

// check ends the load, and checks that each process has all that was written, and the same changes without gaps.
func (l *load) check() {
	l.t.Helper()
	l.stop()
	for node := range l.places {
		for id, text := range l.written {
			got := parse[message](l.t, l.g.ask(l.t, node, http.MethodGet, "/Messages/"+id+".json", ""))
			checktest.MustEqual(l.t, got.Body, text, "text of the message %s at process %d", id, node)
		}
	}
	var changes []string
	rig.Await(l.t, func() string {
		changes = l.g.readChanges(l.t, 0)
		all := strings.Join(changes, " ")
		for id := range l.written {
			if !strings.Contains(all, id) {
				return "no change names " + id
			}
		}
		return ""
	})
	for node := range l.places {
		more := l.g.readChanges(l.t, node) // a sync may go on
		checktest.MustTrue(l.t, len(more) >= len(changes), "process %d has %d changes, not %d", node, len(more), len(changes))
		checktest.MustTrue(l.t, slices.Equal(more[:len(changes)], changes), "the changes of process %d are not those of the first", node)
	}
}

// readChanges returns the changes in a process's feed. Their numbers must have no gaps.
func (g *group) readChanges(t *testing.T, node int) (all []string) {
	t.Helper()
	for {
		r := rig.Get(t, rig.Account+":"+rig.DemoToken, fmt.Sprintf("%s/-/feed.json?limit=1000&after=%d", g.nodes[node].URL("viewer"), len(all)))
		checktest.MustEqual(t, r.Status, 200, "status of the feed (%.200s)", r.Body)
		page := parse[struct {
			Changes []struct {
				N        int
				ID, What string
			}
		}](t, r)
		for _, c := range page.Changes {
			all = append(all, c.What+" "+c.ID)
			checktest.MustEqual(t, c.N, len(all), "number of a change at process %d", node)
		}
		if len(page.Changes) == 0 {
			return all
		}
	}
}
