// kill -9: what a running server had stored is there after it, byte for byte.

package crashes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/sample"
)

const (
	killsUsual   = 10 // a fiftieth of the full count
	killsOfAlife = 25 // then a new folder, so that looking at everything stays quick
	killReaders  = 4
	killAsked    = 60 // answers before the kill, at most
	killOlder    = 40 // answers of earlier rounds looked at after each
)

// TestKillServer kills a server under load at random moments and starts it
// again on the same folder. Every page whose answer said that it was stored is
// held and what it was, or what upstream says now; nothing is half written, also while the file is shrunk. What the audit
// log lists is there for every answer that was given, and its chains are whole.
func TestKillServer(t *testing.T) {
	t.Parallel()
	kills := sample.CountFrom("PROVE_KILLS", killsUsual)
	up := rig.StartAPI(t, "--latency", "3ms", "--records", "3000").URL("slowapi")
	rng := rig.Random(t)
	began, pages, looked, shown, shrunk := time.Now(), 0, 0, 0, int64(0)
	for done := 0; done < kills; {
		l := newLife(t, up, rng)
		for range min(killsOfAlife, kills-done) {
			l.round()
			done++
		}
		l.end()
		pages, looked, shown, shrunk = pages+len(l.stored), looked+l.looked, shown+l.shown, shrunk+l.shrunk.Load()
	}
	t.Logf("%d kills in %v, %d pages stored, %d answers looked at, %d records shown and listed, %d times shrunk", kills,
		time.Since(began).Round(time.Millisecond), pages, looked, shown, shrunk)
}

// glimpse is an answer to a path: from when to when it was asked, by a count of
// all answers.
type glimpse struct {
	body         string
	began, ended int64
	stored       bool
}

// life is one data folder through several servers.
type life struct {
	*testing.T
	dir, up string
	rng     *rand.Rand
	server  *binary.Server

	count  atomic.Int64
	mu     sync.Mutex
	seen   map[string][]glimpse // by path
	stored []string             // paths, in the order they were first stored
	sids   []string             // of calls
	next   []string             // paths of next pages
	lost   bool                 // a write of this round was never answered
	looked int
	shown  int // answers that the audit log lists before they are given
	shrunk atomic.Int64
}

func newLife(t *testing.T, up string, rng *rand.Rand) *life {
	first, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 2h, older: 2h, default_age: 2h}"})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	return &life{T: t, dir: dir, up: up, rng: rng, seen: map[string][]glimpse{}}
}

func (l *life) start() {
	l.Helper()
	rig.ChooseLane(l, l.dir)
	house, err := binary.Start(rig.Program, l.dir, "serve")
	if err != nil {
		l.Fatal(err)
	}
	l.server = house
}

// round starts the server, looks at what the one before had stored, lets it be
// read and written to, and kills it.
func (l *life) round() {
	from := len(l.stored)
	l.start()
	defer l.server.Kill()
	ctx, cancel := context.WithCancel(l.Context())
	enough, more := int64(l.rng.IntN(killAsked)), time.Duration(l.rng.IntN(5000))*time.Microsecond
	until := l.count.Load() + 2*enough // each is counted at both ends
	var wg sync.WaitGroup
	for range killReaders {
		r := rand.New(rand.NewPCG(l.rng.Uint64(), 0))
		wg.Go(func() {
			for ctx.Err() == nil && l.one(r) {
			}
		})
	}
	if l.rng.IntN(3) == 0 { // the server may be killed while it replaces its file
		wg.Go(func() {
			shrink := exec.CommandContext(ctx, rig.Program, "store", "shrink")
			shrink.Dir = l.dir
			if out, err := shrink.CombinedOutput(); err == nil {
				l.shrunk.Add(1)
			} else {
				l.Logf("store shrink: %v %.200s", err, out)
			}
		})
	}
	for l.count.Load() < until && !l.server.Exited() {
		time.Sleep(200 * time.Microsecond)
	}
	time.Sleep(more)
	l.server.Kill()
	cancel()
	wg.Wait()
	if l.rng.IntN(2) == 0 {
		l.verify() // before the next server has mended anything
	}
	l.start()
	if l.lost {
		// A server killed while it forwards a write may still hold the pages from
		// before that write: it did not get the response.
		l.look(slices.DeleteFunc(slices.Clone(l.stored), func(path string) bool { return !written(path) }))
		l.lost = false
	}
	l.look(slices.Concat(l.stored[from:], l.some(l.stored[:from])))
	l.server.Kill()
	l.verify()
}

// some are a few older paths.
func (l *life) some(paths []string) (out []string) {
	for range min(killOlder, len(paths)) {
		out = append(out, paths[l.rng.IntN(len(paths))])
	}
	return out
}

// end looks at everything once more.
func (l *life) end() {
	l.start()
	l.look(l.stored)
	if err := l.server.Stop(); err != nil {
		l.Error(err)
	}
	l.verify()
}

const killUser = rig.Account + ":" + rig.DemoToken

// one sends one random request and notes the answer; false: the server is gone.
func (l *life) one(r *rand.Rand) bool {
	if r.IntN(25) == 0 {
		_, err := rig.Ask(http.MethodPost, killUser, l.server.URL("twilio")+rig.Base+"/Messages.json", "To=%2B14155550100&From=%2B14155550101&Body=hello")
		l.count.Add(2)
		if err != nil {
			l.mu.Lock()
			l.lost = true
			l.mu.Unlock()
		}
		return err == nil
	}
	if sid := l.call(r); sid != "" && r.IntN(15) == 0 { // the data of a record's page
		a, err := rig.Ask(http.MethodGet, killUser, l.server.URL("viewer")+"/twilio/calls/"+sid+".json", "")
		l.count.Add(2)
		if err == nil && a.Status == http.StatusOK {
			l.mu.Lock()
			l.shown++
			l.mu.Unlock()
		}
		return err == nil
	}
	path := l.path(r)
	s := glimpse{began: l.count.Add(1)}
	a, err := rig.Ask(http.MethodGet, killUser, l.server.URL("twilio")+path, "")
	s.ended = l.count.Add(1)
	if err != nil {
		return false
	}
	s.body, s.stored = string(a.Body), strings.Contains(a.Header.Get("Cache-Status"), "; stored")
	l.note(path, s)
	return true
}

// call is the id of a call that was seen; "": none was.
func (l *life) call(r *rand.Rand) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sids) == 0 {
		return ""
	}
	return l.sids[r.IntN(len(l.sids))]
}

// path is something to ask for: a list at any page size, a next page, a record.
func (l *life) path(r *rand.Rand) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n := r.IntN(10); {
	case n < 3 && len(l.next) > 0:
		return l.next[r.IntN(len(l.next))]
	case n < 5 && len(l.sids) > 0:
		return rig.Base + "/Calls/" + l.sids[r.IntN(len(l.sids))] + ".json"
	case n < 7:
		return fmt.Sprintf("%s/Messages.json?PageSize=%d", rig.Base, 1+r.IntN(100))
	}
	return fmt.Sprintf("%s/Calls.json?PageSize=%d", rig.Base, 1+r.IntN(100))
}

func (l *life) note(path string, s glimpse) {
	var page struct {
		Calls []struct{ SID string }
		Next  string `json:"next_page_uri"`
	}
	_ = json.Unmarshal([]byte(s.body), &page)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.stored && !slices.ContainsFunc(l.seen[path], func(s glimpse) bool { return s.stored }) {
		l.stored = append(l.stored, path)
	}
	l.seen[path] = append(l.seen[path], s)
	if page.Next != "" {
		l.next = append(l.next, page.Next)
	}
	for _, c := range page.Calls[:min(3, len(page.Calls))] {
		l.sids = append(l.sids, c.SID)
	}
}

// look asks for pages that were stored: all of them are held.
func (l *life) look(paths []string) {
	l.Helper()
	for _, path := range paths {
		a := rig.Get(l, killUser, l.server.URL("twilio")+path)
		l.looked++
		how := a.Header.Get("Cache-Status")
		if a.Status != 200 || strings.Contains(how, "uri-miss") {
			l.Fatalf("%s was stored and is not held: %d %s", path, a.Status, how)
		}
		if l.allowed(path, string(a.Body)) {
			continue
		}
		if l.lost && written(path) {
			n := l.count.Add(1)
			l.seen[path] = append(l.seen[path], glimpse{body: string(a.Body), began: n, ended: n, stored: true})
			continue
		}
		if now := rig.Get(l, rig.Account+":"+rig.APIToken, l.up+path); !bytes.Equal(now.Body, a.Body) {
			l.Fatalf("%s (%s) is neither what was stored nor what upstream says now: %s", path, how, rig.FirstDifference(now.Body, a.Body))
		}
	}
}

// written reports whether the writes of this test change what a path shows.
func written(path string) bool { return strings.Contains(path, "/Messages") }

// allowed reports whether a body may be held: it was answered, and nothing
// that was stored was asked for after that.
func (l *life) allowed(path, body string) bool {
	for _, x := range l.seen[path] {
		if x.body == body && !slices.ContainsFunc(l.seen[path], func(y glimpse) bool { return y.stored && y.body != body && y.began > x.ended }) {
			return true
		}
	}
	return false
}

// verify reads the whole folder, and the audit log.
func (l *life) verify() {
	l.Helper()
	l.run("store", "verify")
	l.run("audit", "verify")
	listed := bytes.Count(l.run("audit", "export"), []byte(`"action":"record"`))
	if l.mu.Lock(); listed < l.shown {
		l.Fatalf("%d records were shown, and the audit log lists %d", l.shown, listed)
	}
	l.mu.Unlock()
}

// run runs a command on the data folder, which no server holds.
func (l *life) run(command ...string) []byte {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, rig.Program, append(command, "--data", rig.DataFolder)...)
	cmd.Dir = l.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, rig.Tail(string(out), 3000))
	}
	return out
}
