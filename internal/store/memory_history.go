// The store in memory remembers, by the same rules.

package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"understudy"
)

// memoryStretch is a time in which a record looked the same in one shape, or
// was gone.
type memoryStretch struct {
	number  int64 // rises; a record that goes has one in each shape, of one time
	shape   string
	version int64 // 0: gone
	since   int64
	clock   int64
	parent  string
	final   bool
	body    []byte // nil: gone, or taken
}

// begin notes that another stretch began.
func (m *Memory) begin(rec *memoryRecord, one memoryStretch) {
	if n := len(rec.past); one.version == 0 && n > 0 && rec.past[n-1].version == 0 && rec.past[n-1].since == one.since {
		one.number = rec.past[n-1].number // the same going in another shape
	} else {
		m.stretch++
		one.number = m.stretch
	}
	rec.past = append(rec.past, one)
}

// went ends what a record is in every shape.
func (m *Memory) went(rec *memoryRecord, at int64) {
	for shape, h := range rec.held {
		if h.state&stateGone == 0 {
			m.begin(rec, memoryStretch{shape: shape, since: at})
		}
		h.state |= stateGone
		h.seen = at
	}
}

// taken notes that the body of a version is not held any more.
func (r *memoryRecord) taken(version int64) {
	for i := range r.past {
		if r.past[i].version == version {
			r.past[i].body = nil
		}
	}
}

// last is the stretch that lasts in a shape.
func (r *memoryRecord) last(shape string) memoryStretch {
	for _, one := range slices.Backward(r.past) {
		if one.shape == shape {
			return one
		}
	}
	return memoryStretch{}
}

// stretches are those of one shape, the newest first, as conn.stretches has
// them; the second are the bodies and what they say, by their place.
func (r *memoryRecord) stretches(shape string) (all []stretch, of []memoryStretch) {
	h := r.held[shape]
	if h == nil {
		return nil, nil
	}
	for _, m := range slices.Backward(r.past) {
		if m.shape != shape {
			continue
		}
		one := stretch{number: m.number, version: m.version, since: m.since}
		if n := len(all); n > 0 {
			one.until = all[n-1].since
			one.since = min(one.since, one.until)
		} else {
			one.seen, one.state = h.seen, h.state
		}
		all, of = append(all, one), append(of, m)
	}
	return all, of
}

// record is a record that was seen, nil when none was.
func (m *Memory) recordOf(source, kind, id string) *memoryRecord {
	if s := m.sources[source]; s != nil && s.kinds[kind] != nil {
		return s.kinds[kind].records[id]
	}
	return nil
}

// History is as DB.History.
func (m *Memory) History(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "history of %s %s %s", source, kind, id)
	}
	defer m.mu.Unlock()
	if limit <= 0 || limit > MaxHistory {
		limit = MaxHistory
	}
	var all []stretch
	of := map[int64]memoryStretch{}
	if rec := m.recordOf(source, kind, id); rec != nil {
		for shape := range rec.held {
			some, theirs := rec.stretches(shape)
			all = append(all, some...)
			for i := range some {
				of[some[i].number] = theirs[i]
			}
		}
	}
	if len(all) == 0 {
		return nil, failed(false, understudy.ErrNotFound, "history of %s %s %s", source, kind, id)
	}
	var versions []understudy.Version
	all = merged(all)
	for _, one := range all[:min(limit, len(all))] {
		v := understudy.Version{From: unix(one.since), Until: unix(one.until), Gone: one.version == 0}
		if !v.Gone {
			v.Number, v.Shape, v.Body = one.version, of[one.number].shape, slices.Clone(of[one.number].body)
		}
		versions = append(versions, v)
	}
	return versions, nil
}

// RecordAt is as DB.RecordAt.
func (m *Memory) RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error) {
	if at.IsZero() {
		return m.Record(ctx, source, kind, shape, id)
	}
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "record %s %s %s", source, kind, id)
	}
	defer m.mu.Unlock()
	if rec := m.recordOf(source, kind, id); rec != nil {
		r := &understudy.Record{Source: source, Kind: kind, Shape: shape, ID: id}
		if _, ok := rec.at(r, at.UnixNano()); ok {
			return r, nil
		}
	}
	return nil, failed(false, understudy.ErrNotFound, "record %s %s %s at %s", source, kind, id, at.Format(time.RFC3339))
}

// at completes rec as the record looked at a time.
func (r *memoryRecord) at(rec *understudy.Record, at int64) (was memoryStretch, ok bool) {
	all, of := r.stretches(rec.Shape)
	i := slices.IndexFunc(all, func(s stretch) bool { return s.since <= at })
	for i >= 0 && of[i].body == nil && all[i].version != 0 {
		i--
	}
	if i < 0 || of[i].body == nil {
		return was, false
	}
	one := &all[i]
	rec.Number, rec.Version, rec.Body, rec.Final = r.number, one.version, slices.Clone(of[i].body), of[i].final
	rec.Since, rec.Seen = unix(one.since), unix(one.since)
	if one.until == 0 {
		rec.Seen, rec.Invalid = unix(one.seen), one.state&stateInvalid != 0
	}
	return of[i], true
}

// memoryThen is a record as it was.
type memoryThen struct {
	rec *understudy.Record
	was memoryStretch
}

// window is what was in a window at a time, in its order.
func (m *Memory) window(w understudy.Window, at int64) (found []memoryThen) {
	s := m.sources[w.Source]
	if s == nil || s.kinds[w.Kind] == nil {
		return nil
	}
	from, to := bounds(w)
	below := begins(w)
	for id, rec := range s.kinds[w.Kind].records {
		r := &understudy.Record{Source: w.Source, Kind: w.Kind, Shape: w.Shape, ID: id}
		was, ok := rec.at(r, at)
		if !ok || was.clock < from || was.clock >= to || was.clock == 0 && !w.Unclocked || w.Parent != "" && was.parent != w.Parent || w.Open && was.final ||
			compareSpots(spot{was.clock, rec.number}, below) <= 0 {
			continue
		}
		found = append(found, memoryThen{r, was})
	}
	slices.SortFunc(found, func(a, b memoryThen) int {
		return cmp.Or(cmp.Compare(b.was.clock, a.was.clock), cmp.Compare(b.rec.Number, a.rec.Number))
	})
	return found
}

// Rows is as DB.Rows.
func (m *Memory) Rows(ctx context.Context, w understudy.Window) ([]understudy.Row, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "rows of %s %s", w.Source, w.Kind)
	}
	defer m.mu.Unlock()
	var rows []understudy.Row
	for _, f := range m.window(w, math.MaxInt64) {
		if len(rows) == limitOf(w) {
			break
		}
		rows = append(rows, understudy.Row{ID: f.rec.ID, Clock: f.was.clock, Parent: f.was.parent, Final: f.was.final, Record: f.rec.Number, Version: f.rec.Version})
	}
	return rows, nil
}

// RecordsAt is as DB.RecordsAt, but of one moment.
func (m *Memory) RecordsAt(ctx context.Context, w understudy.Window, at time.Time, yield func(rec *understudy.Record, clock int64) bool) error {
	if err := m.enter(ctx); err != nil {
		return failed(false, err, "records of %s %s at %s", w.Source, w.Kind, at.Format(time.RFC3339))
	}
	until := int64(math.MaxInt64)
	if !at.IsZero() {
		until = at.UnixNano()
	}
	found := m.window(w, until)
	m.mu.Unlock()
	for i, f := range found {
		if w.Limit > 0 && i == w.Limit || !yield(f.rec, f.was.clock) {
			break
		}
	}
	return nil
}
