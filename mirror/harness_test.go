// The bench of these tests: a scripted upstream with a small world, a store
// of its own, and a mirror between them.

package mirror

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

const account = "AC00000000000000000000000000000001"

// world is an upstream whose every answer is scripted.
type world struct {
	t    testing.TB
	spec *spec.Spec
	now  func() time.Time

	mu     sync.Mutex
	calls  []call // newest first
	size   int    // of a page
	asked  []request.Fetch
	writes []request.Write

	delay func(f request.Fetch) time.Duration                            // before an answer; nil: 1 s
	fail  func(n int, f request.Fetch) error                             // of the n-th fetch, from 1; nil: none
	page  func(f request.Fetch) *understudy.Page                         // instead of the world's answer
	write func(w request.Write) (*understudy.Page, error)                // a write's answer
	fetch func(context.Context, request.Fetch) (*understudy.Page, error) // everything
}

type call struct {
	id, status string
	final      bool
}

func sid(n int) string { return fmt.Sprintf("CA%032x", n) }

func (w *world) Fetch(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
	w.mu.Lock()
	w.asked = append(w.asked, f)
	n, d := len(w.asked), time.Second
	if w.delay != nil {
		d = w.delay(f)
	}
	fail, instead := w.fail, w.fetch
	w.mu.Unlock()
	if instead != nil {
		return instead(ctx, f)
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if fail != nil {
		if err := fail(n, f); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.answer(f)
	p.At, p.Took, p.Generation = w.now(), d, f.Generation
	return p, nil
}

func (w *world) Write(ctx context.Context, wr request.Write) (*understudy.Page, error) {
	w.mu.Lock()
	w.writes = append(w.writes, wr)
	answer := w.write
	w.mu.Unlock()
	p, err := answer(wr)
	if p != nil {
		p.At = w.now()
	}
	return p, err
}

// answer is what the world says now; the lock is held.
func (w *world) answer(f request.Fetch) *understudy.Page {
	if w.page != nil {
		if p := w.page(f); p != nil {
			return p
		}
	}
	t := f.Target
	switch {
	case t.List != nil && t.Kind.Name == "calls":
		return w.list(t)
	case t.List != nil:
		return page(t, http.StatusOK, `{"`+t.List.Key+`":[]}`)
	case t.Instance == nil:
		return page(t, http.StatusOK, `{"what":"unknown"}`)
	}
	for _, c := range w.calls {
		if c.id == t.ID {
			return instance(t, http.StatusOK, c)
		}
	}
	return page(t, http.StatusNotFound, `{"code":20404,"status":404}`)
}

func (w *world) list(t *spec.Target) *understudy.Page {
	first, _ := t.Query.Get("Page")
	from, _ := strconv.Atoi(first)
	from *= w.size
	var b strings.Builder
	var rows []understudy.Row
	b.WriteString(`{"calls":[`)
	to := min(from+w.size, len(w.calls))
	for i, c := range w.calls[min(from, to):to] {
		if i > 0 {
			b.WriteString(", ")
		}
		start := b.Len()
		b.WriteString(body(c))
		rows = append(rows, understudy.Row{ID: c.id, Start: start, End: b.Len(), Final: c.final, Clock: 1780000000 - int64(from+i)})
	}
	b.WriteString(`]}`)
	p := page(t, http.StatusOK, b.String())
	p.Rows = rows
	if to < len(w.calls) {
		next, err := w.spec.Resolve("twilio", t.Key.Path(), fmt.Sprintf("PageSize=50&Page=%d&PageToken=PA%s", from/w.size+1, w.calls[to-1].id))
		if err != nil {
			w.t.Error(err)
			return p
		}
		p.Next = next.Key
	}
	return p
}

func body(c call) string {
	return fmt.Sprintf(`{"sid":%q,"account_sid":%q,"status":%q,"uri":"/2010-04-01/Accounts/%s/Calls/%s.json"}`, c.id, account, c.status,
		account, c.id)
}

func instance(t *spec.Target, status int, c call) *understudy.Page {
	p := page(t, status, body(c))
	p.Rows = []understudy.Row{{ID: c.id, End: len(p.Body), Final: c.final}}
	return p
}

func page(t *spec.Target, status int, text string) *understudy.Page {
	sum := sha256.Sum256([]byte(text))
	p := &understudy.Page{Key: t.Key, Shape: t.Shape(), List: t.List != nil, ID: t.ID, Status: status,
		ContentType: "application/json", Body: []byte(text), Sum: [16]byte(sum[:16])}
	if t.Kind != nil {
		p.Kind = t.Kind.Name
	}
	return p
}

// set changes a call's status; a call that is new comes first.
func (w *world) set(id, status string, final bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.calls, func(c call) bool { return c.id == id }); i >= 0 {
		w.calls[i].status, w.calls[i].final = status, final
		return
	}
	w.calls = slices.Insert(w.calls, 0, call{id, status, final})
}

func (w *world) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.calls {
		if w.calls[i].id == id {
			w.calls = append(w.calls[:i:i], w.calls[i+1:]...)
			return
		}
	}
}

func (w *world) script(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// fetches are the fetches so far whose URI contains part, by reason.
func (w *world) fetches(part string) (n int, by [request.ReasonCount]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.asked {
		if strings.Contains(f.Target.Key.URI, part) {
			n++
			by[f.Reason]++
		}
	}
	return n, by
}

// stage is a mirror over a world, running.
type stage struct {
	*world
	*Mirror
	store  Store
	memory *store.DB
	stop   func()
}

type setting func(*Options)

func polls(kinds ...string) setting {
	return func(o *Options) { o.Sources[0].Source.Polls = kinds }
}

func over(wrap func(Store) Store) setting {
	return func(o *Options) { o.Store = wrap(o.Store) }
}

// shortHard is a hard limit that a bubble soon passes: in the usual thirty days
// half a million ticks come.
const shortHard = 3 * time.Hour

func hard(age time.Duration) setting { return func(o *Options) { o.Ages.Hard = age } }

// withoutStore leaves the store out: pages are in memory alone.
func withoutStore(o *Options) { o.Store = noStore{} }

// shortAges shortens the ages that last a day or more.
func shortAges(o *Options) {
	o.Ages.Final, o.Ages.Records, o.Ages.Hard = time.Hour, time.Hour, shortHard
}

func hotBytes(n int64) setting { return func(o *Options) { o.Hot = n } }

// open makes a running stage with n calls, all final, three to a page.
func open(t testing.TB, n int, settings ...setting) *stage {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	s := &stage{}
	w := &world{t: t, spec: sp, size: 3, now: time.Now}
	for i := range n {
		w.calls = append(w.calls, call{sid(n - i), "completed", true})
	}
	s.world = w
	s.memory = storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{"twilio": sp}, Now: time.Now})
	o := Options{
		Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: sp, User: account}, Upstream: w}},
		Store:   s.memory,
	}
	for _, set := range settings {
		set(&o)
	}
	s.store = o.Store
	s.start(t, o)
	return s
}

// start runs a mirror; the test stops it when it ends.
func (s *stage) start(t testing.TB, o Options) {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Mirror = m
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(s.stop)
}

func (s *stage) target(t testing.TB, path, query string) *spec.Target {
	t.Helper()
	target, err := s.spec.Resolve("twilio", "/2010-04-01/Accounts/"+account+"/"+path, query)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func (s *stage) newest(t testing.TB) *spec.Target { return s.target(t, "Calls.json", "") }

func (s *stage) call(t testing.TB, id string) *spec.Target {
	return s.target(t, "Calls/"+id+".json", "")
}

// get reads and must get an answer.
func (s *stage) get(t testing.TB, target *spec.Target) *request.Response {
	t.Helper()
	a, err := s.Answer(t.Context(), request.Request{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func down(status int) error {
	return &understudy.UpstreamError{Why: understudy.FailServer, Status: status}
}

// want compares how an answer came.
func want(t testing.TB, a *request.Response, how request.Outcome, detail string) {
	t.Helper()
	if a.Outcome != how || a.Detail != detail {
		t.Fatalf("answer came %s, detail %q; want %s, %q", a.Outcome, a.Detail, how, detail)
	}
}
