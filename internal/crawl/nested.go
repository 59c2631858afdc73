// This file walks nested kinds. Their lists exist only under a record of their parent kind, so they are walked
// under each parent record.

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

// childPosition is where a walk over stored parent records continues.
type childPosition struct {
	Clock     int64 `json:"clock,omitempty"`
	Record    int64 `json:"record,omitempty"`
	Unclocked bool  `json:"unclocked,omitempty"` // whether all parent records that have a clock were walked
	Ended     bool  `json:"ended,omitempty"`
}

// batchSize is how many stored records are read at once.
const batchSize = 1000

// syncNested syncs a kind whose lists lie under the records of a parent kind.
func (s *syncRun) syncNested(ctx context.Context) error {
	above := s.x.parent
	why, _, err := s.w.status.findLackInRoots(ctx, above)
	if err != nil {
		return err
	}
	if why != "" {
		err = fmt.Errorf("walk: sync %s: %s %w: %s", s.x.plan.name(), above.plan.kind.Title, errParentFirst, why)
		return &understudy.Snooze{Wait: parentWait, Err: err}
	}
	if s.mark.Top == nil {
		after, err := s.w.nesting.findLastChange(ctx, s.x.plan.source.Name, 0)
		if err != nil {
			return err
		}
		if err := s.keep(ctx, func(m *mark) { m.After, m.Top = after, []string{} }); err != nil {
			return err
		}
	}
	s.parents = parentCounts{title: above.plan.kind.Title, first: s.mark.ParentsDone, done: s.mark.ParentsDone}
	if s.w.o.Count != nil {
		if s.parents.all, err = s.w.o.Count(ctx, above.plan.source.Name, above.plan.kind.Name); err != nil {
			return err
		}
	}
	for !s.mark.ParentPosition.Ended {
		if err := s.syncGroup(ctx, above); err != nil {
			return err
		}
	}
	s.job.run.SetProgress(s.mark.ListRows, s.mark.ListRows, fmt.Sprintf("%d records read, %s", s.mark.ListRows, s.parents.note()))
	if err := s.job.checkEnds(ctx); err != nil {
		return err
	}
	return s.w.states.change(ctx, s.x, func(m *kindState) {
		m.Failures, m.LinkedLists, m.Params = nil, m.LinkedLists|s.job.endsFound().LinkedLists, s.job.endsFound().Params
		m.ListsWalkedAt, m.Records = max(m.ListsWalkedAt, s.mark.Began), s.mark.ListRows
		m.CaughtUp, m.LastChange, m.GapAt = max(m.CaughtUp, s.mark.Began), max(m.LastChange, s.mark.After), 0
	})
}

// errParentFirst means that the parent kind must be complete before its nested kind is walked.
var errParentFirst = errors.New("must be complete first")

// parentWait is the pause before a sync checks again whether the parent kind is complete.
const parentWait = 5 * time.Second

// maxParallel is the maximum number of parent records under which lists are walked at once. With one second per
// response, the source's request budget is then the limit.
const maxParallel = 16

// syncGroup walks under the next parent records, some in parallel. The mark advances up to the first record
// that is not done.
func (s *syncRun) syncGroup(ctx context.Context, above *kindCrawl) error {
	at := s.mark.ParentPosition
	rows, next, err := s.w.nesting.readParents(ctx, above, at)
	if err != nil {
		return err
	}
	g, marked := &progressPrefix{rows: make([]int64, len(rows))}, 0
	err = runParallel(ctx, len(rows), maxParallel, func(ctx context.Context, i int) error {
		pages, seen := 0, int64(0)
		err := s.job.visitNested(ctx, rows[i], func(page *understudy.Page) {
			pages, seen = pages+1, seen+int64(len(page.Rows))
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		due := g.noteEnd(i, pages, seen)
		s.mu.Unlock()
		if !due {
			return nil
		}
		return s.keep(ctx, func(m *mark) {
			if m.ListRows += g.take(); g.done > 0 {
				m.ParentsDone += int64(g.done - marked)
				s.parents.done, marked = m.ParentsDone, g.done
				last := rows[g.done-1]
				m.ParentPosition = childPosition{Clock: last.Clock, Record: last.Record, Unclocked: at.Unclocked}
			}
		})
	})
	if err != nil {
		return err
	}
	return s.keep(ctx, func(m *mark) {
		m.ListRows += g.take()
		m.ParentsDone += int64(len(rows) - marked)
		s.parents.done, m.ParentPosition = m.ParentsDone, next
	})
}

// progressPrefix counts how many parallel walks have ended without a gap.
type progressPrefix struct {
	rows        []int64 // the rows seen by each walk, plus one; 0 if the walk has not ended
	done        int     // the number of walks at the start of the slice that have all ended
	seen        int64   // the rows seen by the walks counted in done since the last take
	pages       int     // the pages fetched by walks that ended since the last take
	unrequested int     // the walks that ended without a request since the last take
}

// maxUnmarked is the maximum number of ended walks without requests before the mark is saved; a crash repeats them.
const maxUnmarked = 64

// noteEnd notes that a walk has ended. It reports whether the mark should be saved.
func (g *progressPrefix) noteEnd(i, pages int, rows int64) bool {
	g.rows[i] = rows + 1
	g.pages += pages
	g.unrequested++
	before := g.done
	for g.done < len(g.rows) && g.rows[g.done] > 0 {
		g.seen += g.rows[g.done] - 1
		g.done++
	}
	return g.done > before && (g.pages > 0 || g.unrequested >= maxUnmarked)
}

// take returns the rows seen since the last call.
func (g *progressPrefix) take() int64 {
	seen := g.seen
	g.seen, g.pages, g.unrequested = 0, 0, 0
	return seen
}

// nesting reads the parent records of nested lists.
type nesting struct {
	bounds *bounds
	store  Store
}

// readParents returns the next records of the parent kind and the position after them.
func (n *nesting) readParents(ctx context.Context, above *kindCrawl, at childPosition) ([]understudy.Row, childPosition, error) {
	q := above.plan.scan(above.plan.shapes()[0], batchSize)
	q.Parent, q.NoClock = "", at.Unclocked // the parent records of every root are read
	if floor := n.bounds.floor(above, n.bounds.unixNow()); floor != minClock && !at.Unclocked {
		q.From = floor
	}
	q.Below.Clock, q.Below.Record = at.Clock, at.Record
	rows, err := n.store.ReadRows(ctx, q)
	switch {
	case err != nil:
		return nil, at, err
	case len(rows) == batchSize:
		last := rows[batchSize-1]
		return rows, childPosition{Clock: last.Clock, Record: last.Record, Unclocked: at.Unclocked}, nil
	case !at.Unclocked:
		return rows, childPosition{Unclocked: true}, nil
	}
	return rows, childPosition{Ended: true}, nil
}

// visitNested walks every list under one parent record. A deleted record has no lists.
func (t *jobRun) visitNested(ctx context.Context, parent understudy.Row, see func(*understudy.Page)) error {
	above, p := t.x.parent, t.x.plan
	if p.kind.Retention.WithParent && parent.Final {
		return nil
	}
	root, err := t.w.nesting.findRoot(ctx, above, parent)
	if err != nil {
		return err
	}
	in := *p
	in.root = root
	p = &in
	for i, l := range p.lists {
		none, err := t.w.nesting.hasEmptyList(ctx, above, l, parent.ID)
		if err != nil || none {
			if err != nil {
				return err
			}
			continue
		}
		first, err := p.buildTarget(i, parent.ID, interval{minClock, maxClock, 0}, t.w.o.Settings.Page)
		if err != nil {
			return err
		}
		err = t.visitPages(ctx, first, position{List: i}, func(page *understudy.Page, _ position) error {
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

// readParent returns the newest version of a record of the parent kind, or ErrNotFound.
func (n *nesting) readParent(ctx context.Context, above *kindCrawl, id string) (*understudy.Record, error) {
	return n.store.Record(ctx, above.plan.source.Name, above.plan.kind.Name, above.plan.shapes()[0], id)
}

// findRoot returns the root that a parent record lies under, or "" for the root of the source's user.
func (n *nesting) findRoot(ctx context.Context, above *kindCrawl, row understudy.Row) (string, error) {
	if len(above.plan.source.Roots) == 0 {
		return "", nil
	}
	if above.plan.kind.Root != "" {
		return row.Parent, nil
	}
	rec, err := n.readParent(ctx, above, row.ID)
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

// hasEmptyList reports whether a record says that a list under it is empty.
func (n *nesting) hasEmptyList(ctx context.Context, above *kindCrawl, l *spec.List, id string) (bool, error) {
	if l.Count == "" {
		return false, nil
	}
	rec, err := n.readParent(ctx, above, id)
	if errors.Is(err, understudy.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	rows, ok := numberIn(rec.Body, l.Count)
	return ok && rows == 0, nil
}

// numberIn returns the number in a field of a body. The field may be a string.
func numberIn(body []byte, field string) (int64, bool) {
	v, _ := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, field)
	n, err := strconv.ParseInt(jsonspan.Text(body, v), 10, 64)
	return n, err == nil
}

// findLastChange returns the number of the newest change of a source above the number after.
func (n *nesting) findLastChange(ctx context.Context, source string, after int64) (int64, error) {
	// Changes are numbered without gaps, so the last is found by doubling and halving the step.
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

// follow runs the job "catch up KIND" of a nested kind: it walks under every new or changed parent record.
func (t *jobRun) follow(ctx context.Context) error {
	w, x := t.w, t.x
	m, err := w.states.read(ctx, x)
	if err != nil || m.ListsWalkedAt == 0 {
		return err
	}
	above := x.parent
	for after := m.LastChange; ; {
		began := w.bounds.unixNow()
		changes, err := w.o.Store.ReadChanges(ctx, x.plan.source.Name, after, batchSize)
		if err != nil {
			return err
		}
		ids, last := changedIDs(changes, above.plan.kind.Name)
		err = runParallel(ctx, len(ids), maxParallel, func(ctx context.Context, i int) error {
			rec, err := w.nesting.readParent(ctx, above, ids[i])
			if errors.Is(err, understudy.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			return t.visitNested(ctx, understudy.Row{ID: ids[i], Final: rec.Final}, func(*understudy.Page) {})
		})
		if err != nil {
			return err
		}
		after = max(after, last)
		open := t.checkEnds(ctx) // a list without a proven end is not walked again, so its reason is noted before the position advances
		if open != nil && !errors.Is(open, understudy.ErrInvalid) {
			return open
		}
		err = w.states.change(ctx, x, func(m *kindState) {
			if open != nil {
				m.ListsWalkedAt = 0
				m.addFailure(partLists, shortReason(open), w.bounds.unixNow(), true)
				return
			}
			m.LastChange = max(m.LastChange, after)
			if len(changes) < batchSize {
				m.CaughtUp, m.GapAt = max(m.CaughtUp, began), 0
			}
		})
		if err != nil || open != nil || len(changes) < batchSize {
			return err
		}
	}
}

// changedIDs returns the new and changed records of a kind, each once, and the number of the last change read.
func changedIDs(changes []understudy.Change, kind string) ([]string, int64) {
	var ids []string
	last := int64(0)
	for _, c := range changes {
		last = c.N
		if c.Kind == kind && c.Type != understudy.Deleted {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), last
}
