// What is over: a policy, a grant, a webhook. Nothing goes out under it.

package feed

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
)

// A subscriber that asked before the settings changed is told nothing after.
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
	if got := w.Body.String(); strings.Contains(got, "data:") || !strings.Contains(got, "come back") || strings.Count(got, "id: 0\n") != 1 || strings.Count(got, "id:") != 1 {
		t.Errorf("a stream: %q", got)
	}
	w = httptest.NewRecorder()
	r.feed.page(t.Context(), w, ask, page)
	if got := strings.TrimSpace(w.Body.String()); got != `{"changes":[],"next":0}` {
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
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusBadRequest || !resp.Close {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
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
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 0 || f.stat(t).After != 250 {
		t.Errorf("as a role that sees no calls it gets %v, %v", to.all(), err)
	}
}
