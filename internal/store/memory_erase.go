// The store in memory erases by the same rules; there are no files to clean.

package store

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"understudy"
)

// memoryErasing is one listed record.
type memoryErasing struct {
	erasing
	erasure int // place in erasures, from 1; 0: not taken on
	source  string
	at      int64
	rec     *memoryRecord
	taken   bool
}

// memoryErasures is what a store in memory knows of erasing.
type memoryErasures struct {
	listed []memoryErasing
	all    []Erasure
	seal   []byte
}

// list lists a record.
func (m *Memory) list(source, kind, id string, cause Cause, rec *memoryRecord, at, bound int64, fields []string, erasure int) {
	m.erasures.listed = append(m.erasures.listed, memoryErasing{source: source, at: at, rec: rec, erasure: erasure,
		erasing: erasing{kindName: kind, id: id, cause: cause, bound: bound, fields: fields, record: rec.number}})
}

// listRedacted is as saving.listRedacted.
func (m *Memory) listRedacted(source, kind, id string, rec *memoryRecord, body []byte, at int64) {
	if fields := emptied(m.o.kindSpec(source, kind), body); len(fields) > 0 {
		m.list(source, kind, id, CauseRedacted, rec, at, m.version+1, fields, 0)
	}
}

func (o *Options) kindSpec(source, kind string) *understudy.Kind {
	if spec := o.Specs[source]; spec != nil {
		return spec.Kind(kind)
	}
	return nil
}

// refused is why a page is not kept, and which of its rows are.
func (m *Memory) refused(s *memorySource, page *understudy.Page) (why string, rows []understudy.Row) {
	horizon := m.o.horizon(page.Key.Source, page.Kind)
	for _, r := range page.Rows {
		mark := int64(0)
		if rec := s.kind(page.Kind).records[r.ID]; rec != nil {
			mark = rec.erased
		}
		switch {
		case mark == nameErased:
			why = notErased
		case aged(r.Clock, horizon, mark):
			if why == "" {
				why = notAged
			}
		default:
			rows = append(rows, r)
		}
	}
	return why, rows
}

// Horizon is as DB.Horizon.
func (m *Memory) Horizon(source, kind string) int64 { return m.o.horizon(source, kind) }

// Waiting is as DB.Waiting.
func (m *Memory) Waiting(ctx context.Context) (w Waiting, err error) {
	if err := m.enter(ctx); err != nil {
		return w, failed(false, err, "count what is to be erased")
	}
	defer m.mu.Unlock()
	if w.Records = int64(len(m.erasures.listed)); w.Records > 0 {
		w.Since = timeOf(m.erasures.listed[0].at)
	}
	return w, nil
}

// Erasures is as DB.Erasures.
func (m *Memory) Erasures(ctx context.Context, before int64, limit int) (all []Erasure, err error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "read the receipts")
	}
	defer m.mu.Unlock()
	for _, e := range slices.Backward(m.erasures.all) {
		if (before <= 0 || e.Number < before) && e.Number > 0 && len(all) < min(limit, MaxErasures) {
			all = append(all, e)
		}
	}
	return all, nil
}

// Find is as DB.Find.
func (m *Memory) Find(ctx context.Context, source, what string) (Found, error) {
	if err := m.enter(ctx); err != nil {
		return Found{}, failed(false, err, "find records in %s", source)
	}
	defer m.mu.Unlock()
	f, err := m.find(source, what)
	return f, failed(false, err, "find records in %s", source)
}

func (m *Memory) find(source, what string) (Found, error) {
	s := m.sources[source]
	if s == nil {
		return Found{}, errNoSource(source)
	}
	f := &finding{lookout: &lookout{text: what, n: understudy.ReadPhone(what)}, source: source, known: map[string]bool{}, roots: map[string]string{}, numbers: map[string]bool{}}
	add := func(name, id string, rec *memoryRecord) {
		f.add(&kindRow{spec: m.o.kindSpec(source, name)}, name, &entry{record: rec.number, id: id})
	}
	name, id, named := strings.Cut(what, "/")
	if named = named && s.kinds[name] != nil; named && s.kinds[name].records[id] != nil {
		add(name, id, s.kinds[name].records[id])
	}
	for round := 0; round < maxRounds; round++ {
		before := len(f.all)
		for _, name := range slices.Sorted(maps.Keys(s.kinds)) {
			spec := m.o.kindSpec(source, name)
			for _, id := range slices.Sorted(maps.Keys(s.kinds[name].records)) {
				rec := s.kinds[name].records[id]
				for version := range rec.versions {
					body := []byte(version[1])
					if !f.known[name+"/"+id] && (round == 0 && !named && f.phones(spec, body) || f.under(spec, body)) {
						add(name, id, rec)
					}
				}
			}
		}
		if len(f.all) == before {
			break
		}
	}
	return f.found()
}

// EraseNumber is as DB.EraseNumber.
func (m *Memory) EraseNumber(ctx context.Context, source, what string) (Erasure, Found, error) {
	if err := m.enter(ctx); err != nil {
		return Erasure{}, Found{}, failed(true, err, "erase in %s", source)
	}
	defer m.mu.Unlock()
	f, err := m.find(source, what)
	if err != nil || len(f.all) == 0 {
		return Erasure{}, f, failed(false, err, "erase in %s", source)
	}
	if m.erasures.seal == nil {
		m.erasures.seal = newSeal()
	}
	now := m.o.Now()
	e := m.open(source, CauseAsked)
	e.Hash = hex.EncodeToString(sealed(m.erasures.seal, source, what))
	slices.SortStableFunc(f.all, func(a, b found) int { return strings.Compare(a.kind, b.kind) })
	for _, one := range f.all {
		m.mark(source, one, CauseAsked, now.UnixNano(), int(e.Number))
	}
	return *e, f, nil
}

// open begins an errand.
func (m *Memory) open(source string, cause Cause) *Erasure {
	m.erasures.all = append(m.erasures.all, Erasure{Number: int64(len(m.erasures.all)) + 1, Source: source, Cause: cause, Begun: m.o.Now().UTC()})
	return &m.erasures.all[len(m.erasures.all)-1]
}

// mark is as marking.one.
func (m *Memory) mark(source string, one found, cause Cause, at int64, erasure int) {
	s := m.sources[source]
	rec := s.kinds[one.kind].records[one.id]
	rec.erased = nameErased
	if cause == CauseAged {
		rec.erased = nameAged
	}
	version := int64(0)
	for _, h := range rec.held {
		if h.state&stateGone == 0 {
			version = max(version, h.version)
		}
	}
	if version != 0 {
		m.went(rec, at)
		if cause == CauseAged {
			s.kinds[one.kind].state.Records--
			m.silent++
		} else {
			s.note(&understudy.Page{Key: understudy.Key{Source: source}, Kind: one.kind}, understudy.Went, one.id, rec.number, version, at, "")
		}
	}
	m.list(source, one.kind, one.id, cause, rec, at, 0, nil, erasure)
}

// Expire is as DB.Expire.
func (m *Memory) Expire(ctx context.Context, source, kind string) (listed int, err error) {
	if err := m.enter(ctx); err != nil {
		return 0, failed(true, err, "look for %s of %s past their retention", kind, source)
	}
	defer m.mu.Unlock()
	horizon, s := m.o.horizon(source, kind), m.sources[source]
	if horizon == 0 || s == nil || s.kinds[kind] == nil {
		return 0, nil
	}
	for _, id := range slices.Sorted(maps.Keys(s.kinds[kind].records)) {
		rec := s.kinds[kind].records[id]
		if len(rec.versions) == 0 {
			continue
		}
		clock, newest := int64(0), int64(0)
		for _, h := range rec.held {
			if h.version >= newest {
				clock, newest = rec.clocks[h.version], h.version
			}
		}
		if clock == 0 {
			clock = s.came(kind, id)
		}
		if clock < horizon {
			m.mark(source, found{kind: kind, id: id, record: rec.number}, CauseAged, m.o.Now().UnixNano(), 0)
			listed++
		}
	}
	return listed, nil
}

// came is when a record was first seen, in Unix seconds.
func (s *memorySource) came(kind, id string) int64 {
	for _, c := range s.changes {
		if c.Kind == kind && c.ID == id && c.What == understudy.Came {
			return c.At.Unix()
		}
	}
	return 0
}
