// This file walks the time ranges of a kind from the newest to the oldest.

package crawl

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"understudy"
)

// syncPartitions walks the time ranges that this sync has not walked yet.
func (s *syncRun) syncPartitions(ctx context.Context) error {
	floor := s.w.bounds.floor(s.x, s.mark.Began)
	if !s.mark.OldestKnown {
		if err := s.probe(ctx, floor); err != nil {
			return err
		}
	}
	m, err := s.w.states.read(ctx, s.x)
	if err != nil {
		return err
	}
	var cells []interval
	for _, c := range s.w.bounds.partitions(floor, s.mark.Oldest, s.mark.Began) {
		if !m.Spans.hasAll(c.From, c.To, s.mark.Began) {
			cells = append(cells, c)
		}
	}
	return runParallel(ctx, len(cells), s.w.o.Settings.Slices, func(ctx context.Context, i int) error {
		return s.syncPartition(ctx, cells[i])
	})
}

// probe finds out how far back the records of a kind go. Each request asks for one record, twice as far back as the
// request before.
func (s *syncRun) probe(ctx context.Context, floor int64) error {
	size := int64(s.w.o.Settings.Slice / time.Second)
	edge, oldest := s.mark.Began-mod(s.mark.Began, size), int64(0)
	for step := size; floor == minClock; step *= 2 {
		oldest = edge - step
		if oldest <= 0 {
			oldest = 0
			break
		}
		found, err := s.hasOlder(ctx, oldest)
		if err != nil {
			return err
		}
		if !found {
			break
		}
	}
	return s.keep(ctx, func(m *mark) { m.OldestKnown, m.Oldest = true, oldest })
}

// hasOlder reports whether a list has a record older than a clock.
func (s *syncRun) hasOlder(ctx context.Context, clock int64) (bool, error) {
	for i := range s.x.plan.lists {
		target, err := s.x.plan.buildTarget(i, "", interval{minClock, clock, 0}, 1)
		if err != nil {
			return false, err
		}
		page, err := s.job.fetch(ctx, target)
		if err != nil {
			return false, err
		}
		r := &refusal{page: page, spec: s.x.plan.source.Spec}
		switch {
		case page.Status == http.StatusOK && len(page.Rows) > 0:
			return true, nil
		case page.Status == http.StatusOK:
		case !r.isRetention():
			return false, r
		default:
			return false, s.w.states.noteEnd(ctx, s.x, clock)
		}
	}
	return false, nil
}

// syncPartition walks one time range in every list.
func (s *syncRun) syncPartition(ctx context.Context, c interval) error {
	at := s.openPosition(c.From)
	for list := at.List; list < len(s.x.plan.lists); list++ {
		if at.List != list {
			at = position{List: list}
		}
		err := s.job.visitInterval(ctx, list, c, at, func(page *understudy.Page, next position) error {
			return s.keep(ctx, func(m *mark) {
				rows := int64(0)
				for _, row := range page.Rows { // the other lists of a kind may show the same records again
					if list == 0 && row.Clock != 0 && row.Clock >= c.From && row.Clock < c.To {
						rows++
					}
				}
				m.RangeRows += rows
				m.put(c.From, rows, next)
			})
		})
		if err != nil {
			return err
		}
	}
	open := s.job.checkEnds(ctx) // a time range whose end is not proven will be walked again
	if open != nil && !errors.Is(open, understudy.ErrInvalid) {
		return open
	}
	if open == nil {
		if err := s.w.states.change(ctx, s.x, func(m *kindState) { m.Spans = m.Spans.add(c.From, c.To, s.mark.Began) }); err != nil {
			return err
		}
	}
	return s.keep(ctx, func(m *mark) {
		m.OpenRanges = slices.DeleteFunc(m.OpenRanges, func(o openPartition) bool { return o.From == c.From })
	})
}

// visitInterval walks a time range of one list from a position to its end.
func (t *jobRun) visitInterval(ctx context.Context, list int, c interval, at position, see func(*understudy.Page, position) error) error {
	p := t.x.plan
	ask := c
	if c.To != maxClock {
		ask.To += int64(t.w.o.Settings.Overlap / time.Second)
	}
	first, err := p.buildTarget(list, "", ask, t.w.o.Settings.Page)
	if err != nil {
		return err
	}
	err = t.visitPages(ctx, first, at, see)
	var r *refusal
	if !errors.As(err, &r) || !r.isRetention() {
		return err
	}
	// Part of the range is older than upstream's retention. The next request asks for everything that upstream
	// still has. If upstream refuses that too, it has no older records.
	if ask.From != minClock {
		ask.From = minClock
		if first, err = p.buildTarget(list, "", ask, t.w.o.Settings.Page); err != nil {
			return err
		}
		if err = t.visitPages(ctx, first, position{List: list}, see); !errors.As(err, &r) || !r.isRetention() {
			return err
		}
	}
	return t.w.states.noteEnd(ctx, t.x, c.To)
}

// noteEnd notes that upstream keeps no records older than a clock.
func (s *states) noteEnd(ctx context.Context, x *kindCrawl, clock int64) error {
	return s.change(ctx, x, func(m *kindState) {
		m.Ended = "upstream keeps nothing older than " + time.Unix(clock, 0).UTC().Format(time.DateOnly)
	})
}

// openPosition returns where the walk of a time range continues.
func (s *syncRun) openPosition(from int64) position {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.mark.OpenRanges {
		if o.From == from {
			return o.position
		}
	}
	return position{}
}

// put notes after a page where the walk of a time range continues.
func (m *mark) put(from, rows int64, at position) {
	if at.Next == "" {
		at.List++
	}
	for i := range m.OpenRanges {
		if m.OpenRanges[i].From == from {
			m.OpenRanges[i].position = at
			m.OpenRanges[i].Rows += rows
			return
		}
	}
	m.OpenRanges = append(m.OpenRanges, openPartition{from, rows, at})
}

// walkRest walks the whole lists from the page after the newest page.
func (s *syncRun) walkRest(ctx context.Context) error {
	for !s.mark.Ended {
		at := s.mark.ListsPosition
		first, err := s.x.plan.buildTarget(at.List, "", interval{minClock, maxClock, 0}, s.w.o.Settings.Page)
		if err != nil {
			return err
		}
		floor := s.w.bounds.floor(s.x, s.mark.Began)
		err = s.job.visitPages(ctx, first, at, func(page *understudy.Page, next position) error {
			if s.w.bounds.isBefore(page, floor) {
				next.Next = ""
			}
			err := s.keep(ctx, func(m *mark) {
				if at.List == 0 {
					m.ListRows = next.Rows
				}
				m.ListsPosition, m.Ended = s.x.plan.nextPosition(next)
			})
			if err == nil && next.Next == "" {
				return errEnough
			}
			return err
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// errEnough ends a walk before the end of its list, without a failure.
var errEnough = errors.New("walk: enough")
