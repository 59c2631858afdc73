// Saving in memory: pages, sightings and what changed, by the rules of the database.

package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"understudy"
)

// Save is as DB.Save.
func (m *Memory) Save(ctx context.Context, p *understudy.Page) (understudy.Saved, error) {
	err := check(p)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return understudy.Saved{}, failed(true, err, "save page %s", p.Key)
	}
	defer m.mu.Unlock()
	saved, err := m.save(p)
	return saved, failed(true, err, "save page %s", p.Key)
}

func (m *Memory) save(p *understudy.Page) (understudy.Saved, error) {
	s := m.source(p.Key.Source)
	at := atOf(p, func() int64 { return m.o.Now().UnixNano() })
	if err := m.room(p); err != nil {
		return understudy.Saved{}, err
	}
	if outdated(p, s.kind(p.Kind).state.Generation) {
		return understudy.Saved{}, fmt.Errorf("%w: a write to %s came after the fetch began", understudy.ErrOutdated, p.Kind)
	}
	old := s.pages[p.Key.URI]
	if keepsPage(p) && old != nil && overtaken(at, old.at) {
		return understudy.Saved{}, fmt.Errorf("%w: a newer answer is held", understudy.ErrOutdated)
	}
	page := *p
	page.Rows = slices.Clone(recordsOf(p))
	if page.Sum == [16]byte{} {
		page.Sum = sumOf(p.Body)
	}
	before := len(s.changes)
	refused, kept := m.refused(s, &page)
	if refused != "" {
		page.Rows = kept
	}
	if removes(p) {
		if rec := m.remove(s, p, at); rec != nil {
			m.list(p.Key.Source, p.Kind, p.ID, CauseDeleted, rec, at, 0, nil, 0)
		}
	} else if err := m.observe(s, &page, at); err != nil {
		return understudy.Saved{}, err
	}
	if refused != "" {
		page.Rows, page.NotStored = recordsOf(p), refused
	} else if keepsPage(p) {
		s.put(&page, old, at)
	}
	return understudy.Saved{Page: &page, Changes: slices.Clone(s.changes[before:])}, nil
}

// put keeps the page, which gets its version.
func (s *memorySource) put(page *understudy.Page, old *memoryPage, at int64) {
	if old != nil && old.page.Sum == page.Sum {
		page.Version = old.page.Version
	} else {
		s.page++
		page.Version = s.page
	}
	kept := &memoryPage{page: *page, at: at, read: at}
	kept.page.At = time.Unix(0, at).UTC()
	kept.page.Took, kept.page.Superseded, kept.page.Changed = 0, false, ""
	if nextOf(page) == "" {
		kept.page.Next = understudy.Key{}
	}
	s.pages[page.Key.URI] = kept
}

// prior is what is known of the record before a save.
func (r *memoryRecord) prior(shape string) prior {
	p := prior{number: r.number}
	for name, h := range r.held {
		switch {
		case name == shape:
			p.held, p.version, p.hash, p.seen, p.state = true, h.version, h.hash, h.seen, h.state
		case h.state&stateGone == 0:
			p.elsewhere = true
		default:
			p.left = max(p.left, h.seen)
		}
	}
	return p
}

// observe saves the records of the page.
func (m *Memory) observe(s *memorySource, page *understudy.Page, at int64) error {
	if len(page.Rows) == 0 {
		return nil
	}
	if k := s.kind(page.Kind); !slices.Contains(k.shapes, page.Shape) {
		k.shapes = append(k.shapes, page.Shape)
	}
	last := map[string]int{}
	var order []string
	for i := range page.Rows {
		r := &page.Rows[i]
		if _, again := last[r.ID]; !again {
			order = append(order, r.ID)
		}
		last[r.ID] = i
		rec := m.named(s.kind(page.Kind), r.ID)
		name := [2]string{page.Shape, string(page.Body[r.Start:r.End])}
		if rec.versions[name] == 0 {
			m.version++
			rec.versions[name] = m.version
		}
		r.Record, r.Version = rec.number, rec.versions[name]
		rec.clocks[r.Version] = r.Clock
	}
	if err := m.place(s, page); err != nil {
		return err
	}
	for _, id := range order {
		r := &page.Rows[last[id]]
		rec := s.kind(page.Kind).records[id]
		p, body := rec.prior(page.Shape), slices.Clone(page.Body[r.Start:r.End])
		v := judge(&p, bodyHash(body), at, r.Final, page.OfWrite())
		if v.late {
			m.lateSight(page, id, rec, &p, at)
			continue
		}
		if v.write && (p.held || p.elsewhere || p.left > 0) {
			m.listRedacted(page.Key.Source, page.Kind, id, rec, body, at)
		}
		var fields understudy.Names
		if v.write {
			if v.what == understudy.Changed && p.state&stateForgotten == 0 {
				fields = fieldsBetween(rec.held[page.Shape].body, body)
			}
			if p.state&stateForgotten != 0 {
				m.silent++
			}
			if p.version != r.Version || p.state&(stateGone|stateForgotten) != 0 {
				m.begin(rec, memoryStretch{shape: page.Shape, version: r.Version, since: at, clock: r.Clock, parent: r.Parent, final: r.Final, body: body})
			}
		}
		if v.write || v.touch {
			rec.held[page.Shape] = &memoryHeld{version: r.Version, hash: bodyHash(body), seen: at, state: v.state, body: body}
		}
		if v.what != 0 {
			s.note(page, v.what, id, r.Record, r.Version, at, fields)
		}
	}
	return nil
}

// named is the record of that id, made when it is new.
func (m *Memory) named(k *memoryKind, id string) *memoryRecord {
	rec := k.records[id]
	if rec == nil {
		m.record++
		rec = &memoryRecord{id: id, number: m.record, stands: noPosition, held: map[string]*memoryHeld{}, versions: map[[2]string]int64{}, clocks: map[int64]int64{}}
		k.records[id] = rec
	}
	return rec
}

// note numbers a change and counts it.
func (s *memorySource) note(p *understudy.Page, what understudy.What, id string, record, version, at int64, fields understudy.Names) {
	k := s.kind(p.Kind)
	k.state.Changes++
	switch what {
	case understudy.Came:
		k.state.Records++
	case understudy.Went:
		k.state.Records--
	}
	s.changes = append(s.changes, understudy.Change{N: int64(len(s.changes)) + 1, Source: p.Key.Source, Kind: p.Kind, ID: id, What: what,
		Record: record, Version: version, At: time.Unix(0, at).UTC(), Fields: fields})
}

// remove notes that the record the page names is no more.
func (m *Memory) remove(s *memorySource, p *understudy.Page, at int64) *memoryRecord {
	rec := s.kind(p.Kind).records[p.ID]
	if rec == nil {
		return nil
	}
	var version, last int64
	for shape, h := range rec.held {
		last = max(last, h.seen)
		if h.state&stateGone == 0 && (version == 0 || shape == p.Shape) {
			version = h.version
		}
	}
	if version == 0 || p.Status != 204 && overtaken(at, last) {
		return nil
	}
	m.went(rec, at)
	s.note(p, understudy.Went, p.ID, rec.number, version, at, "")
	return rec
}
