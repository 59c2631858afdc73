// This file walks a time range again from end to end. It fetches each stored record that the walk does not see.

package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/folder"
)

// sweep runs the job "sweep KIND": it sweeps the time range of the payload, or the whole lists.
func (t *jobRun) sweep(ctx context.Context) error {
	s, part := &sweepRun{w: t.w, job: t, x: t.x, began: t.w.bounds.unixNow()}, int64(partLists)
	if e := &t.work; e.From != 0 || e.To != 0 {
		s.timeRange, part = &interval{From: e.From, To: e.To}, e.To
	}
	return t.noteEnded(ctx, part, s.run(ctx))
}

// sweepRun is one run of a sweep. An interrupted sweep starts again, because the ids it has seen are only in memory.
type sweepRun struct {
	w           *Crawler
	job         *jobRun
	x           *kindCrawl
	timeRange   *interval // the time range that is swept; nil for the whole lists
	began       int64
	storedIDs   folder.Folder // the ids and parents of the records stored at the start
	seenIDs     folder.Folder // the ids and parents of the records that the sweep has seen
	rows        int64
	endsAtFloor bool     // whether a list was walked only down to the clock of bounds.floor
	top         []string // the newest records when the sweep began; only for a walk over the whole lists
}

// entry is an id and its parent record.
type entry struct{ id, parent string }

// perEntry is the memory of an entry in a folder without its id and parent, in bytes.
const perEntry = 16

// add adds entries to one of the two folders and counts their memory.
func (s *sweepRun) add(ctx context.Context, f *folder.Folder, ids ...entry) error {
	weight := 0
	for _, e := range ids {
		if err := f.Add([]byte(e.id), []byte(e.parent)); err != nil {
			return fmt.Errorf("walk: sweep %s: %w; make sync.slice shorter", s.x.plan.name(), err)
		}
		weight += len(e.id) + len(e.parent) + perEntry
	}
	s.job.mu.Lock()
	s.job.weight += int64(weight)
	sum := s.job.weight
	s.job.mu.Unlock()
	return wrapMemoryError(s.job.run.Weigh(ctx, sum))
}

// run sweeps and records the result in the kind's state.
func (s *sweepRun) run(ctx context.Context) error {
	if err := s.collectStored(ctx); err != nil {
		return err
	}
	if err := s.walk(ctx); err != nil {
		return err
	}
	if err := s.job.checkEnds(ctx); err != nil {
		return err // the next pages were not seen, and the missing records may be on them
	}
	var missing []entry
	folder.Merge(&s.storedIDs, &s.seenIDs, func(what folder.Difference, key, parent, _ []byte) bool {
		if what == folder.Removed {
			missing = append(missing, entry{string(key), string(parent)})
		}
		return true
	})
	if err := s.resolve(ctx, missing); err != nil {
		return err
	}
	s.job.run.SetProgress(s.rows, s.rows, fmt.Sprintf("%d records read, %d stored ones not found", s.rows, len(missing)))
	return s.w.states.change(ctx, s.x, func(m *kindState) {
		m.forget(s.w.bounds.floor(s.x, s.began))
		if s.timeRange != nil {
			m.Spans = m.Spans.add(s.timeRange.From, s.timeRange.To, s.began)
			m.removeFailures(s.timeRange.To, *s.timeRange)
			return
		}
		m.ListsWalkedAt, m.Records = max(m.ListsWalkedAt, s.began), s.rows
		if s.x.plan.parentKind == nil && s.began > m.CaughtUp {
			m.advanceTip(s.top, s.began) // the walk started at the newest page, like a catch-up, so the known records advance
		}
		m.removeFailures(partLists, interval{})
	})
}

// windows returns the queries for the stored records that the sweep can find missing.
func (s *sweepRun) windows() []query.RangeScan {
	q := s.x.plan.scan("", 10*batchSize)
	if floor := s.w.bounds.floor(s.x, s.began); floor != minClock {
		q.From = floor
	}
	var out []query.RangeScan
	for _, shape := range s.x.plan.shapes() {
		q.Shape = shape
		if s.timeRange == nil {
			null := q
			null.From, null.NoClock = 0, true
			if out = append(out, null); !s.x.plan.isSliced() {
				out = append(out, q)
			}
			continue
		}
		part := q
		if s.timeRange.From != minClock {
			part.From = max(q.From, s.timeRange.From)
		}
		if s.timeRange.To != maxClock {
			part.To = s.timeRange.To
		}
		out = append(out, part)
	}
	return out
}

// collectStored collects the ids of the stored records of the swept range.
func (s *sweepRun) collectStored(ctx context.Context) error {
	for _, q := range s.windows() {
		for {
			rows, err := s.w.o.Store.ReadRows(ctx, q)
			if err != nil {
				return fmt.Errorf("walk: sweep %s: %w", s.x.plan.name(), err)
			}
			ids := make([]entry, len(rows))
			for i, row := range rows {
				ids[i] = entry{row.ID, row.Parent}
			}
			if err := s.add(ctx, &s.storedIDs, ids...); err != nil {
				return err
			}
			if len(rows) < q.Limit {
				break
			}
			last := rows[len(rows)-1]
			q.Below.Clock, q.Below.Record = last.Clock, last.Record
		}
	}
	return nil
}

// walk walks the swept range and collects the ids that it sees.
func (s *sweepRun) walk(ctx context.Context) error {
	see := func(page *understudy.Page, _ position) error {
		var ids []entry
		for _, row := range page.Rows {
			s.rows++
			if s.timeRange == nil && s.x.plan.isSliced() && row.Clock != 0 {
				continue // the record has a clock, so the sweep of its time range covers it
			}
			ids = append(ids, entry{id: row.ID})
		}
		s.job.run.SetProgress(s.rows, 0, "")
		return s.add(ctx, &s.seenIDs, ids...)
	}
	if s.x.plan.parentKind != nil {
		return s.walkNested(ctx, see)
	}
	for i := range s.x.plan.lists {
		err := s.walkList(ctx, i, see)
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// walkList walks one list.
func (s *sweepRun) walkList(ctx context.Context, list int, see func(*understudy.Page, position) error) error {
	if s.timeRange != nil {
		return s.job.visitInterval(ctx, list, *s.timeRange, position{List: list}, see)
	}
	first, err := s.x.plan.buildTarget(list, "", interval{minClock, maxClock, 0}, s.w.o.Settings.Page)
	if err != nil {
		return err
	}
	floor, begun := s.w.bounds.floor(s.x, s.began), false
	return s.job.visitPages(ctx, first, position{List: list}, func(page *understudy.Page, next position) error {
		if !begun && list == 0 {
			s.top = newestIDs(page)
		}
		begun = true
		if err := see(page, next); err != nil {
			return err
		}
		if s.w.bounds.isBefore(page, floor) {
			s.endsAtFloor = true
			return errEnough
		}
		return nil
	})
}

// walkNested walks under every record of the parent kind.
func (s *sweepRun) walkNested(ctx context.Context, see func(*understudy.Page, position) error) error {
	above := s.x.parent
	for at := (childPosition{}); !at.Ended; {
		rows, next, err := s.w.nesting.readParents(ctx, above, at)
		if err != nil {
			return err
		}
		var mu sync.Mutex
		err = runParallel(ctx, len(rows), maxParallel, func(ctx context.Context, i int) error {
			var bad error
			err := s.job.visitNested(ctx, rows[i], func(page *understudy.Page) {
				mu.Lock()
				defer mu.Unlock()
				bad = errors.Join(bad, see(page, position{}))
			})
			return errors.Join(err, bad)
		})
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}

// Limits of the walks that Recheck requests.
const (
	maxRechecks  = 16  // the maximum number of time ranges of a kind that are walked again; if there are more, the whole lists are walked
	recheckPause = 600 // how many seconds after a walk the same range is not walked again
)

// Recheck requests that records with a clock in [from, to) (Unix seconds) are walked again; 0 and 0 means
// records with or without any clock. Ranges walked within the last ten minutes are not repeated. It returns
// at once, and the coverage does not change.
func (w *Crawler) Recheck(source, kind string, from, to int64) {
	name := source + "/" + kind
	if w.walks[name] == nil {
		return
	}
	w.mu.Lock()
	if len(w.rechecks[name]) >= maxRechecks {
		w.rechecks[name], from, to = nil, 0, 0
	}
	w.rechecks[name] = append(w.rechecks[name], interval{From: from, To: to})
	w.mu.Unlock()
	understudy.Wake(w.wake)
}

// NoteLost marks a kind as incomplete because records are deleted here although upstream has them, and
// restarts its walks. Earlier walks no longer count. Call it before the records are deleted. It returns
// ErrInvalid for an unknown kind, and nil for a kind that cannot be synced.
func (w *Crawler) NoteLost(ctx context.Context, source, kind string) error {
	x, err := w.find(source, kind)
	if IsNeverSynced(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for one := range x.allRoots() {
		m, err := w.states.read(ctx, one)
		if err == nil && m.ListsWalkedAt != 0 {
			err = w.states.change(ctx, one, func(m *kindState) { m.LostAt = w.bounds.unixNow() })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
