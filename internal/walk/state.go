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

// progress tells how far the sync is; the mark's lock is held. A kind that is
// walked twice counts half for each walk.
func (s *syncing) progress() {
	done, total := s.mark.Whole, int64(0)
	if s.x.sliced() && s.mark.Probed {
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
	s.x.mu.Unlock()
	s.run.Progress(done, s.x.now.total, "")
}

// guess is how many records there are, from how many lay in the time walked.
func (s *syncing) guess() int64 {
	walked, all := 0, 0
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	for _, c := range s.w.cells(s.w.floor(s.x, s.mark.Began), s.mark.Oldest, s.mark.Began) {
		all++
		if s.x.memo.Spans.covers(c.From, c.To, s.mark.Began) {
			walked++
		}
	}
	switch {
	case walked == 0:
		return 0
	case walked == all:
		return max(s.mark.Sliced, s.mark.Whole)
	}
	return s.mark.Sliced * int64(all) / int64(walked)
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
	s := State{Kept: m.Keep, Ended: m.Ended, Done: m.Records, Total: m.Records, Failed: m.Failed != "", Down: w.o.Down(source)}
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
		s.Complete, s.Why, err = w.whole(ctx, x)
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

// whole derives whether nothing of a kind is missing, and if not, why.
func (w *Walker) whole(ctx context.Context, x *walked) (bool, string, error) {
	m, err := w.read(ctx, x)
	if err != nil {
		return false, "", err
	}
	down := w.o.Down(x.source.Name)
	switch at := w.swept(x, &m); {
	case m.Failed != "":
		return false, m.Failed, nil
	case m.Rest == 0 && down != "":
		return false, "not synced to its end; upstream: " + down, nil
	case m.Rest == 0:
		return false, "not synced to its end", nil
	case m.Behind != 0:
		return false, "catching up since " + moment(m.Behind), nil
	case down == "" && w.clock()-at > int64(w.o.Sweep/time.Second):
		if at == 0 {
			return false, "a part was never walked", nil
		}
		return false, fmt.Sprintf("a part was not walked since %s", moment(at)), nil
	}
	if x.plan.under == nil {
		return true, "", nil
	}
	above := w.walks[x.source.Name+"/"+x.plan.under.Name]
	ok, why, err := w.whole(ctx, above)
	if !ok && err == nil {
		why = above.kind.Title + ": " + why
	}
	return ok, why, err
}

func moment(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02 15:04:05 UTC") }
