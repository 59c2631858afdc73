// What is over: a policy, a grant, a webhook, what was erased. Nothing goes out of it.

package feed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// A subscriber of the former settings gets no change after them.
func TestNothingUnderAPolicyThatIsOver(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	ask := httptest.NewRequest(http.MethodGet, "/-/feed?after=0", nil)
	ask.SetBasicAuth("all", "")
	stream, err := r.feed.subscribe(t.Context(), ask, false)
	if err != nil {
		t.Fatal(err)
	}
	page, err := r.feed.subscribe(t.Context(), ask, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.feed.SetPolicy(t.Context(), r.feed.o.Policy); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r.feed.stream(w, ask, stream)
	{
		got := w.Body.String()
		checktest.Lacks(t, got, "data:", "a stream: got")
		checktest.Contains(t, got, "connect again", "a stream: got")
		checktest.Equal(t, strings.Count(got, "id: 0."), 1, `a stream: strings.Count(got, "id: 0.")`)
		checktest.Equal(t, strings.Count(got, "id:"), 1, `a stream: strings.Count(got, "id:")`)
	}
	w = httptest.NewRecorder()
	page.answerPage(t.Context(), w, ask)
	if got := strings.TrimSpace(w.Body.String()); !strings.HasPrefix(got, `{"changes":[],"next":"0.`) {
		t.Errorf("a page: %q", got)
	}
}

// A question waits no longer than its credential lasts.
func TestGrantEndsWaiting(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{Policy: Policy{Callers: people{lasts: 300 * time.Millisecond}}})
	began := time.Now()
	if got := r.page(t, "all", "after=now&wait=30s"); len(got.Changes) != 0 || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", got, time.Since(began))
	}
}

func TestQuestionsHaveNoBody(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+"/-/feed?after=0", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("all", "")
	resp, err := r.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	{
		body, err := io.ReadAll(resp.Body)
		checktest.MustNoError(t, err, "body %s", body)
		checktest.Equal(t, resp.StatusCode, http.StatusBadRequest, "resp.StatusCode; body %s", body)
		checktest.True(t, resp.Close, "resp.Close is false; body %s", body)
	}
}

// A delivery under way stops when the settings no longer name the webhook, and
// goes on where they say when they name another address or role.
func TestDeliveryFollowsTheSettings(t *testing.T) {
	t.Parallel()
	tab := newTable()
	for i := range 250 {
		tab.put("twilio", came("calls", fmt.Sprint("CA", i)))
	}
	var f *Feed
	var next []Hook
	batches := 0
	former := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		batches++
		p := f.o.Policy
		p.Hooks = next
		if err := f.SetPolicy(t.Context(), p); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(former.Close)
	f, _ = hooked(t, tab, Hook{URL: former.URL, Role: "all"})
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || batches != 1 {
		t.Fatalf("%d batches to a webhook that was taken away after the first, %v", batches, err)
	}
	to := receive(t)
	again := Hook{Name: "crm", Source: "twilio", URL: to.server.URL, Role: "few", AllowPrivate: true, Secret: understudy.NewSecret(hookSecret)}
	p := f.o.Policy
	p.Hooks = []Hook{again}
	if err := f.SetPolicy(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if s := f.stat(t); s.After != 100 {
		t.Errorf("named again, it goes on after %d", s.After)
	}
	{
		err := f.Deliver(t.Context(), task{"crm"})
		checktest.MustNoError(t, err, "as a role that sees no calls it gets")
		checktest.MustEqual(t, len(to.all()), 0, "as a role that sees no calls it gets: len(to.all())")
		checktest.Equal(t, f.stat(t).After, 250, "as a role that sees no calls it gets: f.stat(t).After")
	}
}

// What the store no longer tells of a change is not told from memory.
func TestForget(t *testing.T) {
	t.Parallel()
	r := open(t, newTable(), Options{})
	r.make(came("calls", "CA1"), changed("calls", "CA1", "sms.+14155550100"))
	l := r.listen(t, "all", "after=0")
	l.event(t)
	if _, m := l.event(t); line(m) != "2 changed calls CA1 sms.+14155550100" {
		t.Fatalf("before: %s", line(m))
	}
	r.mu.Lock()
	r.rows["twilio"][1].Fields = ""
	r.mu.Unlock()
	r.feed.Forget("twilio")
	r.feed.Forget("nothing")
	if got := lines(r.page(t, "all", "after=0").Changes); len(got) != 2 || got[1] != "2 changed calls CA1" {
		t.Errorf("afterwards: %q", got)
	}
	r.make(came("calls", "CA2"))
	if _, m := l.event(t); line(m) != "3 came calls CA2" {
		t.Errorf("who listens hears %s", line(m))
	}
}

// Enqueueing a job may wait for the store; subscribers do not.
func TestWebhooksHoldNobodyUp(t *testing.T) {
	t.Parallel()
	stuck, once := make(chan struct{}), sync.Once{}
	asked := make(chan struct{})
	hook := Hook{Name: "crm", URL: "https://crm.example/", Source: "twilio", Role: "all", Secret: understudy.NewSecret(hookSecret)}
	r := open(t, newTable(), Options{
		Policy: Policy{Hooks: []Hook{hook}},
		Enqueue: func(ctx context.Context, _ ...understudy.Job) ([]int64, error) {
			once.Do(func() { close(asked) })
			select {
			case <-stuck:
			case <-ctx.Done():
			}
			return nil, nil
		},
	})
	defer close(stuck)
	l := r.listen(t, "all", "after=now")
	<-asked
	for i := range 3 {
		r.make(came("calls", fmt.Sprint("CA", i)))
		if _, m := l.event(t); m["id"] != fmt.Sprint("CA", i) {
			t.Fatalf("heard %v", m)
		}
	}
}

// Another try has the same id, so that a receiver may drop it; a replay has not.
func TestIDsOfReplays(t *testing.T) {
	t.Parallel()
	to := receive(t, 500)
	f, c := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err == nil {
		t.Fatal("500 is no error")
	}
	c.step(time.Minute)
	for range 2 {
		if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
			t.Fatal(err)
		}
		f.from(t, 0)
	}
	got := to.all()
	checktest.MustEqual(t, len(got), 3, "len(got)")
	checktest.Equal(t, got[0].id, got[1].id, "got[0].id")
	checktest.True(t, got[1].id != got[2].id, "got[1].id is %v", got[1].id)
	checktest.Equal(t, len(got[2].changes), len(got[0].changes), "len(got[2].changes)")
}

// A page of another site could read nothing, but keep the feed busy.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	for site, want := range map[string]int{"cross-site": 403, "same-origin": 200, "same-site": 200, "none": 200, "": 200} {
		for _, path := range []string{"/-/feed?after=0&limit=1", "/-/feed.json"} {
			if resp, body := r.get(t, "all", path, "Sec-Fetch-Site", site); resp.StatusCode != want {
				t.Errorf("%s from %q: %d %s", path, site, resp.StatusCode, body)
			}
		}
	}
	if resp, _ := r.get(t, "all", "/-/feed.json", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document"); resp.StatusCode != 200 {
		t.Errorf("a link is answered %d", resp.StatusCode)
	}
}

// While nobody follows, changes are not read from the store: who comes then reads
// those it lacks by itself, and hears of what comes after.
func TestNobodyFollows(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{Limits: Limits{PollInterval: time.Hour}})
	one := r.feed.readers["twilio"]
	r.put("twilio", came("calls", "CA8"), came("calls", "CA9"))
	if r.feed.hasFollower("twilio") {
		t.Fatal("somebody follows")
	}
	if err := one.skipToNewest(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	reads := r.reads
	r.mu.Unlock()
	n, head, moved, held := one.copySince(8, make([]understudy.Change, 4))
	checktest.Equal(t, reads, 0, "reads")
	checktest.Equal(t, head, 10, "head")
	checktest.MustTrue(t, !held, "held is true")
	checktest.Equal(t, n, 0, "n")
	if a := r.page(t, "all", "after=8"); len(a.Changes) != 2 {
		t.Errorf("after 8: %v", a.Changes)
	}
	l := r.listen(t, "all", "")
	if !r.feed.hasFollower("twilio") {
		t.Error("a stream does not follow")
	}
	r.make(came("calls", "CA10"))
	if id, m := l.event(t); id != "11" || line(m) != "11 came calls CA10" {
		t.Errorf("heard %s %s", id, line(m))
	}
	select {
	case <-moved:
	default:
		t.Error("a waiting subscriber was not woken")
	}
}
