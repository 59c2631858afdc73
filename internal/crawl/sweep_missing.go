// This file decides about records that a sweep did not see. They are fetched one by one, or must be missing again
// in the next sweep.

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

// The number of missing records that a sweep accepts without checking a sample.
const (
	fewMissing   = 20 // this many missing records are always accepted
	missingShare = 10 // the divisor of the share of stored records that may be missing
	sampleSize   = 20
	// maxThinned is the number of consecutive sweeps that must miss very many records without a path of their own
	// before these records count as deleted.
	maxThinned = 4
)

// resolve finds out what happened to the records that are stored and that the sweep did not see.
func (s *sweepRun) resolve(ctx context.Context, missing []entry) error {
	missing, err := s.filterStored(ctx, missing)
	if err != nil {
		return err
	}
	if len(missing) > fewMissing && len(missing)*missingShare > s.storedIDs.Len() {
		if err := s.checkSample(ctx, missing); err != nil {
			return err
		}
	}
	without := []string{}
	for _, e := range missing {
		target := s.x.plan.instanceTarget(e.id, e.parent, "")
		if target == nil {
			without = append(without, e.id)
			continue
		}
		if _, err := s.job.fetch(ctx, target); err != nil {
			return err
		}
	}
	return s.removeUnnamed(ctx, without)
}

// filterStored returns the entries whose records are still stored and that upstream does not drop by itself.
func (s *sweepRun) filterStored(ctx context.Context, missing []entry) ([]entry, error) {
	parents := map[string]bool{}
	var out []entry
	for _, e := range missing {
		if s.x.plan.kind.Retention.WithParent && s.x.plan.parentKind != nil {
			over, known := parents[e.parent]
			if !known {
				var err error
				if over, err = s.isParentOver(ctx, e.parent); err != nil {
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
			held = held || err == nil && !s.isBeyondWalk(rec) && !s.x.plan.isForeign(rec.Body)
		}
		if held {
			out = append(out, e)
		}
	}
	return out, nil
}

// isBeyondWalk reports whether the walk ended before the place of a record without a clock. If the place is
// unknown, a walk over part of the list cannot decide about the record.
func (s *sweepRun) isBeyondWalk(rec *understudy.Record) bool {
	if !s.endsAtFloor || s.timeRange != nil {
		return false
	}
	k := s.x.plan.kind
	if clock := fieldTime(k, k.Clock, rec.Body); clock != 0 {
		return false
	}
	at := fieldTime(k, k.Order, rec.Body)
	return at == 0 || at < s.w.bounds.floor(s.x, s.began)
}

// fieldTime returns the time in a field of a body, or 0.
func fieldTime(k *spec.Kind, name string, body []byte) int64 {
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

// isParentOver reports whether a parent record is final or deleted, so that upstream drops the records under it. A
// parent that was not final when last seen is fetched.
func (s *sweepRun) isParentOver(ctx context.Context, id string) (bool, error) {
	above := s.x.parent
	rec, err := s.w.nesting.readParent(ctx, above, id)
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return true, nil
	case err != nil || rec.Final:
		return err == nil, err
	}
	target := above.plan.instanceTarget(id, "", "")
	if target == nil || id == "" {
		return true, nil
	}
	page, err := s.job.fetch(ctx, target)
	if err != nil {
		return false, err
	}
	return page.Status != 200 || len(page.Rows) == 0 || page.Rows[0].Final, nil
}

// checkSample fetches a sample if very many records are missing. It returns an error if one of these records still
// exists: the list is unreliable, and nothing must be deleted.
func (s *sweepRun) checkSample(ctx context.Context, missing []entry) error {
	for i := range min(sampleSize, len(missing)) {
		e := missing[i*len(missing)/min(sampleSize, len(missing))]
		target := s.x.plan.instanceTarget(e.id, e.parent, "")
		if target == nil {
			continue
		}
		page, err := s.job.fetch(ctx, target)
		if err != nil {
			return err
		}
		if page.Status == 200 {
			return fmt.Errorf("walk: sweep %s: %d of %d records are missing in upstream's list, but %s still exists; nothing was removed",
				s.x.plan.name(), len(missing), s.storedIDs.Len(), e.id)
		}
	}
	return nil
}

// maxMissed is the maximum size in bytes of the missed ids that are stored between two sweeps, because a state must
// fit into one value.
const maxMissed = 24 << 10

// removeUnnamed deletes missing records without a path of their own if two consecutive sweeps missed them.
func (s *sweepRun) removeUnnamed(ctx context.Context, ids []string) error {
	m, err := s.w.states.read(ctx, s.x)
	if err != nil || s.timeRange != nil || len(ids)+len(m.Missed)+m.DoubtfulSweeps == 0 {
		return err
	}
	if len(ids) > fewMissing && len(ids)*missingShare > s.storedIDs.Len() && m.DoubtfulSweeps+1 < maxThinned {
		s.w.o.Logger.Warn("walk: very many records are missing in upstream's list and cannot be checked one by one; nothing is removed yet",
			"kind", s.x.plan.name(), "missing", len(ids), "of", s.storedIDs.Len(), "seen", m.DoubtfulSweeps+1, "believed", maxThinned)
		return s.w.states.change(ctx, s.x, func(m *kindState) { m.DoubtfulSweeps++ })
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
			m.DoubtfulSweeps = 0
		}
	})
}
