// Run: adds jobs for the work that is due, and maps job names to functions.

package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/jobs"
)

// round is the interval between two checks of what is due. It is shorter if sweeps
// are frequent.
const round = 30 * time.Second

// failedRest is the pause of a part after its job has failed for good.
const failedRest = 15 * time.Minute

// verbs are the functions of the jobs, by job name without the kind.
var verbs = map[string]func(*jobRun, context.Context) error{
	"sync": (*jobRun).sync, "catch up": (*jobRun).catchUp, "sweep": (*jobRun).sweep, "check": (*jobRun).check,
}

// Work returns the functions of the crawler's jobs, by job kind ("sync calls").
func (w *Crawler) Work() map[string]func(context.Context, Run) error {
	out := map[string]func(context.Context, Run) error{}
	for _, x := range w.walks {
		for verb, do := range verbs {
			out[verb+" "+x.plan.kind.Name] = func(ctx context.Context, run Run) error {
				t, err := w.begin(run)
				if err != nil || t.x == nil || t.x.plan.bare { // the source no longer covers the root
					return err
				}
				return do(t, ctx)
			}
		}
	}
	return out
}

// maxWalkRuns is how many runs of a walk may begin. Failures of upstream do not count, and no number of
// killed processes is a reason to give up.
const maxWalkRuns = 1000

// JobKinds returns the kinds of jobs that do the work of a crawler.
func JobKinds(work map[string]func(context.Context, Run) error) (all []jobs.Kind) {
	for name, do := range work {
		maxBackoff := time.Minute
		if strings.HasPrefix(name, "sweep ") {
			maxBackoff = time.Hour // a failed sweep has cost a whole walk
		}
		all = append(all, jobs.Kind{
			Name: name, Run: func(ctx context.Context, r *jobs.Run) error { return do(ctx, r) },
			Concurrency: 1, Attempts: maxWalkRuns, Weight: 8 << 20, Backoff: 5 * time.Second, MaxBackoff: maxBackoff,
		})
	}
	return all
}

// Run handles saved pages and adds jobs for the work that is due, until ctx ends.
// Load has to be called first.
func (w *Crawler) Run(ctx context.Context) error {
	ticker := time.NewTicker(min(round, w.o.Settings.Sweep/10))
	defer ticker.Stop()
	w.tryAgain(ctx, w.due)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			w.tryAgain(ctx, w.look)
		case <-ticker.C:
			w.tryAgain(ctx, w.due)
		}
	}
}

// tryAgain calls what. A failure is logged, and the work is tried again later.
func (w *Crawler) tryAgain(ctx context.Context, what func(context.Context) error) {
	if err := what(ctx); err != nil && ctx.Err() == nil {
		w.o.Logger.Error("walk: what is due cannot be promised; tried again", "error", err)
	}
}

// Load reads the state of every kind. It starts to keep up the given kinds (source
// to kinds) and has all kinds polled that are kept up. The error wraps ErrInvalid
// if a given kind does not exist or cannot be synced.
func (w *Crawler) Load(ctx context.Context, given map[string][]string) error {
	if err := w.roots.load(ctx); err != nil {
		return err
	}
	for source, kinds := range given {
		for _, kind := range kinds {
			if err := w.keep(ctx, source, kind); err != nil {
				return err
			}
		}
	}
	for x := range w.each() {
		if err := w.recall(ctx, x); err != nil {
			return err
		}
	}
	return w.polls(ctx)
}

// polls has the mirror poll what is kept up.
func (w *Crawler) polls(ctx context.Context) error {
	for _, src := range w.o.Sources {
		var entries []string
		for x := range w.each() {
			if x.plan.source != src || x.tip.Zero() {
				continue
			}
			m, err := w.states.read(ctx, x)
			if err != nil {
				return err
			}
			switch {
			case m.Keep && x.plan.root != "":
				entries = append(entries, x.tip.URI)
			case m.Keep:
				entries = append(entries, x.plan.kind.Name)
			}
		}
		if err := w.o.Mirror.PollSynced(src.Name, entries); err != nil {
			return fmt.Errorf("walk: polls: %w", err)
		}
	}
	return nil
}

// Keep has a kind synced and kept up from now on, and the kind it lies under,
// too. Errors: ErrInvalid for what is no kind; one that Never knows for a kind
// that cannot be synced, with the reason.
func (w *Crawler) Keep(ctx context.Context, source, kind string) error {
	if err := w.keep(ctx, source, kind); err != nil {
		return err
	}
	if err := w.polls(ctx); err != nil {
		return err
	}
	return w.due(ctx)
}

func (w *Crawler) keep(ctx context.Context, source, kind string) error {
	x, err := w.find(source, kind)
	if err != nil {
		return err
	}
	if x.plan.parentKind != nil {
		if err := w.keep(ctx, source, x.plan.parentKind.Name); err != nil {
			return err
		}
	}
	if x.plan.bare { // it says that each root's walk is kept up
		if err := x.keep(ctx, w); err != nil {
			return err
		}
	}
	for one := range x.each() {
		if err := one.keep(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// keep notes that one walk is kept up.
func (x *kindCrawl) keep(ctx context.Context, w *Crawler) error {
	m, err := w.states.read(ctx, x)
	if err != nil || m.Keep && len(m.Failures) == 0 {
		return err
	}
	return w.states.change(ctx, x, func(m *kindState) {
		m.Keep, m.Failures = true, slices.Clone(m.Failures)
		for i := range m.Failures {
			m.Failures[i].At = 0 // tried now
		}
		if m.Rest == 0 {
			m.Failures = nil // nothing is complete before it was tried again
		}
	})
}

// Drop ends that a kind is kept up; what is held stays. What lies under it is
// dropped, too. ErrInvalid as with Keep.
func (w *Crawler) Drop(ctx context.Context, source, kind string) error {
	x, err := w.find(source, kind)
	if err != nil {
		return err
	}
	for _, name := range w.names {
		y := w.walks[name]
		if y != x && (y.plan.source != x.plan.source || y.plan.parentKind != x.plan.kind) {
			continue
		}
		ends := slices.Collect(y.each())
		if y.plan.bare {
			ends = append(ends, y)
		}
		for _, one := range ends {
			err := w.states.change(ctx, one, func(m *kindState) {
				if m.Keep = false; m.Rest != 0 {
					m.behind(w.bounds.clock()) // the newest page is not followed from now on
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return w.polls(ctx)
}

// due adds jobs for the due work of every kind that is kept up.
func (w *Crawler) due(ctx context.Context) error {
	errs := []error{w.steps.check(ctx, w.each())}
	for x := range w.each() {
		m, err := w.states.checkClock(ctx, x)
		if err == nil && m.Keep && w.o.Down(x.plan.source.Name) == "" {
			err = w.queue.dueOf(ctx, x, &m)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// queue adds the jobs that a kind needs.
type queue struct {
	jobs   Jobs
	states *states
	bounds *bounds
	checks *checks
}

// dueOf adds jobs for the due work of a kind that is kept up.
func (q *queue) dueOf(ctx context.Context, x *kindCrawl, m *kindState) error {
	if m.Rest == 0 {
		if m.rests(whole, q.bounds.clock()) {
			return nil
		}
		return q.enqueue(ctx, x, "sync", payload{})
	}
	if err := q.dueSweeps(ctx, x, m); err != nil {
		return err
	}
	if x.plan.parentKind != nil {
		if err := q.enqueue(ctx, x, "catch up", payload{}); err != nil {
			return err
		}
	}
	if len(x.plan.kind.Final) == 0 {
		return nil // nothing of it is ever final: the sweep looks
	}
	for _, shape := range x.plan.shapes() {
		dues, err := q.checks.dues(ctx, x, shape)
		if err != nil || len(dues) == 0 {
			return err
		}
		if err := q.enqueue(ctx, x, "check", payload{}); err != nil {
			return err
		}
	}
	return nil
}

// dueSweeps adds sweeps of intervals whose last walk will soon be too old to count.
// A sweep is due after half to three quarters of that time. The time differs
// between intervals, so that they are not all due at once.
func (q *queue) dueSweeps(ctx context.Context, x *kindCrawl, m *kindState) error {
	now := q.bounds.clock()
	old := func(at int64, part string) bool {
		h := fnv.New32a()
		_, _ = h.Write([]byte(x.plan.name() + part))
		after := q.bounds.settings.Sweep/2 + q.bounds.settings.Sweep/4*time.Duration(h.Sum32()%100)/100
		return at <= m.Lost && m.Lost != 0 || now-at >= int64(after/time.Second)
	}
	if old(m.Rest, "") && !m.rests(whole, now) {
		if err := q.enqueue(ctx, x, "sweep", payload{}); err != nil {
			return err
		}
	}
	if !x.plan.sliced() {
		return nil
	}
	for _, c := range slices.Backward(q.bounds.partitions(q.bounds.floor(x, now), m.Oldest, now)) {
		if m.rests(c.To, now) || !old(m.Spans.oldest(c.From, c.To), partOf(c.To)) {
			continue
		}
		if err := q.enqueue(ctx, x, "sweep", payload{From: c.From, To: c.To}); err != nil {
			return err
		}
	}
	return nil
}

// recheck promises sweeps of what is doubted.
func (q *queue) recheck(ctx context.Context, x *kindCrawl, all intervals) error {
	m, err := q.states.read(ctx, x)
	if err != nil || !m.Keep || m.Rest == 0 {
		return err
	}
	now := q.bounds.clock()
	for _, doubt := range all {
		if doubt.From == 0 && doubt.To == 0 || !x.plan.sliced() {
			if now-m.Rest >= doubtAgain && !m.rests(whole, now) {
				err = errors.Join(err, q.enqueue(ctx, x, "sweep", payload{}))
			}
			continue
		}
		for _, c := range q.bounds.partitions(q.bounds.floor(x, now), m.Oldest, now) {
			if c.To <= doubt.From || c.From >= unbound(doubt.To, late) || now-m.Spans.oldest(c.From, c.To) < doubtAgain || m.rests(c.To, now) {
				continue
			}
			err = errors.Join(err, q.enqueue(ctx, x, "sweep", payload{From: c.From, To: c.To}))
		}
	}
	return err
}

// partOf names the part of a kind that a job walks by its end: the oldest one's beginning
// moves with the clock. It is "" for a job that walks no stretch of time.
func partOf(to int64) string {
	if to == 0 {
		return ""
	}
	return "/" + strconv.FormatInt(to, 10)
}

// enqueue adds a job of a kind; at most one with the same key is live.
func (q *queue) enqueue(ctx context.Context, x *kindCrawl, verb string, e payload) error {
	e.Source, e.Kind, e.Root = x.plan.source.Name, x.plan.kind.Name, x.plan.root
	j := understudy.Job{Kind: verb + " " + x.plan.kind.Name, Key: x.plan.name() + partOf(e.To), Priority: understudy.Steady}
	if verb == "sync" {
		j.Priority = understudy.Bulk
	}
	var err error
	if j.Payload, err = json.Marshal(e); err == nil {
		_, err = q.jobs.Enqueue(ctx, j)
	}
	if err != nil {
		return fmt.Errorf("walk: %s %s: %w", verb, x.plan.name(), err)
	}
	return nil
}
