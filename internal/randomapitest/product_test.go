// Product: a spec is drawn of every API, its list is synced, and what is held and said is
// compared with what the API has.

package randomapitest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/cmd/understudy/specs"
	"understudy/internal/crawl"
	"understudy/internal/jobs"
	"understudy/internal/query"
	"understudy/internal/randomapitest"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// drawn is how many APIs a seed draws.
const drawn = 500

// fixedSeed draws the APIs that are the same in each run.
const fixedSeed = 20260728

func TestRandomAPIsAreCompleteOnlyWhenAllIsHeld(t *testing.T) {
	run := sample.OneIn(t, 50)
	first := judge(t, sample.Seed(t), run)
	if !sample.IsFullRun() {
		return
	}
	second := judge(t, fixedSeed, run)
	t.Logf("of both seeds: %s; %s", first, second)
}

// outcome is how one API came out.
type outcome struct {
	api    *randomapitest.API
	report crawl.Report
	held   []string
	failed error  // before anything could be synced
	spec   string // as drawn, with what it doubts
}

// judge walks the APIs of a seed and compares each with the truth. It returns the figures.
func judge(t *testing.T, seed uint64, run func() bool) string {
	var chosen []*randomapitest.API
	for _, a := range randomapitest.Draw(seed, drawn) {
		if run() {
			chosen = append(chosen, a)
		}
	}
	outcomes := make([]outcome, len(chosen))
	var wg sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, a := range chosen {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			outcomes[i] = walk(t, a)
		})
	}
	wg.Wait()
	proving, complete, unproved, falsely := 0, 0, 0, 0
	by := map[string]*[2]int{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.check(t) && o.report.Complete {
			falsely++
		}
		if !o.api.Proves() {
			unproved++
			continue
		}
		proving++
		if o.report.Complete {
			complete++
		} else {
			t.Logf("not complete: %s\n\t%s", o.api, o.why())
		}
		for _, h := range randomapitest.Habits {
			if o.api.Has(h.Name) {
				if by[h.Name] == nil {
					by[h.Name] = &[2]int{}
				}
				by[h.Name][0]++
				if o.report.Complete {
					by[h.Name][1]++
				}
			}
		}
	}
	for _, h := range randomapitest.Habits {
		if n := by[h.Name]; n != nil && n[0] > n[1] {
			t.Logf("%-45s %3d of %3d complete", h.Name, n[1], n[0])
		}
	}
	figures := fmt.Sprintf("seed %d: %d random APIs, %d falsely complete, %d of the %d that prove their end complete, %d prove none",
		seed, len(chosen), falsely, complete, proving, unproved)
	t.Log(figures)
	if sample.IsFullRun() && complete*100 < proving*95 {
		t.Errorf("seed %d: %d of %d are complete, want 95 %%", seed, complete, proving)
	}
	return figures
}

func (o *outcome) why() string {
	if o.failed != nil {
		return o.failed.Error()
	}
	return o.report.Why
}

// check compares an outcome with the truth, and reports whether it is wrong.
func (o *outcome) check(t *testing.T) bool {
	var missing []string
	for _, id := range o.api.Whole() {
		if !slices.Contains(o.held, id) {
			missing = append(missing, id)
		}
	}
	wrong := ""
	switch why := o.why(); {
	case o.report.Complete && len(missing) > 0:
		wrong = fmt.Sprintf("complete with %d of %d records", len(o.api.Whole())-len(missing), len(o.api.Whole()))
	case o.report.Complete && !o.api.Proves():
		wrong = "complete, and no answer proves it"
	case o.report.Complete:
	case strings.TrimSpace(why) == "":
		wrong = "not complete, and nothing says why"
	case len([]rune(why)) > 300:
		wrong = "the reason has more than 300 characters: " + why
	}
	if wrong != "" {
		t.Errorf("%s\n\t%s\n%s", wrong, o.api, o.spec)
	}
	return wrong != ""
}

// walk draws a spec of an API, without a line by hand, and syncs its list.
func walk(t *testing.T, a *randomapitest.API) (o outcome) {
	o.api = a
	web := httptest.NewServer(a)
	defer web.Close()
	from := web.URL + a.Path()
	if doc := a.Document(web.URL); doc != nil {
		from = filepath.Join(t.TempDir(), "api.json")
		if o.failed = os.WriteFile(from, doc, 0o600); o.failed != nil {
			return o
		}
	}
	var text, unsure bytes.Buffer
	o.failed = specs.Draw(t.Context(), []string{from}, nil, specs.Caller{}, &text, &unsure)
	o.spec = text.String() + "\n" + unsure.String()
	if o.failed != nil {
		return o
	}
	sp, err := upstream.ReadSpec("drawn.yaml", text.Bytes())
	if err != nil {
		o.failed = err
		return o
	}
	a.Begin()
	t.Run(fmt.Sprint(a.Number), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { o.sync(t, sp) })
	})
	return o
}

// inProcess sends requests to an API in the same process.
type inProcess struct{ http.Handler }

// RoundTrip has the handler answer.
func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.Host = r.URL.RequestURI(), r.URL.Host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	return w.Result(), nil
}

// sync syncs the kind of the API's list as the command does, until that ends.
func (o *outcome) sync(t *testing.T, sp *spec.Spec) {
	src := &spec.Source{Name: "drawn", Spec: sp, PublicURL: "http://127.0.0.1:4115"}
	client, err := upstream.New(upstream.Options{Source: src, Transport: inProcess{o.api}, Rate: 1e4})
	must(t, err)
	db := storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{"drawn": sp}})
	var walker *crawl.Crawler
	m, err := mirror.New(mirror.Options{
		Sources: []mirror.Source{{Source: src, Upstream: client}}, Store: db,
		PageSaved: func(s request.PageSaved) { _ = walker.HandlePageSaved(t.Context(), s) },
	})
	must(t, err)
	queue := &enqueuer{}
	walker, err = crawl.New(crawl.Options{Sources: []*spec.Source{src}, Mirror: m, Store: db, KV: db.KV, Jobs: queue})
	must(t, err)
	var kinds []jobs.Kind
	for name, do := range walker.Work() {
		kinds = append(kinds, jobs.Kind{Name: name, Concurrency: 1, Attempts: 1000, Backoff: 5 * time.Second, MaxBackoff: time.Minute,
			Run: func(ctx context.Context, r *jobs.Run) error { return do(ctx, r) }})
	}
	queue.Runner, err = jobs.New(jobs.Options{Store: db.Jobs, Kinds: kinds, OnlyProcess: true})
	must(t, err)
	must(t, walker.Load(t.Context(), nil))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{client.Run, m.Run, queue.Run, walker.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("end: %v", err)
			}
		})
	}
	defer func() {
		stop()
		running.Wait()
		must(t, client.Close())
	}()
	kind, list := listAt(sp, o.api.Path())
	if o.failed = walker.Keep(t.Context(), "drawn", kind); o.failed != nil {
		return
	}
	for began := time.Now(); ; time.Sleep(time.Second) {
		state, err := walker.ReadState(t.Context(), "drawn", kind)
		must(t, err)
		o.report = state.Report()
		stuck := !o.report.Stuck.IsZero() && time.Since(o.report.Stuck) > 2*time.Minute
		if o.report.Complete || o.report.Failed || stuck {
			break
		}
		if time.Since(began) > time.Hour {
			t.Errorf("%s: the sync does not end: %+v", o.api, o.report)
			break
		}
	}
	for _, unclocked := range []bool{false, true} {
		rows, err := db.ReadRows(t.Context(), query.RangeScan{Source: "drawn", Kind: kind, Shape: list.Shape,
			NoClock: unclocked, Limit: 10_000})
		must(t, err)
		for _, row := range rows {
			o.held = append(o.held, row.ID)
		}
	}
}

// listAt is the list at a path, with the name of its kind. It is an empty list where the spec
// has none.
func listAt(sp *spec.Spec, path string) (kind string, list *spec.List) {
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			if l.Path == path {
				return k.Name, l
			}
		}
	}
	return "", &spec.List{}
}

// enqueuer is the runner, which is made after the crawler.
type enqueuer struct{ *jobs.Runner }

// Enqueue promises work.
func (e *enqueuer) Enqueue(ctx context.Context, js ...understudy.Job) ([]int64, error) {
	return e.Runner.Enqueue(ctx, js...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
