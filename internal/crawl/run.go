// Run: adds jobs for the work that is due, and maps job names to functions.

package crawl

import (
	"cmp"
	"context"
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

// verbs returns the functions of the jobs, by job name without the kind.
func (w *Crawler) verbs() map[string]func(context.Context, Run) error {
	return map[string]func(context.Context, Run) error{"sync": w.sync, "catch up": w.catchUp, "sweep": w.sweep, "check": checks{w}.check}
}

// Work returns the functions of the crawler's jobs, by job kind ("sync calls").
func (w *Crawler) Work() map[string]func(context.Context, Run) error {
	out := map[string]func(context.Context, Run) error{}
	for _, x := range w.walks {
		for verb, do := range w.verbs() {
			out[verb+" "+x.kind.Name] = do
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
	ticker := time.NewTicker(min(round, w.o.Sweep/10))
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
	if err := (rooting{w}).load(ctx); err != nil {
		return err
	}
	for source, kinds := range given {
		for _, kind := range kinds {
			if err := w.keep(ctx, source, kind); err != nil {
				return err
			}
		}
	}
	for x := range (rooting{w}).each() {
		if err := (coverage{w}).recall(ctx, x); err != nil {
			return err
		}
	}
	return w.polls(ctx)
}

// polls has the mirror poll what is kept up.
func (w *Crawler) polls(ctx context.Context) error {
	for _, src := range w.o.Sources {
		var entries []string
		for x := range (rooting{w}).each() {
			if x.source != src || x.tip.Zero() {
				continue
			}
			m, err := w.read(ctx, x)
			if err != nil {
				return err
			}
			switch {
			case m.Keep && x.root != "":
				entries = append(entries, x.tip.URI)
			case m.Keep:
				entries = append(entries, x.kind.Name)
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
	if x.bare { // it says that each root's walk is kept up
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
	m, err := w.read(ctx, x)
	if err != nil || m.Keep && len(m.Failures) == 0 {
		return err
	}
	return w.change(ctx, x, func(m *kindState) {
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
		if y != x && (y.source != x.source || y.plan.parentKind != x.kind) {
			continue
		}
		ends := slices.Collect(y.each())
		if y.bare {
			ends = append(ends, y)
		}
		for _, one := range ends {
			err := w.change(ctx, one, func(m *kindState) {
				if m.Keep = false; m.Rest != 0 {
					m.behind(w.clock()) // the newest page is not followed from now on
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
	errs := []error{clockSteps{w}.checkClockSteps(ctx)}
	for x := range (rooting{w}).each() {
		err := clockSteps{w}.checkClock(ctx, x)
		m, rerr := w.read(ctx, x)
		if err = cmp.Or(err, rerr); err != nil {
			errs = append(errs, err)
			continue
		}
		if m.Keep && w.o.Down(x.source.Name) == "" {
			errs = append(errs, w.dueOf(ctx, x, &m))
		}
	}
	return errors.Join(errs...)
}

func (w *Crawler) dueOf(ctx context.Context, x *kindCrawl, m *kindState) error {
	if m.Rest == 0 {
		if m.rests(whole, w.clock()) {
			return nil
		}
		return w.enqueue(ctx, x, "sync", understudy.Bulk, payload{}, "")
	}
	if err := w.dueSweeps(ctx, x, m); err != nil {
		return err
	}
	if x.plan.parentKind != nil {
		if err := w.enqueue(ctx, x, "catch up", understudy.Steady, payload{}, ""); err != nil {
			return err
		}
	}
	if len(x.kind.Final) == 0 {
		return nil // nothing of it is ever final: the sweep looks
	}
	for _, shape := range x.shapes() {
		dues, err := checks{w}.dues(ctx, x, shape)
		if err != nil || len(dues) == 0 {
			return err
		}
		if err := w.enqueue(ctx, x, "check", understudy.Steady, payload{}, ""); err != nil {
			return err
		}
	}
	return nil
}

// dueSweeps adds sweeps of intervals whose last walk will soon be too old to count.
// A sweep is due after half to three quarters of that time. The time differs
// between intervals, so that they are not all due at once.
func (w *Crawler) dueSweeps(ctx context.Context, x *kindCrawl, m *kindState) error {
	now := w.clock()
	old := func(at int64, part string) bool {
		h := fnv.New32a()
		_, _ = h.Write([]byte(x.name() + part))
		after := w.o.Sweep/2 + w.o.Sweep/4*time.Duration(h.Sum32()%100)/100
		return at <= m.Lost && m.Lost != 0 || now-at >= int64(after/time.Second)
	}
	if old(m.Rest, "") && !m.rests(whole, now) {
		if err := w.enqueue(ctx, x, "sweep", understudy.Steady, payload{}, ""); err != nil {
			return err
		}
	}
	if !x.sliced() {
		return nil
	}
	for _, c := range slices.Backward(w.partitions(w.floor(x, now), m.Oldest, now)) {
		// Named by its end: the oldest one's beginning moves with the clock.
		part := "/" + strconv.FormatInt(c.To, 10)
		if m.rests(c.To, now) || !old(m.Spans.oldest(c.From, c.To), part) {
			continue
		}
		if err := w.enqueue(ctx, x, "sweep", understudy.Steady, payload{From: c.From, To: c.To}, part); err != nil {
			return err
		}
	}
	return nil
}
