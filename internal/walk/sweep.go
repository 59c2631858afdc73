// Sweep: a stretch is walked again from end to end; what is held of it and was
// not seen is asked for by itself.

package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"understudy"
	"understudy/kit/folder"
	"understudy/kit/jsonspan"
)

// sweep is the job "sweep KIND": of a stretch of time when the payload names
// one, else of the whole lists.
func (w *Walker) sweep(ctx context.Context, run Run) error {
	t, x, e, err := w.begin(run)
	if err != nil {
		return err
	}
	s := &sweeping{trip: t, x: x, began: w.clock()}
	if e.From != 0 || e.To != 0 {
		s.stretch = &span{From: e.From, To: e.To}
	}
	part := int64(whole)
	if s.stretch != nil {
		part = s.stretch.To
	}
	return w.ended(ctx, t, x, part, s.all(ctx))
}

// sweeping is one run of a sweep. One that broke off begins anew: what it saw
// is in memory alone.
type sweeping struct {
	*trip
	x       *walked
	stretch *span // nil: the whole lists
	began   int64
	before  folder.Folder // what was held when it began: id and parent
	seen    folder.Folder // ids
	rows    int64
	cut     bool // a list was walked to the floor and not to its end
}

// entry is one id and the record it lies under.
type entry struct{ id, parent string }

// perEntry is what a folder takes for an entry besides its bytes.
const perEntry = 16

// add puts an entry into one of the two folders.
func (s *sweeping) add(ctx context.Context, f *folder.Folder, ids ...entry) error {
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
func (s *sweeping) missing() []entry {
	var out []entry
	folder.Merge(&s.before, &s.seen, func(what folder.What, key, parent, _ []byte) bool {
		if what == folder.Removed {
			out = append(out, entry{string(key), string(parent)})
		}
		return true
	})
	return out
}

func (s *sweeping) all(ctx context.Context) error {
	if err := s.held(ctx); err != nil {
		return err
	}
	if err := s.walk(ctx); err != nil {
		return err
	}
	if err := s.resolve(ctx, s.missing()); err != nil {
		return err
	}
	return s.w.change(ctx, s.x, func(m *memo) {
		m.forget(s.w.floor(s.x, s.began))
		if s.stretch != nil {
			m.Spans = m.Spans.add(s.stretch.From, s.stretch.To, s.began)
			m.well(s.stretch.To, *s.stretch)
			return
		}
		m.Rest, m.Records = max(m.Rest, s.began), s.rows
		m.well(whole, span{})
	})
}

// windows are the held records the sweep can tell missing.
func (s *sweeping) windows() []understudy.Window {
	q := understudy.Window{Source: s.x.source.Name, Kind: s.x.kind.Name, Limit: 10 * batch}
	floor := s.w.floor(s.x, s.began)
	if floor != early {
		q.From = floor
	}
	var out []understudy.Window
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
func (s *sweeping) held(ctx context.Context) error {
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
func (s *sweeping) walk(ctx context.Context) error {
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
	if s.x.plan.under != nil {
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
func (s *sweeping) one(ctx context.Context, list int, see func(*understudy.Page) error) error {
	if s.stretch != nil {
		return s.trip.stretch(ctx, s.x.plan, list, *s.stretch, place{List: list}, func(page *understudy.Page, _ place) error { return see(page) })
	}
	first, err := s.x.page(list, "", span{early, late, 0}, s.w.o.Page)
	if err != nil {
		return err
	}
	floor := s.w.floor(s.x, s.began)
	return s.along(ctx, s.x.plan, first, place{List: list}, func(page *understudy.Page, _ place) error {
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
func (s *sweeping) beneathAll(ctx context.Context, see func(*understudy.Page) error) error {
	above := s.w.walks[s.x.source.Name+"/"+s.x.plan.under.Name]
	for at := (below{}); !at.Ended; {
		rows, next, err := s.w.parents(ctx, above, at)
		if err != nil {
			return err
		}
		var bad error
		for _, row := range rows {
			err := s.beneath(ctx, s.x.plan, above, row, func(page *understudy.Page) { bad = errors.Join(bad, see(page)) })
			if err = errors.Join(err, bad); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// Bounds of what may be missing before somebody looks twice.
const (
	fewMissing = 20 // so many may always be
	share      = 10 // and one in so many
	sample     = 20
	// thinned is how many sweeps in a row must miss very many that nobody can
	// ask for one by one, until that is believed.
	thinned = 4
)

// resolve finds out what became of what was held and not seen.
func (s *sweeping) resolve(ctx context.Context, missing []entry) error {
	missing, err := s.still(ctx, missing)
	if err != nil {
		return err
	}
	if len(missing) > fewMissing && len(missing)*share > s.before.Len() {
		if err := s.sampled(ctx, missing); err != nil {
			return err
		}
	}
	without := []string{}
	for _, e := range missing {
		target := s.x.instance(e.id, e.parent, "")
		if target == nil {
			without = append(without, e.id)
			continue
		}
		if _, err := s.fetch(ctx, target); err != nil {
			return err
		}
	}
	return s.unnamed(ctx, without)
}

// still are those that are held to this moment and that upstream does not
// forget by itself.
func (s *sweeping) still(ctx context.Context, missing []entry) ([]entry, error) {
	parents := map[string]bool{}
	var out []entry
	for _, e := range missing {
		if s.x.kind.Forgets.WithParent && s.x.plan.under != nil {
			over, known := parents[e.parent]
			if !known {
				var err error
				if over, err = s.over(ctx, e.parent); err != nil {
					return nil, err
				}
				parents[e.parent] = over
			}
			if over {
				continue
			}
		}
		held := false
		for _, shape := range s.x.shapes() {
			rec, err := s.w.o.Store.Record(ctx, s.x.source.Name, s.x.kind.Name, shape, e.id)
			if err != nil && !errors.Is(err, understudy.ErrNotFound) {
				return nil, err
			}
			held = held || err == nil && !s.beyond(rec) && !s.x.another(rec.Body)
		}
		if held {
			out = append(out, e)
		}
	}
	return out, nil
}

// beyond reports whether the walk did not go as far as where a record stands
// that has no clock. One whose place nobody knows is not judged by a walk that
// saw part of the list.
func (s *sweeping) beyond(rec *understudy.Record) bool {
	if !s.cut || s.stretch != nil {
		return false
	}
	k := s.x.kind
	if clock := unixOf(k, k.Clock, rec.Body); clock != 0 {
		return false
	}
	at := unixOf(k, k.Order, rec.Body)
	return at == 0 || at < s.w.floor(s.x, s.began)
}

// unixOf is the time in a field of a body, 0 when there is none.
func unixOf(k *understudy.Kind, name string, body []byte) int64 {
	f := k.Field(name)
	if f == nil {
		return 0
	}
	v, ok := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, name)
	if !ok || v.Kind == jsonspan.Null {
		return 0
	}
	return understudy.Unix(f.Type, []byte(jsonspan.Text(body, v)))
}

// over reports whether a record that others lie under is final or gone, so that
// upstream forgets them. One that was not final when last seen is asked for.
func (s *sweeping) over(ctx context.Context, id string) (bool, error) {
	above := s.w.walks[s.x.source.Name+"/"+s.x.plan.under.Name]
	rec, err := s.w.o.Store.Record(ctx, above.source.Name, above.kind.Name, above.shapes()[0], id)
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return true, nil
	case err != nil || rec.Final:
		return err == nil, err
	}
	target := above.instance(id, "", "")
	if target == nil || id == "" {
		return true, nil
	}
	page, err := s.fetch(ctx, target)
	if err != nil {
		return false, err
	}
	return page.Status != 200 || len(page.Rows) == 0 || page.Rows[0].Final, nil
}

// sampled looks at some of very many that are missing. When they are there the
// list does not show what it should, and nothing is done about the others.
func (s *sweeping) sampled(ctx context.Context, missing []entry) error {
	for i := range min(sample, len(missing)) {
		e := missing[i*len(missing)/min(sample, len(missing))]
		target := s.x.instance(e.id, e.parent, "")
		if target == nil {
			continue
		}
		page, err := s.fetch(ctx, target)
		if err != nil {
			return err
		}
		if page.Status == 200 {
			return fmt.Errorf("walk: sweep %s: %d of %d records are missing in upstream's list and at least %s is still there; nothing was removed", s.x.name(), len(missing), s.before.Len(), e.id)
		}
	}
	return nil
}

// Remover takes away a record that upstream shows no more and that has no path
// of its own to be asked for.
type Remover interface {
	Remove(ctx context.Context, source, kind, id string) error
}

// maxMissed bounds what is remembered between two sweeps, in bytes of ids: what
// is known of a kind has to fit into a note.
const maxMissed = 24 << 10

// unnamed sees to those without a path of their own: missing in two sweeps in a
// row is gone.
func (s *sweeping) unnamed(ctx context.Context, ids []string) error {
	m, err := s.w.read(ctx, s.x)
	if err != nil || s.stretch != nil || len(ids)+len(m.Missed)+m.Thinned == 0 {
		return err
	}
	if len(ids) > fewMissing && len(ids)*share > s.before.Len() && m.Thinned+1 < thinned {
		s.w.o.Logger.Warn("walk: very many records are missing in upstream's list, and none can be asked for by itself; nothing is removed yet",
			"kind", s.x.name(), "missing", len(ids), "of", s.before.Len(), "seen", m.Thinned+1, "believed", thinned)
		return s.w.change(ctx, s.x, func(m *memo) { m.Thinned++ })
	}
	var again []string
	size := 0
	for _, id := range ids {
		if !slices.Contains(m.Missed, id) {
			if size += len(id) + 3; size <= maxMissed {
				again = append(again, id)
			}
			continue
		}
		if s.w.o.Remover == nil {
			continue
		}
		if err := s.w.o.Remover.Remove(ctx, s.x.source.Name, s.x.kind.Name, id); err != nil {
			return err
		}
	}
	return s.w.change(ctx, s.x, func(m *memo) {
		m.Missed = again
		if len(again) == 0 {
			m.Thinned = 0
		}
	})
}
