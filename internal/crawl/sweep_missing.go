// Missing: records that a sweep did not see are fetched one by one, or have to be
// missing again in the next sweep.

package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Limits of how many records may be missing before the sweep checks a sample.
const (
	fewMissing = 20 // so many may always be
	share      = 10 // and one in so many
	sample     = 20
	// thinned is how many sweeps in a row must miss very many records that have no
	// path of their own, until these count as gone.
	thinned = 4
)

// resolve finds out what became of what was held and not seen.
func (s *sweepRun) resolve(ctx context.Context, missing []entry) error {
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
		target := s.x.plan.instance(e.id, e.parent, "")
		if target == nil {
			without = append(without, e.id)
			continue
		}
		if _, err := s.job.fetch(ctx, target); err != nil {
			return err
		}
	}
	return s.unnamed(ctx, without)
}

// still are those that are held to this moment and that upstream does not
// forget by itself.
func (s *sweepRun) still(ctx context.Context, missing []entry) ([]entry, error) {
	parents := map[string]bool{}
	var out []entry
	for _, e := range missing {
		if s.x.plan.kind.Retention.WithParent && s.x.plan.parentKind != nil {
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
		for _, shape := range s.x.plan.shapes() {
			rec, err := s.w.o.Store.Record(ctx, s.x.plan.source.Name, s.x.plan.kind.Name, shape, e.id)
			if err != nil && !errors.Is(err, understudy.ErrNotFound) {
				return nil, err
			}
			held = held || err == nil && !s.beyond(rec) && !s.x.plan.another(rec.Body)
		}
		if held {
			out = append(out, e)
		}
	}
	return out, nil
}

// beyond reports whether the walk ended before the position of a record without a
// clock. If that position is unknown, a walk over part of the list cannot decide
// about the record.
func (s *sweepRun) beyond(rec *understudy.Record) bool {
	if !s.cut || s.stretch != nil {
		return false
	}
	k := s.x.plan.kind
	if clock := unixOf(k, k.Clock, rec.Body); clock != 0 {
		return false
	}
	at := unixOf(k, k.Order, rec.Body)
	return at == 0 || at < s.w.bounds.floor(s.x, s.began)
}

// unixOf is the time in a field of a body, 0 when there is none.
func unixOf(k *spec.Kind, name string, body []byte) int64 {
	f := k.Field(name)
	if f == nil {
		return 0
	}
	v, ok := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, name)
	if !ok || v.Kind == jsonspan.Null {
		return 0
	}
	return spec.Unix(f.Type, []byte(jsonspan.Text(body, v)))
}

// over reports whether a record that others lie under is final or gone, so that
// upstream forgets them. One that was not final when last seen is asked for.
func (s *sweepRun) over(ctx context.Context, id string) (bool, error) {
	above := s.x.above
	rec, err := s.w.nesting.record(ctx, above, id)
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return true, nil
	case err != nil || rec.Final:
		return err == nil, err
	}
	target := above.plan.instance(id, "", "")
	if target == nil || id == "" {
		return true, nil
	}
	page, err := s.job.fetch(ctx, target)
	if err != nil {
		return false, err
	}
	return page.Status != 200 || len(page.Rows) == 0 || page.Rows[0].Final, nil
}

// sampled looks at some of very many that are missing. When they are there the
// list does not show what it should, and nothing is done about the others.
func (s *sweepRun) sampled(ctx context.Context, missing []entry) error {
	for i := range min(sample, len(missing)) {
		e := missing[i*len(missing)/min(sample, len(missing))]
		target := s.x.plan.instance(e.id, e.parent, "")
		if target == nil {
			continue
		}
		page, err := s.job.fetch(ctx, target)
		if err != nil {
			return err
		}
		if page.Status == 200 {
			return fmt.Errorf("walk: sweep %s: %d of %d records are missing in upstream's list and at least %s is still there; nothing was removed",
				s.x.plan.name(), len(missing), s.before.Len(), e.id)
		}
	}
	return nil
}

// maxMissed bounds what is remembered between two sweeps, in bytes of ids: what
// is known of a kind has to fit into a value.
const maxMissed = 24 << 10

// unnamed sees to those without a path of their own: missing in two sweeps in a
// row is gone.
func (s *sweepRun) unnamed(ctx context.Context, ids []string) error {
	m, err := s.w.states.read(ctx, s.x)
	if err != nil || s.stretch != nil || len(ids)+len(m.Missed)+m.Thinned == 0 {
		return err
	}
	if len(ids) > fewMissing && len(ids)*share > s.before.Len() && m.Thinned+1 < thinned {
		s.w.o.Logger.Warn("walk: very many records are missing in upstream's list, and none can be asked for by itself; nothing is removed yet",
			"kind", s.x.plan.name(), "missing", len(ids), "of", s.before.Len(), "seen", m.Thinned+1, "believed", thinned)
		return s.w.states.change(ctx, s.x, func(m *kindState) { m.Thinned++ })
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
		if err := s.w.o.Mirror.Remove(ctx, s.x.plan.source.Name, s.x.plan.kind.Name, id); err != nil {
			return err
		}
	}
	return s.w.states.change(ctx, s.x, func(m *kindState) {
		m.Missed = again
		if len(again) == 0 {
			m.Thinned = 0
		}
	})
}
