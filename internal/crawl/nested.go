// Nested: kinds without a list of their own, walked record by record of the kind
// they lie under.

package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// childPosition is where a walk over held records goes on.
type childPosition struct {
	Clock     int64 `json:"clock,omitempty"`
	Record    int64 `json:"record,omitempty"`
	Unclocked bool  `json:"unclocked,omitempty"` // those with a clock are done
	Ended     bool  `json:"ended,omitempty"`
}

// batch is how many held records are read at once.
const batch = 1000

// nested fills up a kind that lies under another.
func (s *syncRun) nested(ctx context.Context) error {
	above := s.x.above
	why, _, err := s.w.status.allLack(ctx, above)
	if err != nil {
		return err
	}
	if why != "" {
		err = fmt.Errorf("walk: sync %s: %s %w: %s", s.x.plan.name(), above.plan.kind.Title, errAbove, why)
		return &understudy.Snooze{Wait: aboveWait, Err: err}
	}
	if s.mark.Top == nil {
		after, err := s.w.nesting.lastChange(ctx, s.x.plan.source.Name, 0)
		if err != nil {
			return err
		}
		if err := s.keep(ctx, func(m *mark) { m.After, m.Top = after, []string{} }); err != nil {
			return err
		}
	}
	s.parents = parentCounts{title: above.plan.kind.Title, first: s.mark.Above, done: s.mark.Above}
	if s.w.o.Count != nil {
		if s.parents.all, err = s.w.o.Count(ctx, above.plan.source.Name, above.plan.kind.Name); err != nil {
			return err
		}
	}
	for !s.mark.Under.Ended {
		if err := s.group(ctx, above); err != nil {
			return err
		}
	}
	s.job.run.Progress(s.mark.Whole, s.mark.Whole, fmt.Sprintf("%d records seen, %s", s.mark.Whole, s.parents.note()))
	if err := s.job.checkEnds(ctx); err != nil {
		return err
	}
	return s.w.states.change(ctx, s.x, func(m *kindState) {
		m.Failures, m.Led, m.Params = nil, m.Led|s.job.found().Led, s.job.found().Params
		m.Rest, m.Records = max(m.Rest, s.mark.Began), s.mark.Whole
		m.CaughtUp, m.After, m.Behind = max(m.CaughtUp, s.mark.Began), max(m.After, s.mark.After), 0
	})
}

// errAbove: the kind above is not complete.
var errAbove = errors.New("come first")

// aboveWait is how soon a sync looks again whether the kind above is complete.
const aboveWait = 5 * time.Second

// beside is how many records are walked under at once: enough that at a second
// an answer the source's budget is what limits.
const beside = 16

// group walks under the next records, some beside each other. The mark goes as
// far as all of them are done.
func (s *syncRun) group(ctx context.Context, above *kindCrawl) error {
	at := s.mark.Under
	rows, next, err := s.w.nesting.parents(ctx, above, at)
	if err != nil {
		return err
	}
	g, marked := &prefix{rows: make([]int64, len(rows))}, 0
	err = each(ctx, len(rows), beside, func(ctx context.Context, i int) error {
		pages, seen := 0, int64(0)
		err := s.job.forEachPageUnder(ctx, rows[i], func(page *understudy.Page) {
			pages, seen = pages+1, seen+int64(len(page.Rows))
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		due := g.ends(i, pages, seen)
		s.mu.Unlock()
		if !due {
			return nil
		}
		return s.keep(ctx, func(m *mark) {
			if m.Whole += g.take(); g.done > 0 {
				m.Above += int64(g.done - marked)
				s.parents.done, marked = m.Above, g.done
				last := rows[g.done-1]
				m.Under = childPosition{Clock: last.Clock, Record: last.Record, Unclocked: at.Unclocked}
			}
		})
	})
	if err != nil {
		return err
	}
	return s.keep(ctx, func(m *mark) {
		m.Whole += g.take()
		m.Above += int64(len(rows) - marked)
		s.parents.done, m.Under = m.Above, next
	})
}

// prefix is how far some walks beside each other have come, without a gap.
type prefix struct {
	rows  []int64 // seen by each, and one; 0: it has not ended
	done  int     // all up to here have ended
	seen  int64   // by those, and not taken yet
	asked int     // pages that ended walks took, since take
	free  int     // walks that ended without one, since take
}

// unmarked is how many walks that asked for nothing are done again after a kill.
const unmarked = 64

// ends notes that a walk has ended, and reports whether that is worth a mark.
func (g *prefix) ends(i, pages int, rows int64) bool {
	g.rows[i] = rows + 1
	g.asked += pages
	g.free++
	before := g.done
	for g.done < len(g.rows) && g.rows[g.done] > 0 {
		g.seen += g.rows[g.done] - 1
		g.done++
	}
	return g.done > before && (g.asked > 0 || g.free >= unmarked)
}

// take are the rows seen since the last time.
func (g *prefix) take() int64 {
	seen := g.seen
	g.seen, g.asked, g.free = 0, 0, 0
	return seen
}

// nesting reads the records that lists of another kind lie under.
type nesting struct {
	bounds *bounds
	store  Store
}

// parents are the next records of the kind above, and where those after them
// begin.
func (n *nesting) parents(ctx context.Context, above *kindCrawl, at childPosition) ([]understudy.Row, childPosition, error) {
	q := above.plan.scan(above.plan.shapes()[0], batch)
	q.Parent, q.Unclocked = "", at.Unclocked // of every root
	if floor := n.bounds.floor(above, n.bounds.clock()); floor != early && !at.Unclocked {
		q.From = floor
	}
	q.Below.Clock, q.Below.Record = at.Clock, at.Record
	rows, err := n.store.Rows(ctx, q)
	switch {
	case err != nil:
		return nil, at, err
	case len(rows) == batch:
		last := rows[batch-1]
		return rows, childPosition{Clock: last.Clock, Record: last.Record, Unclocked: at.Unclocked}, nil
	case !at.Unclocked:
		return rows, childPosition{Unclocked: true}, nil
	}
	return rows, childPosition{Ended: true}, nil
}

// beneath walks every list under one record. One that is gone has nothing
// under it.
func (t *jobRun) forEachPageUnder(ctx context.Context, parent understudy.Row, see func(*understudy.Page)) error {
	above, p := t.x.above, t.x.plan
	if p.kind.Retention.WithParent && parent.Final {
		return nil
	}
	root, err := t.w.nesting.rootOf(ctx, above, parent)
	if err != nil {
		return err
	}
	p = p.under(root)
	for i, l := range p.lists {
		none, err := t.w.nesting.none(ctx, above, l, parent.ID)
		if err != nil || none {
			if err != nil {
				return err
			}
			continue
		}
		first, err := p.page(i, parent.ID, interval{early, late, 0}, t.w.o.Settings.Page)
		if err != nil {
			return err
		}
		err = t.forEachPage(ctx, first, position{List: i}, func(page *understudy.Page, _ position) error {
			see(page)
			return nil
		})
		var r *refusal
		if err != nil && !(errors.As(err, &r) && (r.page.Status == http.StatusNotFound || r.page.Status == http.StatusGone)) {
			return err
		}
	}
	return nil
}

// record is the newest version of a record of the kind above. ErrNotFound.
func (n *nesting) record(ctx context.Context, above *kindCrawl, id string) (*understudy.Record, error) {
	return n.store.Record(ctx, above.plan.source.Name, above.plan.kind.Name, above.plan.shapes()[0], id)
}

// rootOf is the root that a record lies under, "" for that of the source's user.
func (n *nesting) rootOf(ctx context.Context, above *kindCrawl, row understudy.Row) (string, error) {
	if len(above.plan.source.Roots) == 0 {
		return "", nil
	}
	if above.plan.kind.Root != "" {
		return row.Parent, nil
	}
	rec, err := n.record(ctx, above, row.ID)
	if errors.Is(err, understudy.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	field := above.plan.source.Spec.RootField(above.plan.kind)
	v, _ := jsonspan.Find(rec.Body, jsonspan.Value{Kind: jsonspan.Object, End: len(rec.Body)}, field)
	if v.Kind != jsonspan.String {
		return "", nil
	}
	return jsonspan.Text(rec.Body, v), nil
}

// none reports whether a record says of itself that a list under it is empty.
func (n *nesting) none(ctx context.Context, above *kindCrawl, l *spec.List, id string) (bool, error) {
	if l.Count == "" {
		return false, nil
	}
	rec, err := n.record(ctx, above, id)
	if errors.Is(err, understudy.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	rows, ok := count(rec.Body, l.Count)
	return ok && rows == 0, nil
}

// count is the number in a field of a body, which may be a string.
func count(body []byte, field string) (int64, bool) {
	v, _ := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, field)
	n, err := strconv.ParseInt(jsonspan.Text(body, v), 10, 64)
	return n, err == nil
}

// lastChange is the number of the newest change of a source, from one on.
func (n *nesting) lastChange(ctx context.Context, source string, after int64) (int64, error) {
	// Changes are numbered without a gap, so the last one is found by halving.
	step := int64(1)
	for {
		some, err := n.store.ReadChanges(ctx, source, after+step-1, 1)
		switch {
		case err != nil:
			return 0, err
		case len(some) > 0:
			after, step = some[0].N, step*2
		case step > 1:
			step /= 2
		default:
			return after, nil
		}
	}
}

// follow is the job "catch up KIND" of a kind that lies under another: it walks
// under every record that came or changed.
func (t *jobRun) follow(ctx context.Context) error {
	w, x := t.w, t.x
	m, err := w.states.read(ctx, x)
	if err != nil || m.Rest == 0 {
		return err
	}
	above := x.above
	for after := m.After; ; {
		began := w.bounds.clock()
		changes, err := w.o.Store.ReadChanges(ctx, x.plan.source.Name, after, batch)
		if err != nil {
			return err
		}
		ids, last := changedIDs(changes, above.plan.kind.Name)
		err = each(ctx, len(ids), beside, func(ctx context.Context, i int) error {
			rec, err := w.nesting.record(ctx, above, ids[i])
			if errors.Is(err, understudy.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			return t.forEachPageUnder(ctx, understudy.Row{ID: ids[i], Final: rec.Final}, func(*understudy.Page) {})
		})
		if err != nil {
			return err
		}
		after = max(after, last)
		open := t.checkEnds(ctx) // before the place moves on: a list that is not proven is not walked again
		if open != nil && !errors.Is(open, understudy.ErrInvalid) {
			return open
		}
		err = w.states.change(ctx, x, func(m *kindState) {
			if open != nil {
				m.Rest = 0
				m.fails(whole, reason(open), w.bounds.clock(), true)
				return
			}
			m.After = max(m.After, after)
			if len(changes) < batch {
				m.CaughtUp, m.Behind = max(m.CaughtUp, began), 0
			}
		})
		if err != nil || open != nil || len(changes) < batch {
			return err
		}
	}
}

// changedIDs are the records of a kind that came or changed, each once, and the
// number of the last change looked at.
func changedIDs(changes []understudy.Change, kind string) ([]string, int64) {
	var ids []string
	last := int64(0)
	for _, c := range changes {
		last = c.N
		if c.Kind == kind && c.Type != understudy.Went {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), last
}
