// Sweep: a stretch is walked again from end to end; what is held of it and was
// not seen is asked for by itself.

package crawl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/folder"
)

// sweep is the job "sweep KIND": of a stretch of time when the payload names
// one, else of the whole lists.
func (w *Crawler) sweep(ctx context.Context, run Run) error {
	t, x, e, err := w.begin(run)
	if err != nil {
		return begun(err)
	}
	s := &sweepRun{jobRun: t, x: x, began: w.clock()}
	if e.From != 0 || e.To != 0 {
		s.stretch = &interval{From: e.From, To: e.To}
	}
	part := int64(whole)
	if s.stretch != nil {
		part = s.stretch.To
	}
	return w.ended(ctx, t, x, part, s.all(ctx))
}

// sweepRun is one run of a sweep. One that broke off begins anew: what it saw
// is in memory alone.
type sweepRun struct {
	*jobRun
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
			return fmt.Errorf("walk: sweep %s: %w; make sync.slice shorter", s.x.name(), err)
		}
		weight += len(e.id) + len(e.parent) + perEntry
	}
	return s.weigh(ctx, int64(weight))
}

// missing is what was held and not seen.
func (s *sweepRun) missing() []entry {
	var out []entry
	folder.Merge(&s.before, &s.seen, func(what folder.What, key, parent, _ []byte) bool {
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
	if err := s.checkEnds(ctx, s.x); err != nil {
		return err // what a list does not show may stand behind its last page
	}
	missing := s.missing()
	if err := s.resolve(ctx, missing); err != nil {
		return err
	}
	s.run.Progress(s.rows, s.rows, fmt.Sprintf("%d records seen, %d held ones were not", s.rows, len(missing)))
	return s.w.change(ctx, s.x, func(m *kindState) {
		m.forget(s.w.floor(s.x, s.began))
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
	q := query.RangeScan{Source: s.x.source.Name, Kind: s.x.kind.Name, Parent: s.x.parentOf(), Limit: 10 * batch}
	floor := s.w.floor(s.x, s.began)
	if floor != early {
		q.From = floor
	}
	var out []query.RangeScan
	for _, shape := range s.x.shapes() {
		q.Shape = shape
		if s.stretch == nil {
			null := q
			null.From, null.Unclocked = 0, true
			if out = append(out, null); !s.x.sliced() {
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
				return fmt.Errorf("walk: sweep %s: %w", s.x.name(), err)
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
	see := func(page *understudy.Page) error {
		var ids []entry
		for _, row := range page.Rows {
			s.rows++
			if s.stretch == nil && s.x.sliced() && row.Clock != 0 {
				continue // a stretch looks after it
			}
			ids = append(ids, entry{id: row.ID})
		}
		s.run.Progress(s.rows, 0, "")
		return s.add(ctx, &s.seen, ids...)
	}
	if s.x.plan.parentKind != nil {
		return s.beneathAll(ctx, see)
	}
	for i := range s.x.lists {
		err := s.one(ctx, i, see)
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// one walks one list.
func (s *sweepRun) one(ctx context.Context, list int, see func(*understudy.Page) error) error {
	if s.stretch != nil {
		return s.jobRun.forEachPageIn(ctx, s.x.plan, list, *s.stretch, position{List: list},
			func(page *understudy.Page, _ position) error { return see(page) })
	}
	first, err := s.x.page(list, "", interval{early, late, 0}, s.w.o.Page)
	if err != nil {
		return err
	}
	floor, begun := s.w.floor(s.x, s.began), false
	return s.forEachPage(ctx, s.x.plan, first, position{List: list}, func(page *understudy.Page, _ position) error {
		if !begun && list == 0 {
			s.top = top(page)
		}
		begun = true
		if err := see(page); err != nil {
			return err
		}
		if s.w.past(page, floor) {
			s.cut = true
			return errEnough
		}
		return nil
	})
}

// beneathAll walks under every record of the kind above.
func (s *sweepRun) beneathAll(ctx context.Context, see func(*understudy.Page) error) error {
	above := s.x.above
	for at := (childPosition{}); !at.Ended; {
		rows, next, err := nesting{s.w}.parents(ctx, above, at)
		if err != nil {
			return err
		}
		var mu sync.Mutex
		err = each(ctx, rows, beside, func(ctx context.Context, row understudy.Row) error {
			var bad error
			err := s.forEachPageUnder(ctx, s.x.plan, above, row, func(page *understudy.Page) {
				mu.Lock()
				defer mu.Unlock()
				bad = errors.Join(bad, see(page))
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

// recheck promises sweeps of what is doubted.
func (w *Crawler) recheck(ctx context.Context, x *kindCrawl, all intervals) error {
	m, err := w.read(ctx, x)
	if err != nil || !m.Keep || m.Rest == 0 {
		return err
	}
	now := w.clock()
	for _, doubt := range all {
		if doubt.From == 0 && doubt.To == 0 || !x.sliced() {
			if now-m.Rest >= doubtAgain && !m.rests(whole, now) {
				err = errors.Join(err, w.enqueue(ctx, x, "sweep", understudy.Steady, payload{}, ""))
			}
			continue
		}
		for _, c := range w.partitions(w.floor(x, now), m.Oldest, now) {
			if c.To <= doubt.From || c.From >= unbound(doubt.To, late) || now-m.Spans.oldest(c.From, c.To) < doubtAgain || m.rests(c.To, now) {
				continue
			}
			err = errors.Join(err, w.enqueue(ctx, x, "sweep", understudy.Steady, payload{From: c.From, To: c.To}, "/"+strconv.FormatInt(c.To, 10)))
		}
	}
	return err
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
		m, err := w.read(ctx, one)
		if err == nil && m.Rest != 0 {
			err = w.change(ctx, one, func(m *kindState) { m.Lost = w.clock() })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
