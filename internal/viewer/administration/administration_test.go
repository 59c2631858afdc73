// Administration: what it shows, to whom, and what its forms do.

package administration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/internal/watch"
	"understudy/request"
)

// aServer has sent requests and has webhooks.
type aServer struct {
	spent   []request.Spending
	hooks   []request.Webhook
	resumed []string
}

func (s *aServer) Spending(string) []request.Spending { return s.spent }

func (s *aServer) Webhooks() []request.Webhook { return s.hooks }

func (s *aServer) Resume(_ context.Context, name string, after *int64) error {
	switch {
	case name != "crm":
		return fmt.Errorf("feed: %w", understudy.ErrNotFound)
	case after != nil && *after > 5000:
		return fmt.Errorf("feed: %w: after=%d: want 0 to 5000, the newest change", understudy.ErrInvalid, *after)
	case after != nil:
		name += fmt.Sprint(" after ", *after)
	}
	s.resumed = append(s.resumed, name)
	return nil
}

func (s *aServer) Pause(_ context.Context, name, by string) error {
	if name != "crm" && name != "erp" {
		return fmt.Errorf("feed: %w", understudy.ErrNotFound)
	}
	s.resumed = append(s.resumed, "pause "+name+" by "+by)
	return nil
}

// busyDay has requests in every hour but one, more of them by day.
func busyDay() (all []request.Spending) {
	from := viewertest.Noon.Truncate(request.SpendingStep).Add(-request.SpendingRetention + request.SpendingStep)
	for i := range int64(request.SpendingRetention / request.SpendingStep) {
		if i/12 == 3 {
			continue
		}
		s := request.Spending{From: from.Add(time.Duration(i) * request.SpendingStep)}
		s.ByReason[request.ReasonWaiting], s.ByReason[request.ReasonPoll], s.ByReason[request.ReasonSync] = i%7, 4, max(i-200, 0)/4
		s.Failed, s.ByCaller = i%2, map[string]int64{"": i % 7 / 6}
		for k := range i%7 - i%7/6 { // some of few callers, and of many with little
			s.ByCaller[[]string{"reports", "billing", "anna", fmt.Sprint("program-", i%29)}[(i+k)%4]]++
		}
		all = append(all, s)
	}
	return all
}

// On the first day the picture of the requests begins with the hour in which the first was sent.
func TestBudgetBeginsWhereDataBegin(t *testing.T) {
	for spans, first := range map[int]string{3: "11:10", 15: "10:10", 288: "12:10"} {
		day := busyDay()
		server := &aServer{spent: day[max(len(day)-spans, 0):]}
		shown := viewertest.Open(t, func(o *page.Options) { o.Webhooks, o.Spending = server, server.Spending }).Page("/-/administration",
			viewertest.All)
		_, marks, _ := strings.Cut(shown, `<g class="marks">`)
		if !strings.HasPrefix(marks, `<text x="0%" y="100%" dy="18" text-anchor="middle">`+first) || !strings.Contains(marks[:500], "12:10") {
			t.Errorf("%d spans: the axis is %.400s", spans, marks)
		}
	}
}

func TestAdministration(t *testing.T) {
	server := &aServer{spent: busyDay(), hooks: []request.Webhook{
		{Name: "crm", Source: "twilio", State: "paused", Why: "410 Gone", After: 1200, Behind: 31, Delivered: 1169,
			At: viewertest.Noon.Add(-time.Hour)},
		{Name: "erp", Source: "twilio", State: "ok", After: 1231, Delivered: 4, At: viewertest.Noon.Add(-time.Minute)},
	}}
	log := &viewertest.AuditLog{}
	h := viewertest.Open(t, viewertest.WithPrograms, func(o *page.Options) {
		o.Nodes = func() ([]request.Node, bool) {
			return []request.Node{
				{ID: "alpha-qk3x7c", Self: true, URL: "http://10.0.0.2:4114", Version: "1.0", Lease: 1750},
				{ID: "beta-m2v6ta", URL: "http://10.0.0.3:4114", Version: "1.0", Behind: 1204},
			}, true
		}
		o.Webhooks, o.Spending, o.Audit, o.Jobs = server, server.Spending, log, &viewertest.Jobs{}
		o.Snapshot = func(context.Context, string) page.Snapshot {
			return page.Snapshot{State: "limited", Why: "upstream answered 429", Since: viewertest.Noon.Add(-10 * time.Minute),
				NextProbe: viewertest.Noon.Add(time.Minute),
				Requests:  page.RequestCounts{Upstream: 4711, AtOnce: 6, AtOnceWhy: "with 9 at once, answers take 1.5 times as long"},
				Latencies: page.Latencies{UpstreamTimes: page.Times{Answers: 9, Mean: time.Second, P50: time.Second,
					P99: 2 * time.Second, Max: 2 * time.Second, Min: time.Millisecond}}}
		}
	})
	shown := h.Page("/-/administration", viewertest.All)
	viewertest.CheckGolden(t, "administration", shown)
	var total, failed int64
	for _, s := range server.spent {
		total, failed = total+s.Requests(), failed+s.Failed
	}
	for _, want := range []string{
		"Twilio limits our request rate", "next check", page.Thousands(total) + " in total", page.Thousands(failed) + " failed", "4,711 requests",
		"410 Gone", "31 waiting", `<th scope="row">reports</th>`, `<th scope="row">Others</th>`,
		`href="/-/connect"`, `href="/-/roles"`, `href="/jobs"`, "alpha-qk3x7c", "1.8 s left", "1,204", "http://10.0.0.3:4114",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(shown, "Checks of assembled") || strings.Contains(shown, "/-/administration/sessions") {
		t.Error("the page shows a reason nothing was spent on, or sessions where nobody signs in")
	}
	if home := h.Page("/", viewertest.All); !strings.Contains(home, `href="/-/administration"`) {
		t.Error("no page leads to it")
	}
	for form, want := range map[string]int{"": 303, "after=1,000": 303, "after=x": 400, "after=-1": 400, "after=9999": 400} {
		if status, body, _ := h.Do("POST", "/-/administration/webhooks/crm/resume", form, viewertest.All); status != want {
			t.Errorf("resume with %q: %d, want %d: %.300s", form, status, want, body)
		}
	}
	if status, _, _ := h.Do("POST", "/-/administration/webhooks/nothing/resume", "", viewertest.All); status != http.StatusNotFound {
		t.Errorf("a webhook that is not there: %d", status)
	}
	if strings.Contains(shown, "webhooks/crm/pause") || !strings.Contains(shown, `action="/-/administration/webhooks/erp/pause"`) {
		t.Error("one that is paused can be paused, or one that is not cannot")
	}
	for name, want := range map[string]int{"erp": 303, "nothing": 404} {
		if status, _, _ := h.Do("POST", "/-/administration/webhooks/"+name+"/pause", "", viewertest.All); status != want {
			t.Errorf("pause %s: %d, want %d", name, status, want)
		}
	}
	slices.Sort(server.resumed)
	if want := []string{"crm", "crm after 1000", "pause erp by everything"}; !slices.Equal(server.resumed, want) {
		t.Errorf("resumed %q, want %q", server.resumed, want)
	}
	checktest.MustEqual(t, len(log.Lines()), 6, "listed: len(log.Lines())")
	checktest.True(t, slices.Contains(log.Lines(), "administer webhook pause erp"),
		`listed: slices.Contains(log.Lines(), "administer webhook pause erp") is false`)
	checktest.True(t, slices.Contains(log.Lines(), "administer webhook replay after 1000 of crm"),
		`listed: slices.Contains(log.Lines(), "administer webhook replay afte… is false`)
	log.Fail(errors.Join(understudy.ErrNotAudited))
	if status, _, _ := h.Do("POST", "/-/administration/webhooks/crm/resume", "", viewertest.All); status != http.StatusServiceUnavailable ||
		len(server.resumed) != 3 {
		t.Errorf("what cannot be listed is done: %d, %q", status, server.resumed)
	}
}

// Nobody else sees any of it, nor learns which of it there is.
func TestAdministrationIsRefused(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) { o.Webhooks, o.Spending = &aServer{}, (&aServer{spent: busyDay()}).Spending })
	for _, route := range h.Viewer.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if !strings.HasPrefix(path, "/-/administration") {
			continue
		}
		at := strings.NewReplacer("{name}", "crm", "{id}", "0123456789abcdef").Replace(path)
		for _, token := range []string{"supporttoken", "clerktoken"} {
			status, body, _ := h.Do(method, at, "name=anna", viewertest.Browser{Token: token})
			if status != http.StatusForbidden || strings.Contains(body, "24 hours") {
				t.Errorf("%s %s as %s: %d", method, at, token, status)
			}
		}
		if status, _, _ := h.Do(method, at, "", viewertest.Browser{}); status != http.StatusUnauthorized {
			t.Errorf("%s %s as nobody: %d", method, at, status)
		}
	}
	if home := h.Page("/", viewertest.Support); strings.Contains(home, "dministration") {
		t.Error("others are led to administration")
	}
	for path, want := range map[string]int{"/-/administration/sessions": 404, "/-/administration?x=1": 400, "/-/administration": 200} {
		if status, _, _ := h.Get(path, viewertest.All); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}

// The card of watches counts everybody's, and marks those that stopped by themselves.
func TestAdministrationLeadsToWatches(t *testing.T) {
	db := storetest.Open(t, store.Options{})
	for id, stopped := range map[string]string{"one": "", "two": watch.Paused, "three": "The receiver refused a message: 550"} {
		note := fmt.Sprintf(`{"id":%q,"owner":{"Name":"anna"},"search":"failed","stopped":%q}`, id, stopped)
		if err := db.KV.SetValue(t.Context(), "watch/"+id, []byte(note)); err != nil {
			t.Fatal(err)
		}
	}
	book, err := watch.Open(t.Context(), watch.Options{Records: db, KV: db.KV, Key: []byte("key"),
		Enqueue: func(context.Context, ...understudy.Job) ([]int64, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	book.SetPolicy(watch.Policy{})
	h := viewertest.Open(t, func(o *page.Options) { o.Watches = book })
	shown := h.Page("/-/administration", viewertest.All)
	for _, want := range []string{`href="/-/watches"`, "3 watches", "1 stopped"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if shown := viewertest.Open(t).Page("/-/administration", viewertest.All); strings.Contains(shown, "/-/watches") {
		t.Error("it leads to watches where there are none")
	}
}
