// This file tells people how complete a kind is. The answer is computed and never stored.

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
	Kept     bool      // whether the kind is kept complete
	Complete bool      // whether no record that upstream has is missing
	Why      string    // why the kind is not complete; "" if it is, or if it is not kept complete
	Failed   bool      // whether Why is an error that a person must solve
	Running  bool      // whether a sync is running
	Down     string    // why upstream cannot be reached now; "" if it can be reached
	Stuck    time.Time // the time since which retries have made no progress; zero if they make progress
	CaughtUp time.Time // when the newest records of the kind last had no known gap
	Swept    time.Time // the oldest of the times at which each part was last walked; zero if a part was never read
	Ended    string    // the sentence that upstream keeps no older records, if upstream said so

	// Done is the number of records that the walk has seen, and Total how many there are. Without a walk, Done is the
	// number of stored records. Total is -1 if unknown. For a kind that is walked twice, Walk is "1 of 2" or "2 of 2".
	Done, Total int64
	Walk        string
	ETA         time.Duration // the estimated remaining time of the sync; 0 if unknown or if no sync runs
}

// stall is why a kind's walks cannot continue, and since when.
type stall struct {
	since time.Time
	why   string
}

// noteStall notes that a walk cannot continue now. It returns how long the walk has been stalled. If the walk has
// made progress, the time starts again.
func (x *kindCrawl) noteStall(now time.Time, why string, moved bool) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if moved || x.stall.since.IsZero() {
		x.stall.since = now
	}
	x.stall.why = why
	return now.Sub(x.stall.since)
}

// clearStall notes that a walk ended, so that the kind is not stalled.
func (x *kindCrawl) clearStall() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stall = stall{}
}

// counter counts the stored records of a kind.
type counter = func(ctx context.Context, source, kind string) (int64, error)

// status computes how complete a kind is.
type status struct {
	states *states
	bounds *bounds
	down   func(source string) string
}

// findStall returns why a kind's walks cannot continue. For a nested kind, the reason may be that of its parent kind.
func (w *status) findStall(x *kindCrawl) stall {
	x.mu.Lock()
	s := x.stall
	x.mu.Unlock()
	if s.since.IsZero() && x.plan.parentKind != nil {
		return w.findStall(x.parent)
	}
	return s
}

// ReadState returns how complete a kind is in all roots together. Errors: ErrInvalid for an unknown kind;
// IsNeverSynced recognizes the error of a kind that cannot be synced.
func (w *Crawler) ReadState(ctx context.Context, source, kind string) (State, error) {
	return w.readState(ctx, source, kind, w.o.Count)
}

// ReadStateUncounted returns what ReadState does, but does not count stored records. Done and Total are then set
// only during a walk.
func (w *Crawler) ReadStateUncounted(ctx context.Context, source, kind string) (State, error) {
	return w.readState(ctx, source, kind, nil)
}

// readState returns what ReadState does. It counts stored records with the function count, unless count is nil.
func (w *Crawler) readState(ctx context.Context, source, kind string, count counter) (State, error) {
	x, err := w.find(source, kind)
	if err != nil {
		return State{}, err
	}
	var all []State
	for one := range x.allRoots() {
		s, err := w.status.describeWalk(ctx, one, count)
		if err != nil {
			return s, err
		}
		if one.plan.root != "" && s.Why != "" {
			s.Why = rootText(one.plan.root) + ": " + s.Why
		}
		all = append(all, s)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	s := mergeStates(all)
	if len(all) == 0 {
		m, err := w.states.read(ctx, x)
		if err != nil {
			return s, err
		}
		s.Kept, s.Why = m.Keep, "no "+x.plan.source.Spec.Kind(x.plan.source.Spec.Roots.Kind).Title+" they belong to is known yet"
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

// mergeStates returns the common state of the walks of a kind in several roots. It is as complete as the least
// complete walk and as old as the oldest.
func mergeStates(all []State) State {
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
		sum.Why = fmt.Sprintf("%d of %d are incomplete; %s", lacking, len(all), sum.Why)
	}
	sum.Total = unknown
	return sum
}

// describeWalk returns how complete one walk is. If count is nil, the result lacks the number of stored records.
func (w *status) describeWalk(ctx context.Context, x *kindCrawl, count counter) (State, error) {
	m, err := w.states.read(ctx, x)
	if err != nil {
		return State{}, err
	}
	s := State{Kept: m.Keep, Ended: m.Ended, Down: w.down(x.plan.source.Name), Done: m.Records, Total: unknown}
	if m.CaughtUp > 0 {
		s.CaughtUp = time.Unix(m.CaughtUp, 0)
	}
	if at := w.oldestSweep(x, &m); at > minClock && at > 0 {
		s.Swept = time.Unix(at, 0)
	}
	if p := x.pace.Load(); p != nil {
		s.Running, s.Done, s.Total, s.Walk, s.ETA = true, p.done, p.total, p.walk, p.eta(w.bounds.now())
	}
	if !s.Running && s.Kept && count != nil {
		if s.Done, err = count(ctx, x.plan.source.Name, x.plan.kind.Name); err != nil {
			return s, fmt.Errorf("walk: %s: %w", x.plan.name(), err)
		}
	}
	if s.Kept {
		s.Why, s.Failed, err = w.findLack(ctx, x)
		s.Complete = s.Why == "" && err == nil
	}
	if list := w.hidingList(x); s.Complete && list != nil {
		s.Complete, s.Failed = false, true
		s.Why = fmt.Sprintf("the sync finished, but according to the spec the list %s leaves out some %s", list.Path, x.plan.kind.Title)
	}
	if s.Complete && !s.Running {
		s.Total = s.Done
	}
	if stop := w.findStall(x); s.Kept && !s.Complete && !s.Failed && !stop.since.IsZero() {
		s.Stuck, s.Why = stop.since, shortReason(errors.New(s.Why+": "+stop.why))
	}
	return s, err
}

// hidingList returns a list of a kind or its parent that omits records according to the spec, or nil.
func (w *status) hidingList(x *kindCrawl) *spec.List {
	for _, l := range x.plan.lists {
		if l.IsPartial() {
			return l
		}
	}
	if x.plan.parentKind == nil {
		return nil
	}
	return w.hidingList(x.parent)
}

// oldestSweep returns the time of the walk over that part of a kind that was not walked for the longest time, or 0
// if a part was never walked.
func (w *status) oldestSweep(x *kindCrawl, m *kindState) int64 {
	at := m.ListsWalkedAt
	if x.plan.isSliced() {
		at = min(at, m.Spans.oldestWalk(w.bounds.floor(x, w.bounds.unixNow()), maxClock))
	}
	return max(at, 0)
}

// findLack returns why records of a kind or its parent are missing, or "". failed reports whether a person must act.
func (w *status) findLack(ctx context.Context, x *kindCrawl) (why string, failed bool, err error) {
	m, err := w.states.read(ctx, x)
	if err != nil {
		return "", false, err
	}
	why, failed = w.ownLack(x, &m)
	if x.plan.parentKind == nil || failed {
		return why, failed, nil
	}
	above := x.parent
	first, failed, err := w.findLackInRoots(ctx, above)
	if first != "" && (failed || why == "") {
		why = above.plan.kind.Title + ": " + first
	}
	return why, failed, err
}

// findLackInRoots does what findLack does for a kind in all roots.
func (w *status) findLackInRoots(ctx context.Context, x *kindCrawl) (why string, failed bool, err error) {
	for one := range x.allRoots() {
		if why, failed, err = w.findLack(ctx, one); why != "" || err != nil {
			return why, failed, err
		}
	}
	return "", false, nil
}

// ownLack returns why records of a kind are missing, or "". It does not look at the parent kind.
func (w *status) ownLack(x *kindCrawl, m *kindState) (why string, failed bool) {
	down := w.down(x.plan.source.Name)
	switch at := w.oldestSweep(x, m); {
	case m.lastFailure() != "":
		return m.lastFailure(), true
	case m.ListsWalkedAt == 0 && down != "":
		return "the first sync has not finished; upstream: " + down, false
	case m.ListsWalkedAt == 0:
		return "the first sync has not finished", false
	case m.GapAt != 0:
		return "catching up since " + formatMoment(m.GapAt), false
	case m.LostAt != 0 && at <= m.LostAt:
		return "some records were deleted here, and not everything has been read again since", false
	case down == "" && w.bounds.unixNow()-at > int64(w.bounds.settings.Sweep/time.Second):
		if at == 0 {
			return "a part was never read", false
		}
		return "a part was last read on " + formatMoment(at), false
	}
	return "", false
}

func formatMoment(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02 15:04:05 UTC") }
