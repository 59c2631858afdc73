// Sweep: a stretch is walked again from end to end; what is held of it and was
// not seen is asked for by itself.

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

// sweep is the job "sweep KIND": of a stretch of time when the payload names
// one, else of the whole lists.
func (t *jobRun) sweep(ctx context.Context) error {
	s, part := &sweepRun{w: t.w, job: t, x: t.x, began: t.w.bounds.clock()}, int64(whole)
	if e := &t.work; e.From != 0 || e.To != 0 {
		s.stretch, part = &interval{From: e.From, To: e.To}, e.To
	}
	return t.ended(ctx, part, s.all(ctx))
}

// sweepRun is one run of a sweep. One that broke off begins anew: what it saw
// is in memory alone.
type sweepRun struct {
	w       *Crawler
	job     *jobRun
	x       *kindCrawl
	stretch *interval // nil: the whole lists
	began   int64
	before  folder.Folder // what was held when it began: id and parent
	seen    folder.Folder // ids
	rows    int64
	cut     bool     // a list was walked to the floor and not to its end
	top     []string // the newest records when it began, of a walk over the whole lists
}

// entry is one id and the record it lies under.
type entry struct{ id, parent string }

// perEntry is what a folder takes for an entry besides its bytes.
const perEntry = 16

// add puts an entry into one of the two folders.
func (s *sweepRun) add(ctx context.Context, f *folder.Folder, ids ...entry) error {
	weight := 0
	for _, e := range ids {
		if err := f.Add([]byte(e.id), []byte(e.parent)); err != nil {
			return fmt.Errorf("walk: sweep %s: %w; make sync.slice shorter", s.x.plan.name(), err)
		}
		weight += len(e.id) + len(e.parent) + perEntry
	}
	return s.job.weigh(ctx, int64(weight))
}

// missing is what was held and not seen.
func (s *sweepRun) missing() []entry {
	var out []entry
	folder.Merge(&s.before, &s.seen, func(what folder.Difference, key, parent, _ []byte) bool {
		if what == folder.Removed {
			out = append(out, entry{string(key), string(parent)})
		}
		return true
	})
	return out
}

func (s *sweepRun) all(ctx context.Context) error {
	if err := s.held(ctx); err != nil {
		return err
	}
	if err := s.walk(ctx); err != nil {
		return err
	}
	if err := s.job.checkEnds(ctx); err != nil {
		return err // what a list does not show may stand behind its last page
	}
	missing := s.missing()
	if err := s.resolve(ctx, missing); err != nil {
		return err
	}
	s.job.run.Progress(s.rows, s.rows, fmt.Sprintf("%d records seen, %d held ones were not", s.rows, len(missing)))
	return s.w.states.change(ctx, s.x, func(m *kindState) {
		m.forget(s.w.bounds.floor(s.x, s.began))
		if s.stretch != nil {
			m.Spans = m.Spans.add(s.stretch.From, s.stretch.To, s.began)
			m.well(s.stretch.To, *s.stretch)
			return
		}
		m.Rest, m.Records = max(m.Rest, s.began), s.rows
		if s.x.plan.parentKind == nil && s.began > m.CaughtUp {
			m.reach(s.top, s.began) // it went down from the newest page as a catch-up does
		}
		m.well(whole, interval{})
	})
}

// windows are the held records the sweep can tell missing.
func (s *sweepRun) windows() []query.RangeScan {
	q := s.x.plan.scan("", 10*batch)
	if floor := s.w.bounds.floor(s.x, s.began); floor != early {
		q.From = floor
	}
	var out []query.RangeScan
	for _, shape := range s.x.plan.shapes() {
		q.Shape = shape
		if s.stretch == nil {
			null := q
			null.From, null.Unclocked = 0, true
			if out = append(out, null); !s.x.plan.sliced() {
				out = append(out, q)
			}
			continue
		}
		part := q
		if s.stretch.From != early {
			part.From = max(q.From, s.stretch.From)
		}
		if s.stretch.To != late {
			part.To = s.stretch.To
		}
		out = append(out, part)
	}
	return out
}

// held notes what is held of what is swept.
func (s *sweepRun) held(ctx context.Context) error {
	for _, q := range s.windows() {
		for {
			rows, err := s.w.o.Store.Rows(ctx, q)
			if err != nil {
				return fmt.Errorf("walk: sweep %s: %w", s.x.plan.name(), err)
			}
			ids := make([]entry, len(rows))
			for i, row := range rows {
				ids[i] = entry{row.ID, row.Parent}
			}
			if err := s.add(ctx, &s.before, ids...); err != nil {
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

// walk walks what is swept and notes what it sees.
func (s *sweepRun) walk(ctx context.Context) error {
	see := func(page *understudy.Page, _ position) error {
		var ids []entry
		for _, row := range page.Rows {
			s.rows++
			if s.stretch == nil && s.x.plan.sliced() && row.Clock != 0 {
				continue // a stretch looks after it
			}
			ids = append(ids, entry{id: row.ID})
		}
		s.job.run.Progress(s.rows, 0, "")
		return s.add(ctx, &s.seen, ids...)
	}
	if s.x.plan.parentKind != nil {
		return s.beneathAll(ctx, see)
	}
	for i := range s.x.plan.lists {
		err := s.one(ctx, i, see)
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// one walks one list.
func (s *sweepRun) one(ctx context.Context, list int, see func(*understudy.Page, position) error) error {
	if s.stretch != nil {
		return s.job.forEachPageIn(ctx, list, *s.stretch, position{List: list}, see)
	}
	first, err := s.x.plan.page(list, "", interval{early, late, 0}, s.w.o.Settings.Page)
	if err != nil {
		return err
	}
	floor, begun := s.w.bounds.floor(s.x, s.began), false
	return s.job.forEachPage(ctx, first, position{List: list}, func(page *understudy.Page, next position) error {
		if !begun && list == 0 {
			s.top = top(page)
		}
		begun = true
		if err := see(page, next); err != nil {
			return err
		}
		if s.w.bounds.past(page, floor) {
			s.cut = true
			return errEnough
		}
		return nil
	})
}

// beneathAll walks under every record of the kind above.
func (s *sweepRun) beneathAll(ctx context.Context, see func(*understudy.Page, position) error) error {
	above := s.x.above
	for at := (childPosition{}); !at.Ended; {
		rows, next, err := s.w.nesting.parents(ctx, above, at)
		if err != nil {
			return err
		}
		var mu sync.Mutex
		err = each(ctx, len(rows), beside, func(ctx context.Context, i int) error {
			var bad error
			err := s.job.forEachPageUnder(ctx, rows[i], func(page *understudy.Page) {
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

// Bounds of what is walked again before its time.
const (
	maxDoubts  = 16  // stretches of a kind; beyond them the whole lists are walked
	doubtAgain = 600 // seconds after a walk in which it is not doubted
)

// Recheck says that records with a clock in [from, to) (Unix seconds, 0 and 0: any,
// or none) may not be what was walked. What was not walked within ten minutes is
// walked again. It returns at once; what is covered stays so.
func (w *Crawler) Recheck(source, kind string, from, to int64) {
	name := source + "/" + kind
	if w.walks[name] == nil {
		return
	}
	w.mu.Lock()
	if len(w.rechecks[name]) >= maxDoubts {
		w.rechecks[name], from, to = nil, 0, 0
	}
	w.rechecks[name] = append(w.rechecks[name], interval{From: from, To: to})
	w.mu.Unlock()
	rouse(w.wake)
}

// Forgot says that records of a kind are forgotten though upstream has them:
// until every part was walked again nothing is covered that was walked before,
// and the walks begin at once. Say it before they go. ErrInvalid: no such kind;
// of one that cannot be synced there is nothing to say.
func (w *Crawler) Forgot(ctx context.Context, source, kind string) error {
	x, err := w.find(source, kind)
	if Never(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for one := range x.each() {
		m, err := w.states.read(ctx, one)
		if err == nil && m.Rest != 0 {
			err = w.states.change(ctx, one, func(m *kindState) { m.Lost = w.bounds.clock() })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
