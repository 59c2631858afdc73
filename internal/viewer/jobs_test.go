// Jobs: the page, its buttons, and whom it is for.

package viewer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
)

// busy is a workshop with a job in every state.
func busy() *viewertest.Jobs {
	return &viewertest.Jobs{All: []understudy.Job{
		{Number: 9, Kind: "sync calls", Key: "twilio/calls", Priority: understudy.PriorityBulk, State: understudy.JobRunning,
			Attempt: 2, MaxAttempts: 5,
			Weight:  8 << 20,
			Started: viewertest.Noon.Add(-4 * time.Minute), Progress: understudy.Progress{Done: 1204, Total: 5000, Note: "slice 2 of 4",
				End: viewertest.Noon.Add(12 * time.Minute)}},
		{Number: 8, Kind: "sync messages", Key: "twilio/messages", Priority: understudy.PriorityBulk, State: understudy.JobRunning, Attempt: 1,
			StopRequested: true, Started: viewertest.Noon.Add(-time.Second), Progress: understudy.Progress{Done: 7}},
		{Number: 7, Kind: "deliver changes", Key: "audit <script>", Priority: understudy.PrioritySoon, State: understudy.JobWaiting, Attempt: 1,
			MaxAttempts: 8, RunAfter: viewertest.Noon.Add(time.Minute), Error: "POST https://receiver.example: 503"},
		{Number: 6, Kind: "sweep calls", Priority: understudy.PrioritySteady, State: understudy.JobWaiting,
			Created: viewertest.Noon.Add(-time.Minute)},
		{Number: 5, Kind: "deliver changes", Key: "crm", State: understudy.JobFailed, Attempt: 8, MaxAttempts: 8,
			Ended: viewertest.Noon.Add(-time.Hour),
			Error: "POST https://crm.example: connection refused"},
		{Number: 4, Kind: "sync alerts", State: understudy.JobDone, Attempt: 1, Started: viewertest.Noon.Add(-2 * time.Hour),
			Ended:    viewertest.Noon.Add(-time.Hour),
			Progress: understudy.Progress{Done: 10006, Total: 10006, Note: "10006 records read, all lists complete"}},
		{Number: 3, Kind: "sync queues", State: understudy.JobCancelled, Ended: viewertest.Noon.Add(-2 * time.Hour)},
		{Number: 2, Kind: "sync keys", State: understudy.JobExpired, Ended: viewertest.Noon.Add(-3 * time.Hour)},
	}}
}

func TestJobsPage(t *testing.T) {
	w := busy()
	h := viewertest.Open(t, func(o *page.Options) { o.Jobs = w })
	page := h.Page("/jobs", viewertest.Berlin)
	viewertest.CheckGolden(t, "jobs", page)
	viewertest.CheckHTML(t, "jobs", page)
	for _, want := range []string{
		`value="1204" max="5000"`, "1,204 of 5,000", "slice 2 of 4", "about 12 min left", "try 2 of 5", "stopping",
		"connection refused", "2 running, 2 waiting, 2 failed, 2 finished",
		"10,006 records read, all lists complete", `data-t="Took">60 min</td>`,
		`action="/jobs/9/cancel"`, `action="/jobs/6/cancel"`, `action="/jobs/5/replay"`, `action="/jobs/2/replay"`, "audit &lt;script&gt;",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, not := range []string{"10,006 of", "MiB", "bulk", "steady", `/jobs/8/cancel`, `/jobs/9/replay`, `/jobs/5/cancel`} {
		if strings.Contains(page, not) {
			t.Errorf("the page offers %s", not)
		}
	}
	w.All = nil
	if page := h.Page("/jobs", viewertest.All); !strings.Contains(page, "No jobs.") {
		t.Error("no jobs, and the page does not say so")
	}
	w.Err = fmt.Errorf("store: read jobs: %w", understudy.ErrClosed)
	if status, _, _ := h.Get("/jobs", viewertest.All); status != 503 {
		t.Errorf("jobs that cannot be read: %d", status)
	}
}

// TestTextOfWorkersIsEscaped: what programs send about their jobs is text on the page, not HTML.
func TestTextOfWorkersIsEscaped(t *testing.T) {
	const text = `"'><img src=x onerror=alert(1)>`
	w := &viewertest.Jobs{}
	for state := understudy.JobWaiting; state <= understudy.JobExpired; state++ {
		w.All = append(w.All, understudy.Job{Number: int64(state), Kind: "mail" + text, Key: "key" + text, State: state, Attempt: 2,
			Started: viewertest.Noon.Add(-time.Minute), Error: "error" + text, Progress: understudy.Progress{Done: 1, Note: "note" + text}})
	}
	page := viewertest.Open(t, func(o *page.Options) { o.Jobs = w }).Page("/jobs", viewertest.Berlin)
	viewertest.CheckHTML(t, "jobs with HTML", page)
	checktest.Lacks(t, page, "<img src=x", "the page")
	for _, name := range []string{"Mail", "key", "error", "note"} {
		checktest.Contains(t, page, name+"&#34;&#39;&gt;&lt;img src=x", "the page")
	}
}

func TestJobsAreForThoseWhoSeeEverything(t *testing.T) {
	w := busy()
	h := viewertest.Open(t, func(o *page.Options) { o.Jobs = w })
	for _, who := range []string{"supporttoken", "clerktoken", "nobodytoken"} {
		for _, ask := range [][2]string{{"GET", "/jobs"}, {"POST", "/jobs/9/cancel"}, {"POST", "/jobs/5/replay"}} {
			status, body, _ := h.Do(ask[0], ask[1], "", viewertest.Browser{Token: who})
			checktest.Equal(t, status, 403, "%s %s as %s: status", ask[0], ask[1], who)
			checktest.Lacks(t, body, "Sync calls", "%s %s as %s: body", ask[0], ask[1], who)
			checktest.Lacks(t, body, "connection refused", "%s %s as %s: body", ask[0], ask[1], who)
		}
		if _, home, _ := h.Get("/", viewertest.Browser{Token: who}); strings.Contains(home, "/jobs") {
			t.Errorf("home leads %s to the jobs", who)
		}
	}
	if status, _, _ := h.Get("/jobs", viewertest.Browser{}); status != 401 {
		t.Errorf("nobody: %d", status)
	}
	if len(w.Cancelled)+len(w.Replayed) > 0 {
		t.Errorf("done all the same: %v %v", w.Cancelled, w.Replayed)
	}
	if status, _, _ := viewertest.Open(t).Get("/jobs", viewertest.All); status != 404 {
		t.Errorf("a server without jobs: %d", status)
	}
}

func TestJobButtons(t *testing.T) {
	w := busy()
	h := viewertest.Open(t, func(o *page.Options) { o.Jobs = w })
	home := map[string]string{"Sec-Fetch-Site": "same-origin"}
	for path, want := range map[string]int{
		"/jobs/9/cancel": 303, "/jobs/5/replay": 303, "/jobs/5/cancel": 400, "/jobs/9/replay": 400, "/jobs/77/cancel": 404, "/jobs/x/cancel": 404,
		"/jobs/99999999999999999999/replay": 404, "/jobs/-1/replay": 404,
	} {
		status, body, head := h.Do("POST", path, "a=b", viewertest.Browser{Token: "alltoken", Headers: home})
		if status != want || (want == 303) != (head.Get("Location") == "/jobs") {
			t.Errorf("%s: %d %s", path, status, head.Get("Location"))
		}
		if want != 303 {
			viewertest.CheckHTML(t, path, body)
		}
	}
	if !slices.Equal(w.Cancelled, []int64{9}) || !slices.Equal(w.Replayed, []int64{5}) {
		t.Errorf("cancelled %v, replayed %v", w.Cancelled, w.Replayed)
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"} {
		if status, _, _ := h.Do("POST", "/jobs/9/cancel", "a=b", viewertest.Browser{Token: "alltoken",
			Headers: map[string]string{name: value}}); status != 403 {
			t.Errorf("%s %s: %d", name, value, status)
		}
	}
	{
		status, _, _ := h.Get("/jobs/9/cancel", viewertest.All)
		checktest.True(t, status != 200, "GET cancels: status is 200")
		checktest.True(t, status != 303, "GET cancels: status is 303")
		checktest.True(t, len(w.Cancelled) <= 1, "GET cancels: len(w.Cancelled) is %v, want <= 1", len(w.Cancelled))
	}
}

// A job of one source names records that a credential of another may not know.
func TestJobsOfOtherSources(t *testing.T) {
	for sources, want := range map[int]bool{1: true, 2: false} {
		q := &page.Exchange{
			V: &page.Visitor{Options: page.Options{Jobs: busy(), Sources: make([]*spec.Source, sources)}}, Clock: page.Clock{Start: viewertest.Noon},
			Rights: page.Rights{Caller: understudy.Caller{Source: "twilio", Grant: &understudy.Grant{Role: understudy.RoleAll}}},
		}
		if got := viewer.CheckJobs(q) == nil; got != want {
			t.Errorf("a credential of one of %d sources sees jobs: %v", sources, got)
		}
		q.Rights.Caller.Source = ""
		if err := viewer.CheckJobs(q); err != nil {
			t.Errorf("who sees all of %d sources: %v", sources, err)
		}
	}
}
