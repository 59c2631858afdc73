// The store in memory finds records by looking at all of them.

package store

import (
	"context"
	"slices"
	"time"

	"understudy"
)

// memorySeek is one question under way.
type memorySeek struct {
	m     *Memory
	q     *understudy.Seek
	below understudy.Place // the last one looked at
	since map[string]bool  // "kind/id" of what came or changed
	text  *memoryText      // nil: any
}

// memorySpot is a record where it stands.
type memorySpot struct {
	place        understudy.Place
	rec          *memoryRecord
	source, kind string
	of           *memoryKind
}

// seek makes a question ready.
func (m *Memory) seek(q *understudy.Seek) (*memorySeek, error) {
	s := &memorySeek{m: m, q: q, below: q.Below}
	if err := checkSeek(q); err != nil {
		return nil, err
	}
	plan, asked, err := m.o.askedText(q)
	if asked && err == nil {
		s.text = &memoryText{holds: plan.condition()}
	}
	return s, err
}

// Seek is as DB.Seek.
func (m *Memory) Seek(ctx context.Context, q understudy.Seek, yield func(understudy.Found) bool) error {
	s, err := m.seek(&q)
	for given, more := 0, true; err == nil && more; {
		var found []understudy.Found
		if err = m.enter(ctx); err != nil {
			break
		}
		found, more = s.some(rowsAtOnce)
		m.mu.Unlock()
		for _, f := range found {
			if !yield(f) {
				return nil
			}
			if given++; given == q.Limit {
				return nil
			}
		}
	}
	return failed(false, err, "seek in %s", q.Source)
}

// Count is as DB.Count.
func (m *Memory) Count(ctx context.Context, q understudy.Seek, most int64, by time.Time) (n understudy.Count, err error) {
	s, err := m.seek(&q)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return n, failed(false, err, "count in %s", q.Source)
	}
	defer m.mu.Unlock()
	for more := true; more; {
		if !by.IsZero() && !m.o.Now().Before(by) {
			n.AtLeast = true
			return n, nil
		}
		var found []understudy.Found
		found, more = s.some(rowsAtOnce)
		if n.N += int64(len(found)); most > 0 && n.N > most || q.Limit > 0 && n.N >= int64(q.Limit) {
			break
		}
	}
	if q.Limit > 0 {
		n.N = min(n.N, int64(q.Limit))
	}
	if most > 0 && n.N > most {
		n.N, n.AtLeast = most, true
	}
	return n, nil
}

// some looks at the next few records.
func (s *memorySeek) some(most int) (found []understudy.Found, more bool) {
	if s.since == nil && s.q.Since > 0 {
		s.since = map[string]bool{}
		if of := s.m.sources[s.q.Source]; of != nil {
			for _, c := range of.changes[min(s.q.Since, int64(len(of.changes))):] {
				s.since[c.Kind+"/"+c.ID] = c.What != understudy.Went
			}
		}
	}
	spots := s.next(most)
	for _, one := range spots {
		s.below = one.place
		if f, ok := s.found(&one); ok {
			found = append(found, f)
		}
	}
	return found, len(spots) == most
}

// next are the next records by their places, whatever they are.
func (s *memorySeek) next(most int) (spots []memorySpot) {
	from, to := positions(*s.q)
	if at := int64(s.below) >> shapeBits; s.below != 0 && s.q.Up {
		from = max(from, at)
	} else if s.below != 0 {
		to = min(to, at)
	}
	for name, source := range s.m.sources {
		for kindName, k := range source.kinds {
			if !wants(s.q, name, kindName) {
				continue
			}
			low, _ := slices.BinarySearch(k.ground.at, from)
			high, exactly := slices.BinarySearch(k.ground.at, to)
			if exactly {
				high++
			}
			after := func(at int64) bool { // it comes after the last one
				p := placeOf(at, k.number)
				return s.below == 0 || p < s.below != s.q.Up && p != s.below
			}
			taken := 0
			for i := range max(high-low, 0) {
				at := k.ground.at[low+i]
				if !s.q.Up {
					at = k.ground.at[high-1-i]
				}
				if !after(at) {
					continue
				}
				if taken++; taken > most {
					break
				}
				rec := k.ground.of[at]
				spots = append(spots, memorySpot{place: placeOf(at, k.number), rec: rec, source: name, kind: kindName, of: k})
			}
		}
	}
	slices.SortFunc(spots, func(a, b memorySpot) int { return inOrder(s.q.Up)(int64(a.place), int64(b.place)) })
	return spots[:min(len(spots), most)]
}

// found is what is given of a record, if it is meant.
func (s *memorySeek) found(one *memorySpot) (f understudy.Found, ok bool) {
	shape := s.q.Shape
	if shape == "" {
		shape = one.rec.shapeShown(one.of, firstShape(s.m.o.kindSpec(one.source, one.kind)))
	}
	h := one.rec.held[shape]
	if h == nil || h.state&(stateGone|stateForgotten) != 0 || s.since != nil && !s.since[one.kind+"/"+one.rec.id] {
		return f, false
	}
	spec, last := s.m.o.kindSpec(one.source, one.kind), one.rec.last(shape)
	parent := last.parent
	if parent == "" && spec != nil {
		parent = parentOf(spec.Parent, h.body)
	}
	if !fulfils(s.q, spec, one.rec.id, parent, h.body) || s.text != nil && !s.text.says(one, spec, s.q.Shape) {
		return f, false
	}
	return understudy.Found{Clock: last.clock, Place: one.place, Record: &understudy.Record{Source: one.source, Kind: one.kind, Shape: shape, ID: one.rec.id,
		Number: one.rec.number, Version: h.version, Body: slices.Clone(h.body), Since: unix(last.since), Seen: unix(h.seen),
		Final: h.state&stateFinal != 0, Invalid: h.state&stateInvalid != 0}}, true
}

// shapeShown is the shape a record is told in: first, when it is held in that.
func (r *memoryRecord) shapeShown(k *memoryKind, first string) string {
	for _, shape := range append([]string{first}, k.shapes...) {
		if h := r.held[shape]; h != nil && h.state&(stateGone|stateForgotten) == 0 {
			return shape
		}
	}
	return ""
}
