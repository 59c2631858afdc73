// Real parts: the slow API over HTTP, a store on disk, the mirror, the runner.

package crawl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/crawl"
	"understudy/internal/jobs"
	"understudy/internal/query"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

const account = "AC00000000000000000000000000000001"

// records is how many calls the API has.
const records = 1000

// system is everything between the API and the change log.
type system struct {
	t      *testing.T
	api    *httptest.Server
	src    *spec.Source
	db     *store.DB
	mirror *mirror.Mirror
	runner *jobs.Runner
	walker *crawl.Crawler
	ahead  atomic.Int64 // the walker's clock is so much ahead
	read   atomic.Int64 // rows of messages that the walker was given by the store
	stop   func()
}

// open starts an API and Understudy before it.
func open(t *testing.T, o slowapi.Options) *system {
	t.Helper()
	o.Epoch = time.Now().Truncate(time.Second)
	api, err := slowapi.New(o)
	must(t, err)
	web := httptest.NewServer(api)
	t.Cleanup(func() { web.Close(); must(t, api.Close()) })
	return openAt(t, web, storetest.File(t), crawl.Settings{})
}

func openAt(t *testing.T, web *httptest.Server, path string, settings crawl.Settings, roots ...string) *system {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	if len(roots) > 0 {
		var err error
		sp, err = upstream.ReadBuiltIn("twilio")
		must(t, err)
		sp.SplitByRoot()
	}
	return openSource(t, web, path, settings, &spec.Source{Name: "twilio", Spec: sp, User: account,
		PublicURL: "http://127.0.0.1:4115", Roots: roots})
}

// counted is a store that counts the rows of messages it gives.
type counted struct {
	*store.DB
	rows *atomic.Int64
}

func (c counted) ReadRows(ctx context.Context, q query.RangeScan) ([]understudy.Row, error) {
	rows, err := c.DB.ReadRows(ctx, q)
	if q.Kind == "messages" {
		c.rows.Add(int64(len(rows)))
	}
	return rows, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type enqueuer struct{ h *system }

func (e enqueuer) Enqueue(ctx context.Context, js ...understudy.Job) ([]int64, error) {
	return e.h.runner.Enqueue(ctx, js...)
}

// await asks until something holds.
func (h *system) await(what string, holds func() bool) {
	h.t.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			all, _ := h.runner.ListJobs(context.Background(), understudy.JobFilter{Limit: 20})
			for _, j := range all {
				h.t.Logf("job %s %s: %s %s", j.Kind, j.Key, j.State, j.Error)
			}
			h.t.Fatalf("%s does not come", what)
		}
	}
}

// sync has a kind synced and waits until it is complete.
func (h *system) sync(kind string) {
	h.t.Helper()
	must(h.t, h.walker.Keep(h.t.Context(), "twilio", kind))
	h.await(kind+" complete", func() bool { return h.state(kind).Complete })
}

func (h *system) state(kind string) crawl.State {
	h.t.Helper()
	s, err := h.walker.ReadState(h.t.Context(), "twilio", kind)
	must(h.t, err)
	return s
}

// swept makes the crawler's clock go on and waits until everything was walked
// since.
func (h *system) swept(kind string) {
	h.t.Helper()
	h.ahead.Add(int64(20 * time.Hour))
	since := time.Now().Add(time.Duration(h.ahead.Load()))
	must(h.t, h.walker.Keep(h.t.Context(), "twilio", kind))
	h.await("the sweep of "+kind, func() bool { s := h.state(kind); return s.Complete && !s.Swept.Before(since.Truncate(time.Second)) })
}

// control tells the API something.
func (h *system) control(path, body string) []byte {
	h.t.Helper()
	resp, err := http.Post(h.api.URL+path, "application/json", strings.NewReader(body))
	must(h.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	must(h.t, err)
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%s %s: %d %s", path, body, resp.StatusCode, raw)
	}
	return raw
}

// edits changes records and returns their ids.
func (h *system) edits(records string) []string {
	h.t.Helper()
	var out struct{ Changed []string }
	must(h.t, json.Unmarshal(h.control("/-/edit", `{"kind":"calls","records":[`+records+`]}`), &out))
	return out.Changed
}

// last is the number of the newest change.
func (h *system) last() int64 {
	n := int64(0)
	for {
		some, err := h.db.ReadChanges(h.t.Context(), "twilio", n, 1000)
		must(h.t, err)
		if len(some) == 0 {
			return n
		}
		n = some[len(some)-1].N
	}
}

// log are the changes of a kind after one, as ID WHAT, in order.
func (h *system) log(kind string, after int64) []string {
	h.t.Helper()
	var out []string
	for {
		some, err := h.db.ReadChanges(h.t.Context(), "twilio", after, 1000)
		must(h.t, err)
		if len(some) == 0 {
			slices.Sort(out)
			return out
		}
		for _, c := range some {
			if after = c.N; c.Kind == kind {
				out = append(out, c.ID+" "+c.Type.String())
			}
		}
	}
}

// asked are the requests the API had, by target.
func (h *system) asked() map[string]int {
	h.t.Helper()
	resp, err := http.Get(h.api.URL + "/-/stats")
	must(h.t, err)
	defer resp.Body.Close()
	var out struct {
		ByTarget map[string]int `json:"by_target"`
	}
	must(h.t, json.NewDecoder(resp.Body).Decode(&out))
	return out.ByTarget
}

func total(asked map[string]int) int {
	n := 0
	for _, times := range asked {
		n += times
	}
	return n
}

// One in a hundred is deleted, redacted, re-priced or re-stated, and twenty come
// with older clocks, without a hint: one sweep finds each, once, and nothing else.
func TestTheLateAreFoundOnce(t *testing.T) {
	h := open(t, slowapi.Options{Records: records})
	var b bytes.Buffer
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"index":%d,"delete":true}`, 7+i*47)
	}
	inserted := h.edits(b.String())
	h.sync("calls")
	s := h.state("calls")
	if s.Done != records-20 {
		t.Errorf("%d calls were walked, want %d", s.Done, records-20)
	}
	before := total(h.asked())
	from := h.last()
	var want []string
	for _, id := range h.edits(strings.ReplaceAll(b.String(), "delete", "restore")) {
		want = append(want, id+" came")
	}
	if len(want) != len(inserted) {
		t.Fatalf("%d came back of %d", len(want), len(inserted))
	}
	for i := range records / 100 {
		index := 11 + i*97
		kind, what := []string{`"delete":true`, `"price":"-9.99"`, `"status":"failed"`}[i%3], "changed"
		if i%3 == 0 {
			what = "went"
		}
		for _, id := range h.edits(fmt.Sprintf(`{"index":%d,%s}`, index, kind)) {
			want = append(want, id+" "+what)
		}
	}
	slices.Sort(want)
	h.swept("calls")
	if got := h.log("calls", from); !slices.Equal(got, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	t.Logf("%d requests until it was complete, %d for the sweep", before, total(h.asked())-before)
	h.swept("calls")
	if got := h.log("calls", from); !slices.Equal(got, want) {
		t.Errorf("after another sweep: %d changes, want %d", len(got), len(want))
	}
}

// A burst of five hundred between two looks at the newest page.
func TestABurstBetweenPolls(t *testing.T) {
	h := open(t, slowapi.Options{Records: 100})
	h.sync("calls")
	from := h.last()
	h.control("/-/advance", `{"calls":500,"seconds":60}`)
	page, err := h.src.Spec.Resolve("twilio", "/2010-04-01/Accounts/"+account+"/Calls.json", "")
	must(t, err)
	_, err = h.mirror.Fill(t.Context(), request.Fill{Target: page, Reason: request.ReasonPoll})
	must(t, err)
	h.await("the burst", func() bool {
		n := 0
		for _, line := range h.log("calls", from) {
			if strings.HasSuffix(line, " came") {
				n++
			}
		}
		return n == 500 && h.state("calls").Complete
	})
}

// Every kind of the API can be synced or says why not; what is synced is what
// there is.
func TestEveryKindIsSynced(t *testing.T) {
	h := open(t, slowapi.Options{Records: 200})
	for _, k := range h.src.Spec.Kinds {
		err := h.walker.Keep(t.Context(), "twilio", k.Name)
		switch {
		case crawl.IsNeverSynced(err) && len(k.ID) == 0:
		case err != nil:
			t.Errorf("%s: %v", k.Name, err)
		default:
			h.await(k.Name+" complete", func() bool {
				s := h.state(k.Name)
				if s.Failed {
					t.Fatalf("%s: %s", k.Name, s.Why)
				}
				return s.Complete
			})
			t.Logf("%s: %d", k.Name, h.state(k.Name).Done)
		}
	}
	h.swept("calls")
	for _, k := range h.src.Spec.Kinds {
		if s, err := h.walker.ReadState(t.Context(), "twilio", k.Name); err == nil && s.Failed {
			t.Errorf("%s: %s", k.Name, s.Why)
		}
	}
}

// Stopped at any moment and begun again in the same folder, a sync asks for no
// page twice but those under way.
func TestAStoppedSyncGoesOn(t *testing.T) {
	api, err := slowapi.New(slowapi.Options{Records: records, Epoch: time.Now().Truncate(time.Second)})
	must(t, err)
	web := httptest.NewServer(api)
	t.Cleanup(func() { web.Close(); must(t, api.Close()) })
	path := storetest.File(t)
	settings := crawl.Settings{Page: 20}
	h := openAt(t, web, path, settings)
	must(t, h.walker.Keep(t.Context(), "twilio", "calls"))
	stops := 0
	for _, at := range []int{3, 15, 40, 70} {
		h.await("progress", func() bool { return total(h.asked()) >= at || h.state("calls").Complete })
		h.stop()
		stops++
		h = openAt(t, web, path, settings)
	}
	h.await("calls complete", func() bool { return h.state("calls").Complete })
	if n := len(h.log("calls", 0)); n != records {
		t.Errorf("%d changes, want %d", n, records)
	}
	twice := 0
	for target, times := range h.asked() {
		if strings.Contains(target, "PageSize=20") {
			twice += times - 1
		}
	}
	if twice > stops*4 {
		t.Errorf("%d pages were asked for again in %d stops", twice, stops)
	}
}

// What no path names is taken away by the mirror: once, and as a change.
func TestRemoveIsAChange(t *testing.T) {
	h := open(t, slowapi.Options{Records: 20})
	h.sync("calls")
	from := h.last()
	rows, err := h.db.ReadRows(t.Context(), query.RangeScan{Source: "twilio", Kind: "calls", Shape: "calls", Limit: 1})
	must(t, err)
	h.edits(`{"sid":"` + rows[0].ID + `","delete":true}`) // or the next poll brings it back
	for range 2 {
		must(t, h.mirror.Remove(t.Context(), "twilio", "calls", rows[0].ID))
	}
	if got := h.log("calls", from); !slices.Equal(got, []string{rows[0].ID + " went"}) {
		t.Errorf("changes %v", got)
	}
	if _, err := h.db.Record(t.Context(), "twilio", "calls", "calls", rows[0].ID); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("still held: %v", err)
	}
	if err := h.mirror.Remove(t.Context(), "twilio", "none", "x"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("no kind: %v", err)
	}
}
