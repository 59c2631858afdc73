// State: how complete a kind is, for people. It is derived, never stored.

package walk

import (
	"context"
	"fmt"
	"time"
)

// State is how complete a kind is.
type State struct {
	Kept     bool      // it is synced and kept up
	Complete bool      // no record that upstream has is missing
	Why      string    // why it is not; "" when it is, or when nobody wants it to be
	Failed   bool      // Why is an error a person has to see to
	Running  bool      // a sync is under way
	Down     string    // why upstream cannot be asked now; "" when it can
	Stuck    time.Time // since when its walks come no further, though they try; zero: they do. Why says why
	CaughtUp time.Time // when its newest records were last known without a gap
	Swept    time.Time // since when every part of it was walked; zero: not yet
	Ended    string    // that upstream keeps nothing older, when it said so

	// Of the sync under way, or of the last: records. Total 0: not known yet.
	Done, Total int64
	ETA         time.Duration // 0: not known, or nothing is under way
}

// pace is how fast a sync goes.
type pace struct {
	began       time.Time // this run
	first       int64     // done when it began
	done, total int64
}

// stop is what keeps a kind's walks from going on for now.
type stop struct {
	since time.Time
	why   string
}

// stuck notes that a walk has to come back later. One that moved meanwhile is
// stuck only since now.
func (x *walked) stuck(now time.Time, why string, moved bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if moved || x.stop.since.IsZero() {
		x.stop.since = now
	}
	x.stop.why = why
}

// goesOn notes that a walk came to an end.
func (x *walked) goesOn() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stop = stop{}
}

// stopped is what keeps a kind's walks from going on, those of the kind above
// included: it is waited for.
func (w *Walker) stopped(x *walked) stop {
	x.mu.Lock()
	s := x.stop
	x.mu.Unlock()
	if s.since.IsZero() && x.plan.under != nil {
		return w.stopped(w.walks[x.source.Name+"/"+x.plan.under.Name])
	}
	return s
}

// paced begins to measure a sync.
func (x *walked) paced(now time.Time, m *mark) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = pace{began: now, first: -1}
}

func (x *walked) unpaced() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = pace{}
}

// rowsOf counts the rows of a page of one list. Of several lists the first
// counts: the others may show the same records again.
func rowsOf(list int, rows int64) int64 {
	if list > 0 {
		return 0
	}
	return rows
}

// progress tells how far the sync is; the mark's lock is held. A kind that is
// walked twice counts half for each walk.
func (s *syncing) progress() {
	done, total := s.mark.Whole, int64(0)
	if s.x.sliced() && (s.mark.Probed || !s.mark.Ended) {
		done = (s.mark.Sliced + s.mark.Whole) / 2
		total = s.guess()
	}
	s.x.mu.Lock()
	if s.x.now.first < 0 {
		s.x.now.first = done
	}
	s.x.now.done, s.x.now.total = done, max(done, total)
	if total == 0 {
		s.x.now.total = 0
	}
	all := s.x.now.total
	s.x.mu.Unlock()
	s.run.Progress(done, all, "")
}

// sure is the share of the stretches, one in so many, from which the others are
// guessed: the newest alone, which is cut off and busier, tells little.
const sure = 4

// guess is how many records there are, from how many lay in the stretches that
// were walked to their ends; 0: nobody knows yet.
func (s *syncing) guess() int64 {
	if !s.mark.Probed {
		return 0
	}
	walked, all, rows := 0, 0, s.mark.Sliced
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	for _, c := range s.w.cells(s.w.floor(s.x, s.mark.Began), s.mark.Oldest, s.mark.Began) {
		all++
		if s.x.memo.Spans.covers(c.From, c.To, s.mark.Began) {
			walked++
			continue
		}
		for _, open := range s.mark.Cells {
			if open.From == c.From {
				rows -= open.Rows
			}
		}
	}
	switch {
	case walked == all:
		return max(s.mark.Sliced, s.mark.Whole)
	case walked < 2 || walked*sure < all:
		return 0
	}
	return rows * int64(all) / int64(walked)
}

// State is how complete a kind is now. ErrInvalid: no such kind; an error that
// Never knows: it cannot be synced.
func (w *Walker) State(ctx context.Context, source, kind string) (State, error) {
	x, err := w.find(source, kind)
	if err != nil {
		return State{}, err
	}
	m, err := w.read(ctx, x)
	if err != nil {
		return State{}, err
	}
	s := State{Kept: m.Keep, Ended: m.Ended, Done: m.Records, Total: m.Records, Down: w.o.Down(source)}
	if m.CaughtUp > 0 {
		s.CaughtUp = time.Unix(m.CaughtUp, 0)
	}
	if at := w.swept(x, &m); at > early && at > 0 {
		s.Swept = time.Unix(at, 0)
	}
	x.mu.Lock()
	p := x.now
	x.mu.Unlock()
	if !p.began.IsZero() {
		s.Running, s.Done, s.Total = true, p.done, p.total
		if gone := p.done - p.first; gone > 0 && p.total > p.done {
			s.ETA = time.Duration(float64(w.o.Now().Sub(p.began)) * float64(p.total-p.done) / float64(gone)).Round(time.Second)
		}
	}
	if !s.Running && s.Kept && w.o.Count != nil {
		if s.Done, err = w.o.Count(ctx, source, kind); err != nil {
			return s, fmt.Errorf("walk: %s: %w", x.name(), err)
		}
		s.Total = s.Done
	}
	if s.Kept {
		s.Why, s.Failed, err = w.lacks(ctx, x)
		s.Complete = s.Why == "" && err == nil
	}
	if stop := w.stopped(x); s.Kept && !s.Complete && !s.Failed && !stop.since.IsZero() {
		s.Stuck, s.Why = stop.since, s.Why+": "+stop.why
	}
	return s, err
}

// swept is since when every part of a kind was walked, 0 when one never was.
func (w *Walker) swept(x *walked, m *memo) int64 {
	at := m.Rest
	if x.sliced() {
		at = min(at, m.Spans.oldest(w.floor(x, w.clock()), late))
	}
	return max(at, 0)
}

// lacks says why something of a kind is missing, "" when nothing is, and
// whether a person has to see to it. For the kind above, if there is one, too.
func (w *Walker) lacks(ctx context.Context, x *walked) (why string, failed bool, err error) {
	m, err := w.read(ctx, x)
	if err != nil {
		return "", false, err
	}
	why, failed = w.lacking(x, &m)
	if x.plan.under == nil || failed {
		return why, failed, nil
	}
	above := w.walks[x.source.Name+"/"+x.plan.under.Name]
	first, failed, err := w.lacks(ctx, above)
	if first != "" && (failed || why == "") {
		why = above.kind.Title + ": " + first
	}
	return why, failed, err
}

// lacking is what a kind lacks by itself.
func (w *Walker) lacking(x *walked, m *memo) (why string, failed bool) {
	down := w.o.Down(x.source.Name)
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
	case down == "" && w.clock()-at > int64(w.o.Sweep/time.Second):
		if at == 0 {
			return "a part was never walked", false
		}
		return "a part was not walked since " + moment(at), false
	}
	return "", false
}

func moment(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02 15:04:05 UTC") }
