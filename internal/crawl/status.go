// Status: how complete a kind is, for people. It is derived, never stored.

package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/spec"
)

// State is how complete a kind is.
type State struct {
	Kept     bool      // it is synced and kept up
	Complete bool      // no record that upstream has is missing
	Why      string    // why it is not complete; "" if it is, or if it is not kept up
	Failed   bool      // Why is an error a person has to see to
	Running  bool      // a sync is under way
	Down     string    // why upstream cannot be asked now; "" when it can
	Stuck    time.Time // since when its walks come no further, though they try; zero: they do. Why says why
	CaughtUp time.Time // when its newest records were last known without a gap
	Swept    time.Time // since when every part of it was walked; zero: not yet
	Ended    string    // that upstream keeps nothing older, when it said so

	// Records that the walk has seen, and how many there are; without a walk, the
	// records held. Total -1: not known. For a kind that is walked twice, Walk is
	// "1 of 2" or "2 of 2".
	Done, Total int64
	Walk        string
	ETA         time.Duration // of all that is left; 0: not known, or nothing is under way
}

// stall is what keeps a kind's walks from going on for now.
type stall struct {
	since time.Time
	why   string
}

// stalled notes that a walk has to come back later, and returns for how long that has
// been so. One that moved meanwhile is stuck only since now.
func (x *kindCrawl) stalled(now time.Time, why string, moved bool) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if moved || x.stall.since.IsZero() {
		x.stall.since = now
	}
	x.stall.why = why
	return now.Sub(x.stall.since)
}

// resumed notes that a walk came to an end.
func (x *kindCrawl) resumed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stall = stall{}
}

// counter counts the records of a kind that are held.
type counter = func(ctx context.Context, source, kind string) (int64, error)

// status derives how complete a kind is.
type status struct {
	states *states
	bounds *bounds
	down   func(source string) string
}

// stopped is what keeps a kind's walks from going on, those of the kind above
// included: it is waited for.
func (w *status) stallOf(x *kindCrawl) stall {
	x.mu.Lock()
	s := x.stall
	x.mu.Unlock()
	if s.since.IsZero() && x.plan.parentKind != nil {
		return w.stallOf(x.above)
	}
	return s
}

// rowsOf counts the rows of a page of one list. Of several lists the first
// counts: the others may show the same records again.
func rowsOf(list int, rows int64) int64 {
	if list > 0 {
		return 0
	}
	return rows
}

// State is how complete a kind is now, in all roots together. ErrInvalid: no such kind;
// an error that Never knows: it cannot be synced.
func (w *Crawler) State(ctx context.Context, source, kind string) (State, error) {
	return w.state(ctx, source, kind, w.o.Count)
}

// Uncounted returns what State does, but does not ask the store how many records of the kind it
// has: Done and Total are for progress alone.
func (w *Crawler) Uncounted(ctx context.Context, source, kind string) (State, error) {
	return w.state(ctx, source, kind, nil)
}

// state returns State; count is nil or the store's.
func (w *Crawler) state(ctx context.Context, source, kind string, count counter) (State, error) {
	x, err := w.find(source, kind)
	if err != nil {
		return State{}, err
	}
	var all []State
	for one := range x.each() {
		s, err := w.status.of(ctx, one, count)
		if err != nil {
			return s, err
		}
		if one.plan.root != "" && s.Why != "" {
			s.Why = spelled(one.plan.root) + ": " + s.Why
		}
		all = append(all, s)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	s := together(all)
	if len(all) == 0 {
		m, err := w.states.read(ctx, x)
		if err != nil {
			return s, err
		}
		s.Kept, s.Why = m.Keep, "none of the "+x.plan.source.Spec.Kind(x.plan.source.Spec.Roots.Kind).Title+" they lie under is known yet"
		return s, nil
	}
	if s.Kept && count != nil {
		if s.Done, err = count(ctx, source, kind); err != nil {
			return s, fmt.Errorf("walk: %s: %w", x.plan.name(), err)
		}
		if s.Complete {
			s.Total = s.Done
		}
	}
	return s, nil
}

// together is how complete a kind is of which several walks are known: as complete as the
// one that lacks most, and as old as the oldest.
func together(all []State) State {
	sum := State{Complete: len(all) > 0}
	lacking := 0
	for i, s := range all {
		sum.Done += s.Done
		sum.Kept, sum.Running, sum.Complete = sum.Kept || s.Kept, sum.Running || s.Running, sum.Complete && s.Complete
		sum.Down, sum.Ended = cmp.Or(sum.Down, s.Down), cmp.Or(sum.Ended, s.Ended)
		sum.ETA = max(sum.ETA, s.ETA)
		if !s.Complete {
			lacking++
		}
		if s.Why != "" && (sum.Why == "" || s.Failed && !sum.Failed) {
			sum.Why, sum.Failed = s.Why, s.Failed
		}
		if !s.Stuck.IsZero() && (sum.Stuck.IsZero() || s.Stuck.Before(sum.Stuck)) {
			sum.Stuck = s.Stuck
		}
		if i == 0 || s.CaughtUp.Before(sum.CaughtUp) {
			sum.CaughtUp = s.CaughtUp
		}
		if i == 0 || s.Swept.Before(sum.Swept) {
			sum.Swept = s.Swept
		}
	}
	if lacking > 1 {
		sum.Why = fmt.Sprintf("%d of %d are not complete; %s", lacking, len(all), sum.Why)
	}
	sum.Total = unknown
	return sum
}

// of returns how complete one walk is; without count it has no number of records that are held.
func (w *status) of(ctx context.Context, x *kindCrawl, count counter) (State, error) {
	m, err := w.states.read(ctx, x)
	if err != nil {
		return State{}, err
	}
	s := State{Kept: m.Keep, Ended: m.Ended, Down: w.down(x.plan.source.Name), Done: m.Records, Total: unknown}
	if m.CaughtUp > 0 {
		s.CaughtUp = time.Unix(m.CaughtUp, 0)
	}
	if at := w.swept(x, &m); at > early && at > 0 {
		s.Swept = time.Unix(at, 0)
	}
	if p := x.now.Load(); p != nil {
		s.Running, s.Done, s.Total, s.Walk, s.ETA = true, p.done, p.total, p.walk, p.eta(w.bounds.now())
	}
	if !s.Running && s.Kept && count != nil {
		if s.Done, err = count(ctx, x.plan.source.Name, x.plan.kind.Name); err != nil {
			return s, fmt.Errorf("walk: %s: %w", x.plan.name(), err)
		}
	}
	if s.Kept {
		s.Why, s.Failed, err = w.lacks(ctx, x)
		s.Complete = s.Why == "" && err == nil
	}
	if list := w.hiding(x); s.Complete && list != nil {
		s.Complete, s.Failed = false, true
		s.Why = fmt.Sprintf("walked to its end, but by the spec the list %s leaves some of the %s out", list.Path, x.plan.kind.Title)
	}
	if s.Complete && !s.Running {
		s.Total = s.Done
	}
	if stop := w.stallOf(x); s.Kept && !s.Complete && !s.Failed && !stop.since.IsZero() {
		s.Stuck, s.Why = stop.since, reason(errors.New(s.Why+": "+stop.why))
	}
	return s, err
}

// hiding returns a list of a kind, or of the one above, that leaves records out by the spec;
// nil: none does.
func (w *status) hiding(x *kindCrawl) *spec.List {
	for _, l := range x.plan.lists {
		if l.Hides() {
			return l
		}
	}
	if x.plan.parentKind == nil {
		return nil
	}
	return w.hiding(x.above)
}

// swept is since when every part of a kind was walked, 0 when one never was.
func (w *status) swept(x *kindCrawl, m *kindState) int64 {
	at := m.Rest
	if x.plan.sliced() {
		at = min(at, m.Spans.oldest(w.bounds.floor(x, w.bounds.clock()), late))
	}
	return max(at, 0)
}

// lacks says why something of a kind is missing, "" when nothing is, and
// whether a person has to see to it. For the kind above, if there is one, too.
func (w *status) lacks(ctx context.Context, x *kindCrawl) (why string, failed bool, err error) {
	m, err := w.states.read(ctx, x)
	if err != nil {
		return "", false, err
	}
	why, failed = w.lacking(x, &m)
	if x.plan.parentKind == nil || failed {
		return why, failed, nil
	}
	above := x.above
	first, failed, err := w.allLack(ctx, above)
	if first != "" && (failed || why == "") {
		why = above.plan.kind.Title + ": " + first
	}
	return why, failed, err
}

// allLack is lacks of a kind in every root.
func (w *status) allLack(ctx context.Context, x *kindCrawl) (why string, failed bool, err error) {
	for one := range x.each() {
		if why, failed, err = w.lacks(ctx, one); why != "" || err != nil {
			return why, failed, err
		}
	}
	return "", false, nil
}

// lacking is what a kind lacks by itself.
func (w *status) lacking(x *kindCrawl, m *kindState) (why string, failed bool) {
	down := w.down(x.plan.source.Name)
	switch at := w.swept(x, m); {
	case m.failed() != "":
		return m.failed(), true
	case m.Rest == 0 && down != "":
		return "not synced to its end; upstream: " + down, false
	case m.Rest == 0:
		return "not synced to its end", false
	case m.Behind != 0:
		return "catching up since " + moment(m.Behind), false
	case m.Lost != 0 && at <= m.Lost:
		return "some were forgotten here, and not all was walked again since", false
	case down == "" && w.bounds.clock()-at > int64(w.bounds.settings.Sweep/time.Second):
		if at == 0 {
			return "a part was never walked", false
		}
		return "a part was not walked since " + moment(at), false
	}
	return "", false
}

func moment(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02 15:04:05 UTC") }
