// Jobs: the page, its buttons, and whom it is for.

package viewer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/request"
	"understudy/spec"
)

// workshop is a runner that does as it is told.
type workshop struct {
	jobs      []understudy.Job
	err       error
	cancelled []int64
	replayed  []int64
}

func (w *workshop) Jobs(_ context.Context, f understudy.JobFilter) ([]understudy.Job, error) {
	var all []understudy.Job
	for _, j := range w.jobs {
		if slices.Contains(f.States, j.State) {
			all = append(all, j)
		}
	}
	return all[:min(len(all), f.Limit)], w.err
}

func (w *workshop) find(number int64, live bool) error {
	for _, j := range w.jobs {
		if j.Number != number {
			continue
		}
		if live != (j.State <= understudy.JobRunning) {
			return fmt.Errorf("jobs: cancel job %d: %w: it is %s", number, understudy.ErrInvalid, j.State)
		}
		return nil
	}
	return fmt.Errorf("jobs: job %d: %w", number, understudy.ErrNotFound)
}

func (w *workshop) Cancel(_ context.Context, number int64) error {
	if err := w.find(number, true); err != nil {
		return err
	}
	w.cancelled = append(w.cancelled, number)
	return nil
}

func (w *workshop) Replay(_ context.Context, number int64) (int64, error) {
	if err := w.find(number, false); err != nil {
		return 0, err
	}
	w.replayed = append(w.replayed, number)
	return number + 100, nil
}

// busy is a workshop with a job in every state.
func busy() *workshop {
	return &workshop{jobs: []understudy.Job{
		{Number: 9, Kind: "sync calls", Key: "twilio/calls", Priority: understudy.Bulk, State: understudy.JobRunning, Attempt: 2, Attempts: 5,
			Weight:  8 << 20,
			Started: noon.Add(-4 * time.Minute), Progress: understudy.Progress{Done: 1204, Total: 5000, Note: "slice 2 of 4",
				End: noon.Add(12 * time.Minute)}},
		{Number: 8, Kind: "sync messages", Key: "twilio/messages", Priority: understudy.Bulk, State: understudy.JobRunning, Attempt: 1,
			Stop: true, Started: noon.Add(-time.Second), Progress: understudy.Progress{Done: 7}},
		{Number: 7, Kind: "deliver changes", Key: "audit <script>", Priority: understudy.Soon, State: understudy.JobWaiting, Attempt: 1,
			Attempts: 8, RunAfter: noon.Add(time.Minute), Error: "POST https://receiver.example: 503"},
		{Number: 6, Kind: "sweep calls", Priority: understudy.Steady, State: understudy.JobWaiting, Created: noon.Add(-time.Minute)},
		{Number: 5, Kind: "deliver changes", Key: "crm", State: understudy.JobFailed, Attempt: 8, Attempts: 8, Ended: noon.Add(-time.Hour),
			Error: "POST https://crm.example: connection refused"},
		{Number: 4, Kind: "sync alerts", State: understudy.JobDone, Attempt: 1, Started: noon.Add(-2 * time.Hour), Ended: noon.Add(-time.Hour),
			Progress: understudy.Progress{Done: 10006, Total: 10006, Note: "10006 records seen, every list to its end"}},
		{Number: 3, Kind: "sync queues", State: understudy.JobCancelled, Ended: noon.Add(-2 * time.Hour)},
		{Number: 2, Kind: "sync keys", State: understudy.JobExpired, Ended: noon.Add(-3 * time.Hour)},
	}}
}

func TestJobsPage(t *testing.T) {
	w := busy()
	h := open(t, func(o *page.Options) { o.Jobs = w })
	page := h.page("/jobs", berlin)
	golden(t, "jobs", page)
	wellFormed(t, "jobs", page)
	for _, want := range []string{
		`value="1204" max="5000"`, "1,204 of 5,000", "slice 2 of 4", "about 12 min left", "try 2 of 5", "asked to end",
		"connection refused", "2 running, 2 waiting, 2 failed, 2 ended",
		"10,006 records seen, every list to its end", `data-t="Took">60 min</td>`,
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
	w.jobs = nil
	if page := h.page("/jobs", all); !strings.Contains(page, "Nothing to do") {
		t.Error("no jobs, and the page does not say so")
	}
	w.err = fmt.Errorf("store: read jobs: %w", understudy.ErrClosed)
	if status, _, _ := h.get("/jobs", all); status != 503 {
		t.Errorf("jobs that cannot be read: %d", status)
	}
}

func TestJobsAreForThoseWhoSeeEverything(t *testing.T) {
	w := busy()
	h := open(t, func(o *page.Options) { o.Jobs = w })
	for _, who := range []string{"supporttoken", "clerktoken", "nobodytoken"} {
		for _, ask := range [][2]string{{"GET", "/jobs"}, {"POST", "/jobs/9/cancel"}, {"POST", "/jobs/5/replay"}} {
			status, body, _ := h.do(ask[0], ask[1], "", as{token: who})
			if status != 403 || strings.Contains(body, "Sync calls") || strings.Contains(body, "connection refused") {
				t.Errorf("%s %s as %s: %d", ask[0], ask[1], who, status)
			}
		}
		if _, home, _ := h.get("/", as{token: who}); strings.Contains(home, "/jobs") {
			t.Errorf("home leads %s to the jobs", who)
		}
	}
	if status, _, _ := h.get("/jobs", as{}); status != 401 {
		t.Errorf("nobody: %d", status)
	}
	if len(w.cancelled)+len(w.replayed) > 0 {
		t.Errorf("done all the same: %v %v", w.cancelled, w.replayed)
	}
	if status, _, _ := open(t).get("/jobs", all); status != 404 {
		t.Errorf("a server without jobs: %d", status)
	}
}

func TestJobButtons(t *testing.T) {
	w := busy()
	h := open(t, func(o *page.Options) { o.Jobs = w })
	home := map[string]string{"Sec-Fetch-Site": "same-origin"}
	for path, want := range map[string]int{
		"/jobs/9/cancel": 303, "/jobs/5/replay": 303, "/jobs/5/cancel": 400, "/jobs/9/replay": 400, "/jobs/77/cancel": 404, "/jobs/x/cancel": 404,
		"/jobs/99999999999999999999/replay": 404, "/jobs/-1/replay": 404,
	} {
		status, body, head := h.do("POST", path, "a=b", as{token: "alltoken", headers: home})
		if status != want || (want == 303) != (head.Get("Location") == "/jobs") {
			t.Errorf("%s: %d %s", path, status, head.Get("Location"))
		}
		if want != 303 {
			wellFormed(t, path, body)
		}
	}
	if !slices.Equal(w.cancelled, []int64{9}) || !slices.Equal(w.replayed, []int64{5}) {
		t.Errorf("cancelled %v, replayed %v", w.cancelled, w.replayed)
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"} {
		if status, _, _ := h.do("POST", "/jobs/9/cancel", "a=b", as{token: "alltoken", headers: map[string]string{name: value}}); status != 403 {
			t.Errorf("%s %s: %d", name, value, status)
		}
	}
	if status, _, _ := h.get("/jobs/9/cancel", all); status == 200 || status == 303 || len(w.cancelled) > 1 {
		t.Errorf("GET cancels: %d", status)
	}
}

func TestSyncs(t *testing.T) {
	h := open(t, func(o *page.Options) {
		o.Snapshot = func(ctx context.Context, source string) page.Snapshot {
			s := snapshot(ctx, source)
			s.Kinds["calls"] = page.Held{Records: 5000, Complete: true, CaughtUp: noon.Add(-10 * time.Second)}
			s.Kinds["messages"] = page.Held{Records: 1204, Why: "backfill runs", Running: true, Done: 1204, Total: 10000, ETA: 4 * time.Minute}
			s.Kinds["conferences"] = page.Held{Records: 12, Why: "not swept for 26 h"}
			s.Kinds["queues"] = page.Held{Records: 3, Running: true, Done: 3}
			s.Webhooks = []request.Webhook{{Name: "crm", State: "paused", Why: "The receiver answers 500.", Failing: noon.Add(-time.Hour),
				Behind: 1300},
				{Name: "audit", State: "ok"}, {Name: "late", State: "failing"}}
			return s
		}
	})
	page := h.page("/", berlin)
	golden(t, "home-syncs", page)
	wellFormed(t, "syncs", page)
	for _, want := range []string{"backfill runs", `value="1204" max="10000"`, "about 4 min left", "not swept for 26 h", "all held",
		"1,300 behind", "The receiver answers 500."} {
		if !strings.Contains(page, want) {
			t.Errorf("home lacks %q", want)
		}
	}
	if support := h.page("/", as{token: "supporttoken"}); strings.Contains(support, "crm") || !strings.Contains(support, "backfill runs") {
		t.Error("who does not see everything reads of webhooks, or not of syncs")
	}
	data := h.page("/index.json", all)
	for _, want := range []string{`"why":"backfill runs","sync":{"done":1204,"total":10000,"eta":240}`, `"complete":true`, `"sync":null`} {
		if !strings.Contains(data, want) {
			t.Errorf("index.json lacks %s", want)
		}
	}
}

// TestIndexDataSaysWhyAKindIsNotComplete: also of kinds that were never synced.
func TestIndexDataSaysWhyAKindIsNotComplete(t *testing.T) {
	var home struct {
		Sources []struct {
			Kinds []struct {
				Name, Why string
				Complete  bool
			}
		}
	}
	must(t, json.Unmarshal([]byte(open(t).page("/index.json", all)), &home))
	for _, k := range home.Sources[0].Kinds {
		if k.Complete == (k.Why != "") {
			t.Errorf("%s: complete is %v, why %q", k.Name, k.Complete, k.Why)
		}
	}
}

// A job of one source names records that a credential of another may not know.
func TestJobsOfOtherSources(t *testing.T) {
	for sources, want := range map[int]bool{1: true, 2: false} {
		q := &page.Exchange{
			V: &page.Visitor{Options: page.Options{Jobs: busy(), Sources: make([]*spec.Source, sources)}}, Clock: page.Clock{Start: noon},
			Rights: page.Rights{Caller: understudy.Caller{Source: "twilio", Grant: &understudy.Grant{Role: understudy.RoleAll}}},
		}
		if got := checkJobs(q) == nil; got != want {
			t.Errorf("a credential of one of %d sources sees jobs: %v", sources, got)
		}
		q.Rights.Caller.Source = ""
		if err := checkJobs(q); err != nil {
			t.Errorf("who sees all of %d sources: %v", sources, err)
		}
	}
}
