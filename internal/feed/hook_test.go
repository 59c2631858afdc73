// Webhooks: signed, in order, tried again, paused, replayed, and never sent to a
// forbidden address.

package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver answers with what it was told to, then 200, and keeps what it got.
type receiver struct {
	t       testing.TB
	mu      sync.Mutex
	answers []int
	headers http.Header // of its answers
	got     []message
	server  *httptest.Server
}

type message struct {
	id      string
	next    string
	changes []string
}

func receive(t testing.TB, answers ...int) *receiver {
	r := &receiver{t: t, answers: answers, headers: http.Header{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	key, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		r.t.Error(err)
	}
	if err := key.VerifyIgnoringTimestamp(body, req.Header); err != nil {
		r.t.Errorf("signature: %v", err)
	}
	var m struct {
		Type string
		Data struct {
			Webhook, Source string
			Changes         []map[string]any
			Next            string
		}
	}
	{
		err := json.Unmarshal(body, &m)
		checktest.MustNoError(r.t, err, "body %s", body)
		checktest.Equal(r.t, m.Type, "changes", "m.Type; body %s", body)
		checktest.Equal(r.t, m.Data.Source, "twilio", "m.Data.Source; body %s", body)
	}
	r.got = append(r.got, message{req.Header.Get("webhook-id"), m.Data.Next, lines(m.Data.Changes)})
	status := http.StatusOK
	if len(r.answers) > 0 {
		status, r.answers = r.answers[0], r.answers[1:]
	}
	for name, values := range r.headers {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.Repeat("x", 1000))
}

func (r *receiver) all() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// task is a job's run.
type task struct{ key string }

func (t task) Job() understudy.Job { return understudy.Job{Kind: DeliverKind, Key: t.key} }

func (t task) SetProgress(int64, int64, string) {}

// noted is a task that remembers its last note.
type noted struct {
	task
	note *string
}

func (n noted) SetProgress(_, _ int64, note string) { *n.note = note }

// clock is stepped by tests.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// hooked is a feed with one webhook that has everything still before it. It
// does not run: tests deliver themselves.
func hooked(t testing.TB, tab *table, h Hook) (*Feed, *clock) {
	t.Helper()
	c := &clock{now: time.Now()}
	h.Name, h.Source, h.AllowPrivate, h.Secret = "crm", "twilio", true, understudy.NewSecret(hookSecret)
	o := Options{Sources: []*spec.Source{{Name: "twilio", Spec: sp(t)}}, Store: tab, KV: tab, Now: c.read}
	o.Policy = Policy{Gate: gate(t, o), Callers: people{}, Hooks: []Hook{h}}
	f, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if tab.notes[hookPrefix+"crm"] == nil {
		t.Error("the place was not kept")
	}
	return f, c
}

func (f *Feed) from(t testing.TB, after int64) {
	t.Helper()
	if err := f.hooks.resume(t.Context(), "crm", &after); err != nil {
		t.Fatal(err)
	}
}

func (f *Feed) stat(t testing.TB) request.Webhook {
	t.Helper()
	all := f.Webhooks()
	if len(all) != 1 {
		t.Fatalf("webhooks: %v", all)
	}
	return all[0]
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	to := receive(t)
	tab := some()
	f, _ := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 0 {
		t.Fatalf("a new webhook begins at the newest change: %v, %v", to.all(), err)
	}
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 came calls CA1", "2 changed calls CA1 from from_formatted status", "3 came messages SM1", "4 came alerts NO1",
		"5 changed messages SM1 body", "6 changed calls CA1 price x_new", "7 changed calls CA1", "8 went messages SM1"}
	got := to.all()
	checktest.MustEqual(t, len(got), 1, "len(got)")
	checktest.True(t, slices.Equal(got[0].changes, want), "got[0].changes is %v, want %v", got[0].changes, want)
	checktest.Equal(t, place(got[0].next), "8", "place(got[0].next)")
	s := f.stat(t)
	checktest.Equal(t, s.State, "ok", "stats: s.State")
	checktest.Equal(t, s.After, 8, "stats: s.After")
	checktest.Equal(t, s.Delivered, 8, "stats: s.Delivered")
	checktest.True(t, !s.At.IsZero(), "stats: s.At.IsZero() is true")
	if err := f.Deliver(t.Context(), task{"nobody"}); err != nil {
		t.Errorf("a webhook that is no more: %v", err)
	}
	// Many: in order, in batches.
	for i := range 250 {
		tab.put("twilio", came("calls", fmt.Sprint("CA", i)))
	}
	if err := f.readers["twilio"].readNew(t.Context()); err != nil {
		t.Fatal(err)
	}
	note := ""
	if err := f.Deliver(t.Context(), noted{task{"crm"}, &note}); err != nil || note != "250 changes delivered" {
		t.Fatalf("%q, %v", note, err)
	}
	n, ids := 8, map[string]bool{}
	for _, m := range to.all()[1:] {
		ids[m.id] = true
		for _, line := range m.changes {
			if n++; !strings.HasPrefix(line, fmt.Sprint(n, " came calls CA")) {
				t.Fatalf("change %d is %q", n, line)
			}
		}
	}
	if n != 258 || len(ids) != 3 {
		t.Errorf("%d changes in %d batches", n, len(ids))
	}
}

func TestDeliveryThroughTheGate(t *testing.T) {
	t.Parallel()
	to := receive(t)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "support", Kinds: []string{"messages"}})
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
		t.Fatal(err)
	}
	got := to.all()
	if len(got) != 1 || !slices.Equal(got[0].changes, []string{"came messages SM1", "went messages SM1"}) {
		t.Errorf("support's webhook gets %v", got)
	}
	if len(got[0].next) != sealedSize {
		t.Errorf("support's webhook goes on after %v", got[0].next)
	}
	if s := f.stat(t); s.After != 8 || s.Delivered != 2 {
		t.Errorf("stats %+v", s)
	}
}

func TestDeliveryIsTriedAgain(t *testing.T) {
	t.Parallel()
	to := receive(t, 500, 302, 404)
	to.headers.Set("Location", to.server.URL)
	tab := some()
	f, c := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 6)
	for i := range 3 {
		if err := f.Deliver(t.Context(), task{"crm"}); err == nil || !strings.Contains(err.Error(), "answered") {
			t.Fatalf("try %d: %v", i, err)
		}
		c.step(time.Minute)
		tab.put("twilio", came("calls", fmt.Sprint("CX", i))) // must not become part of the batch
	}
	s := f.stat(t)
	checktest.Equal(t, s.State, "failing", "stats: s.State")
	checktest.Equal(t, s.Why, "answered 404", "stats: s.Why")
	checktest.Equal(t, s.After, 6, "stats: s.After")
	checktest.Equal(t, c.read().Sub(s.Failing), 3*time.Minute, "stats: c.read().Sub(s.Failing)")
	// Another process goes on with the same batch.
	f, _ = hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
		t.Fatal(err)
	}
	got := to.all()
	for _, m := range got[:4] {
		if m.id != got[0].id || !slices.Equal(m.changes, []string{"7 changed calls CA1", "8 went messages SM1"}) {
			t.Errorf("a try sent %v, the first %v", m, got[0])
		}
	}
	checktest.MustEqual(t, len(got), 5, "then came: len(got)")
	checktest.True(t, got[4].id != got[0].id, "then came: got[4].id is %v", got[4].id)
	checktest.Equal(t, len(got[4].changes), 3, "then came: len(got[4].changes)")
}

func TestDeliveryPauses(t *testing.T) {
	t.Parallel()
	to := receive(t, slices.Repeat([]int{503}, 30)...)
	f, c := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 0)
	tries := 0
	for ; f.stat(t).State != "paused"; tries++ {
		err := f.Deliver(t.Context(), task{"crm"})
		if (err == nil) != (f.stat(t).State == "paused") {
			t.Fatalf("try %d: %v, %+v", tries, err, f.stat(t))
		}
		c.step(time.Hour)
	}
	if tries != 25 || !strings.Contains(f.stat(t).Why, "every attempt has failed since") {
		t.Errorf("paused after %d tries: %+v", tries, f.stat(t))
	}
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 25 {
		t.Errorf("a paused webhook is tried: %v", err)
	}
	to.mu.Lock()
	to.answers = nil
	to.mu.Unlock()
	f.from(t, 7)
	{
		err := f.Deliver(t.Context(), task{"crm"})
		checktest.MustNoError(t, err, "resumed")
		checktest.Equal(t, f.stat(t).State, "ok", "resumed: f.stat(t).State")
		checktest.Equal(t, f.stat(t).After, 8, "resumed: f.stat(t).After")
	}
}

// A webhook that is paused by hand sends nothing, also after a restart, until it is resumed;
// then it goes on where it was.
func TestPausedByHand(t *testing.T) {
	t.Parallel()
	to, tab := receive(t), some()
	f, _ := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 5)
	if err := f.Pause(t.Context(), "crm", "anna"); err != nil {
		t.Fatal(err)
	}
	if err := f.Pause(t.Context(), "crm", "bert"); err != nil { // it is
		t.Fatal(err)
	}
	for range 2 { // before and after a restart
		err := f.Deliver(t.Context(), task{"crm"})
		s := f.stat(t)
		checktest.MustNoError(t, err, "")
		checktest.MustTrue(t, len(to.all()) <= 0, "len(to.all()) > 0")
		checktest.Equal(t, s.State, "paused", "s.State")
		checktest.Equal(t, s.Why, "paused by hand by anna", "s.Why")
		checktest.Equal(t, s.After, 5, "s.After")
		checktest.Equal(t, s.Behind, 3, "s.Behind")
		f, _ = hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	}
	if err := f.Resume(t.Context(), "crm", nil); err != nil {
		t.Fatal(err)
	}
	{
		err := f.Deliver(t.Context(), task{"crm"})
		checktest.MustNoError(t, err, "resumed")
		checktest.Equal(t, f.stat(t).State, "ok", "resumed: f.stat(t).State")
		checktest.Equal(t, f.stat(t).After, 8, "resumed: f.stat(t).After")
		checktest.Equal(t, len(to.all()), 1, "resumed: len(to.all())")
	}
}

// What is being sent when somebody pauses a webhook is sent; its failure does not set it going.
func TestPausedWhileDelivering(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 503} {
		var f *Feed
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := f.Pause(r.Context(), "crm", "anna"); err != nil {
				t.Error(err)
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		f, _ = hooked(t, some(), Hook{URL: server.URL, Role: "all"})
		f.from(t, 5)
		_ = f.Deliver(t.Context(), task{"crm"}) // its error is that of the status
		after := map[int]int64{200: 8, 503: 5}[status]
		s := f.stat(t)
		checktest.Equal(t, s.State, "paused", "%d: s.State", status)
		checktest.Equal(t, s.Why, "paused by hand by anna", "%d: s.Why", status)
		checktest.Equal(t, s.After, after, "%d: s.After", status)
	}
}

func TestGoneAndRetryAfter(t *testing.T) {
	t.Parallel()
	to := receive(t, 429, 410)
	to.headers.Set("Retry-After", "120")
	f, c := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err == nil {
		t.Error("429 is no failure")
	}
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 1 {
		t.Errorf("it was tried before the receiver wanted it: %v", err)
	}
	c.step(2 * time.Minute)
	{
		err := f.Deliver(t.Context(), task{"crm"})
		checktest.MustNoError(t, err, "after 410")
		checktest.Equal(t, f.stat(t).State, "paused", "after 410: f.stat(t).State")
		checktest.Contains(t, f.stat(t).Why, "410", "after 410: f.stat(t).Why")
	}
}

func TestReplayWhileDelivering(t *testing.T) {
	t.Parallel()
	to := receive(t)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 4)
	to.mu.Lock() // the receiver does not answer yet
	done := make(chan error)
	go func() { done <- f.Deliver(context.WithoutCancel(t.Context()), task{"crm"}) }()
	one := f.hooks.get("crm")
	for until := int64(0); until == 0; {
		one.progress.mu.Lock()
		until = one.progress.state.BatchEnd
		one.progress.mu.Unlock()
	}
	f.from(t, 6)
	to.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := to.all()
	checktest.MustEqual(t, len(got), 2, "the replay is lost: len(got)")
	checktest.MustEqual(t, len(got[0].changes), 4, "the replay is lost: len(got[0].changes)")
	checktest.MustEqual(t, len(got[1].changes), 2, "the replay is lost: len(got[1].changes)")
	checktest.Equal(t, f.stat(t).After, 8, "the replay is lost: f.stat(t).After; got %v", got)
}

// The job of a failing webhook waits for its next try. Resume makes it start now.
func TestResumeHurriesTheRetryOfAFailingWebhook(t *testing.T) {
	t.Parallel()
	to := receive(t, 503)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 5)
	var added []understudy.Job
	refused := error(nil)
	f.o.Enqueue = func(_ context.Context, jobs ...understudy.Job) ([]int64, error) {
		added = append(added, jobs...)
		return []int64{1}, refused
	}
	checktest.True(t, f.Deliver(t.Context(), task{"crm"}) != nil, "503 is a failure")
	checktest.MustNoError(t, f.Resume(t.Context(), "crm", nil), "resume")
	checktest.MustEqual(t, len(added), 1, "jobs")
	checktest.Equal(t, added[0].Kind+" "+added[0].Key, DeliverKind+" crm", "the job")
	checktest.True(t, added[0].Hurry, "the job waits for its next try")
	checktest.MustNoError(t, f.Deliver(t.Context(), task{"crm"}), "deliver")
	checktest.Equal(t, f.stat(t).State, "ok", "the state")
	refused = errors.New("the store is full")
	checktest.True(t, errors.Is(f.Resume(t.Context(), "crm", nil), refused), "the error of the store is lost")
}

func TestJobsAreMadeWhenNeeded(t *testing.T) {
	t.Parallel()
	to := receive(t)
	tab := some()
	f, c := hooked(t, tab, Hook{URL: to.server.URL, Role: "support", Kinds: []string{"messages"}})
	asked := 0
	f.o.Now = func() time.Time { return c.read().Add(time.Hour) } // it delivers after the pause all the same
	f.o.Enqueue = func(_ context.Context, jobs ...understudy.Job) ([]int64, error) {
		if jobs[0].Kind != DeliverKind || jobs[0].Key != "crm" {
			t.Errorf("asked for %+v", jobs)
		}
		asked++
		return []int64{1}, nil
	}
	look := func(want int, why string) {
		t.Helper()
		r := f.readers["twilio"]
		if err := r.readNew(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.hooks.enqueueDue(t.Context(), r)
		if asked != want {
			t.Errorf("%s: %d jobs, want %d", why, asked, want)
		}
	}
	deliver := func() {
		t.Helper()
		if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
			t.Fatal(err)
		}
	}
	look(1, "what is left from before is not known")
	look(1, "asked just now")
	c.step(time.Minute)
	look(2, "the job was lost")
	deliver()
	look(2, "all is delivered")
	tab.put("twilio", came("calls", "CA5"), changed("messages", "SM1", "body"))
	look(2, "nothing it may see and wants")
	tab.put("twilio", came("messages", "SM5"))
	look(3, "a message")
	tab.put("twilio", came("messages", "SM6"))
	look(3, "a job is under way")
	deliver()
	if got := to.all(); len(got) != 1 || !slices.Equal(got[0].changes, []string{"came messages SM5", "came messages SM6"}) {
		t.Errorf("delivered %v", got)
	}
	to.answers = []int{410}
	tab.put("twilio", came("messages", "SM7"))
	look(4, "another")
	deliver()
	c.step(time.Hour)
	look(4, "paused")
	if err := f.hooks.resume(t.Context(), "crm", nil); err != nil {
		t.Fatal(err)
	}
	look(5, "resumed")
	to.answers = []int{503, 503}
	to.headers.Set("Retry-After", "120")
	if err := f.Deliver(t.Context(), task{"crm"}); err == nil {
		t.Error("503 is no failure")
	}
	deliver() // the job is tried again before the receiver wants it
	look(5, "the receiver asked to wait")
	c.step(2 * time.Minute)
	look(6, "the receiver has had its pause, and nothing else changed")
}
