// This file adds jobs for due work, and maps the names of jobs to functions.

package crawl

import (
	"cmp"
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

// dueInterval is the interval between two checks of what is due. It is shorter if sweeps are frequent.
const dueInterval = 30 * time.Second

// failurePause is how long a part of a kind rests after its job has failed for good.
const failurePause = 15 * time.Minute

// jobFuncs are the functions of the jobs, by job name without the kind.
var jobFuncs = map[string]func(*jobRun, context.Context) error{
	"sync": (*jobRun).sync, "catch up": (*jobRun).runCatchUp, "sweep": (*jobRun).sweep, "check": (*jobRun).check,
}

// Work returns the functions of the crawler's jobs, by job kind ("sync calls").
func (w *Crawler) Work() map[string]func(context.Context, Run) error {
	out := map[string]func(context.Context, Run) error{}
	for _, x := range w.walks {
		for verb, do := range jobFuncs {
			out[verb+" "+x.plan.kind.Name] = func(ctx context.Context, run Run) error {
				t, err := w.begin(run)
				if err != nil || t.x == nil || t.x.plan.rootsOnly { // the settings of the source no longer name the root
					return err
				}
				return do(t, ctx)
			}
		}
	}
	return out
}

// maxWalkRuns is the maximum number of runs of a walk. It is high, because failures of upstream do not count and a
// killed process is no reason to give up.
const maxWalkRuns = 1000

// JobKinds returns the kinds of jobs that do the work of a crawler.
func JobKinds(work map[string]func(context.Context, Run) error) (all []jobs.Kind) {
	for name, do := range work {
		maxBackoff := time.Minute
		if strings.HasPrefix(name, "sweep ") {
			maxBackoff = time.Hour // long, because a failed sweep has cost a whole walk
		}
		all = append(all, jobs.Kind{
			Name: name, Run: func(ctx context.Context, r *jobs.Run) error { return do(ctx, r) },
			Concurrency: 1, Attempts: maxWalkRuns, Weight: 8 << 20, Backoff: 5 * time.Second, MaxBackoff: maxBackoff,
		})
	}
	return all
}

// Run handles saved pages and adds jobs for due work until ctx ends. Call Load first.
func (w *Crawler) Run(ctx context.Context) error {
	ticker := time.NewTicker(min(dueInterval, w.o.Settings.Sweep/10))
	defer ticker.Stop()
	w.tryAgain(ctx, w.enqueueDue)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			w.tryAgain(ctx, w.look)
		case <-ticker.C:
			w.tryAgain(ctx, w.enqueueDue)
		}
	}
}

// tryAgain calls what and logs its error. The caller repeats the work later.
func (w *Crawler) tryAgain(ctx context.Context, what func(context.Context) error) {
	if err := what(ctx); err != nil && ctx.Err() == nil {
		w.o.Logger.Error("walk: due jobs could not be added; trying again", "error", err)
	}
}

// Load reads the state of every kind. It starts to keep the given kinds (source to kinds) complete and polls all kinds
// that are kept complete. The error wraps ErrInvalid if a given kind does not exist or cannot be synced.
func (w *Crawler) Load(ctx context.Context, given map[string][]string) error {
	if err := errors.Join(w.o.KV.Watch(ctx, kvPrefix, w.states.receive), w.roots.load(ctx)); err != nil {
		return err
	}
	for source, kinds := range given {
		for _, kind := range kinds {
			if err := w.keep(ctx, source, kind); err != nil {
				return err
			}
		}
	}
	for x := range w.allWalks() {
		if err := w.restore(ctx, x); err != nil {
			return err
		}
	}
	return w.updatePolls(ctx)
}

// updatePolls has the mirror poll all kinds that are kept complete.
func (w *Crawler) updatePolls(ctx context.Context) error {
	for _, src := range w.o.Sources {
		var entries []string
		for x := range w.allWalks() {
			if x.plan.source != src || x.tip.IsZero() {
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

// Keep starts to keep a kind and its parent kind complete. Errors: ErrInvalid for an unknown kind. For a kind
// that cannot be synced, IsNeverSynced recognizes the error, which says why.
func (w *Crawler) Keep(ctx context.Context, source, kind string) error {
	if err := w.keep(ctx, source, kind); err != nil {
		return err
	}
	if err := w.updatePolls(ctx); err != nil {
		return err
	}
	return w.enqueueDue(ctx)
}

// keep does what Keep does, except that it updates neither polls nor jobs.
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
	if x.plan.rootsOnly { // the state of the kind itself says that the walks in all its roots are kept complete
		if err := x.keep(ctx, w); err != nil {
			return err
		}
	}
	for one := range x.allRoots() {
		if err := one.keep(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// keep notes that one walk is kept complete.
func (x *kindCrawl) keep(ctx context.Context, w *Crawler) error {
	m, err := w.states.read(ctx, x)
	if err != nil || m.Keep && len(m.Failures) == 0 {
		return err
	}
	return w.states.change(ctx, x, func(m *kindState) {
		m.Keep, m.Failures = true, slices.Clone(m.Failures)
		for i := range m.Failures {
			m.Failures[i].At = 0 // the failed part is tried again at once
		}
		if m.ListsWalkedAt == 0 {
			m.Failures = nil // the kind is not complete before all its parts were tried again
		}
	})
}

// Drop stops keeping a kind and its nested kinds complete. Stored records stay. It returns ErrInvalid as Keep does.
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
		ends := slices.Collect(y.allRoots())
		if y.plan.rootsOnly {
			ends = append(ends, y)
		}
		for _, one := range ends {
			err := w.states.change(ctx, one, func(m *kindState) {
				if m.Keep = false; m.ListsWalkedAt != 0 {
					m.noteGap(w.bounds.unixNow()) // the newest page is no longer followed, so a gap may follow it
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return w.updatePolls(ctx)
}

// enqueueDue adds jobs for the due work of all kinds that are kept complete.
func (w *Crawler) enqueueDue(ctx context.Context) error {
	errs := []error{w.steps.check(ctx, w.allWalks())}
	for x := range w.allWalks() {
		m, err := w.states.checkClock(ctx, x)
		if err == nil && m.Keep && w.o.Down(x.plan.source.Name) == "" {
			err = w.queue.enqueueDue(ctx, x, &m)
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

// enqueueDue adds jobs for the due work of one kind that is kept complete.
func (q *queue) enqueueDue(ctx context.Context, x *kindCrawl, m *kindState) error {
	if m.ListsWalkedAt == 0 {
		if m.isResting(partLists, q.bounds.unixNow()) {
			return nil
		}
		return q.enqueue(ctx, x, "sync", payload{})
	}
	if err := q.enqueueSweeps(ctx, x, m); err != nil {
		return err
	}
	if x.plan.parentKind != nil {
		if err := q.enqueue(ctx, x, "catch up", payload{}); err != nil {
			return err
		}
	}
	if len(x.plan.kind.Final) == 0 {
		return nil // records of this kind never become final, so only the sweep fetches them again
	}
	for _, shape := range x.plan.shapes() {
		dues, err := q.checks.findDue(ctx, x, shape)
		if err != nil || len(dues) == 0 {
			return err
		}
		if err := q.enqueue(ctx, x, "check", payload{}); err != nil {
			return err
		}
	}
	return nil
}

// enqueueSweeps adds sweeps of time ranges whose last walk will soon be too old. A sweep is due after half to three
// quarters of the allowed age. The share differs between ranges, so that they are not all due at once.
func (q *queue) enqueueSweeps(ctx context.Context, x *kindCrawl, m *kindState) error {
	now := q.bounds.unixNow()
	old := func(at int64, part string) bool {
		h := fnv.New32a()
		_, _ = h.Write([]byte(x.plan.name() + part))
		after := q.bounds.settings.Sweep/2 + q.bounds.settings.Sweep/4*time.Duration(h.Sum32()%100)/100
		return at <= m.LostAt && m.LostAt != 0 || now-at >= int64(after/time.Second)
	}
	if old(m.ListsWalkedAt, "") && !m.isResting(partLists, now) {
		if err := q.enqueue(ctx, x, "sweep", payload{}); err != nil {
			return err
		}
	}
	if !x.plan.isSliced() {
		return nil
	}
	for _, c := range slices.Backward(q.bounds.partitions(q.bounds.floor(x, now), m.Oldest, now)) {
		if m.isResting(c.To, now) || !old(m.Spans.oldestWalk(c.From, c.To), partOf(c.To)) {
			continue
		}
		if err := q.enqueue(ctx, x, "sweep", payload{From: c.From, To: c.To}); err != nil {
			return err
		}
	}
	return nil
}

// recheck adds sweeps of time ranges that may have changed.
func (q *queue) recheck(ctx context.Context, x *kindCrawl, all intervals) error {
	m, err := q.states.read(ctx, x)
	if err != nil || !m.Keep || m.ListsWalkedAt == 0 {
		return err
	}
	now := q.bounds.unixNow()
	for _, doubt := range all {
		if doubt.From == 0 && doubt.To == 0 || !x.plan.isSliced() {
			if now-m.ListsWalkedAt >= recheckPause && !m.isResting(partLists, now) {
				err = errors.Join(err, q.enqueue(ctx, x, "sweep", payload{}))
			}
			continue
		}
		for _, c := range q.bounds.partitions(q.bounds.floor(x, now), m.Oldest, now) {
			if c.To <= doubt.From || c.From >= cmp.Or(doubt.To, maxClock) || now-m.Spans.oldestWalk(c.From, c.To) < recheckPause ||
				m.isResting(c.To, now) {
				continue
			}
			err = errors.Join(err, q.enqueue(ctx, x, "sweep", payload{From: c.From, To: c.To}))
		}
	}
	return err
}

// partOf names a part of a kind by its end, because the beginning of the oldest part moves with the clock. It
// returns "" for a job without a time range.
func partOf(to int64) string {
	if to == 0 {
		return ""
	}
	return "/" + strconv.FormatInt(to, 10)
}

// enqueue adds a job of a kind. At most one job with the same key waits or runs.
func (q *queue) enqueue(ctx context.Context, x *kindCrawl, verb string, e payload) error {
	e.Source, e.Kind, e.Root = x.plan.source.Name, x.plan.kind.Name, x.plan.root
	j := understudy.Job{Kind: verb + " " + x.plan.kind.Name, Key: x.plan.name() + partOf(e.To), Priority: understudy.PrioritySteady}
	if verb == "sync" {
		j.Priority = understudy.PriorityBulk
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
