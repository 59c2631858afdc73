// Carrying out erasure in memory.

package store

import (
	"context"
	"fmt"
	"slices"

	"understudy"
	"understudy/kit/jsonspan"
)

// CarryOut is as DB.CarryOut.
func (m *Memory) CarryOut(ctx context.Context, o Eraser) ([]Erasure, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "erase what is listed")
	}
	listed, open := m.takeOn()
	for i := range listed {
		m.take(&m.erasures.listed[i])
	}
	m.mu.Unlock()
	for i := range listed {
		if err := m.told(ctx, o, &listed[i]); err != nil {
			return nil, failed(false, err, "erase what is listed")
		}
	}
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "erase what is listed")
	}
	defer m.mu.Unlock()
	m.erasures.listed = m.erasures.listed[len(listed):]
	var done []Erasure
	for _, n := range slices.Backward(open) {
		e := &m.erasures.all[n-1]
		if e.Done = m.o.Now().UTC(); e.Cause == CauseRedacted && e.Records == 0 && e.Pages == 0 {
			e.Number = -e.Number // nothing was said that was taken back
			continue
		}
		done = append(done, *e)
	}
	return done, nil
}

// takeOn gives every listed record its errand.
func (m *Memory) takeOn() (listed []memoryErasing, open []int) {
	by := map[string]int{}
	for i := range m.erasures.listed {
		l := &m.erasures.listed[i]
		if name := fmt.Sprint(l.source, l.cause); l.erasure == 0 {
			if by[name] == 0 {
				by[name] = int(m.open(l.source, l.cause).Number)
			}
			l.erasure = by[name]
		}
		if !slices.Contains(open, l.erasure) {
			open = append(open, l.erasure)
		}
	}
	slices.Sort(open)
	return slices.Clone(m.erasures.listed), open
}

// take takes one record's bodies out, and the pages that show them.
func (m *Memory) take(l *memoryErasing) {
	kind, gone := m.o.kindSpec(l.source, l.kindName), map[int64]bool{}
	marks := newTraces()
	for name, v := range l.rec.versions {
		h := l.rec.held[name[0]]
		current := h != nil && h.version == v
		switch {
		case l.cause == CauseDeleted && current && h.state&stateGone == 0:
			continue
		case l.cause == CauseRedacted && (v >= l.bound || !says([]byte(name[1]), l.fields)):
			continue
		}
		marks.add(kind, []byte(name[1]), l.fields)
		gone[v] = true
		delete(l.rec.versions, name)
		l.rec.taken(v)
		if current {
			h.body, h.hash, h.state = nil, 0, h.state|stateForgotten
			m.silent++
		}
	}
	if l.cause == CauseAsked || l.cause == CauseAged {
		l.rec.past = nil
	}
	e := &m.erasures.all[l.erasure-1]
	for uri, p := range m.sources[l.source].pages {
		sk := skeleton{uri: uri, next: p.page.Next.URI}
		sk.outside, _ = outsideOf(p.page.Body, p.page.Rows)
		if l.cause != CauseRedacted && p.page.ID == l.id || slices.ContainsFunc(p.page.Rows, func(r understudy.Row) bool { return gone[r.Version] }) || marks.inPage(&sk) {
			delete(m.sources[l.source].pages, uri)
			e.Pages++
		}
	}
	e.Versions += int64(len(gone))
	if !l.taken && (len(gone) > 0 || l.cause != CauseRedacted) {
		e.Records++
	}
	l.taken = true
}

// told removes a record's contents and tells memory.
func (m *Memory) told(ctx context.Context, o Eraser, l *memoryErasing) error {
	if o.Files != nil && l.cause != CauseRedacted {
		gone, err := o.Files.Forget(l.source, l.kindName, l.id)
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.erasures.all[l.erasure-1].Files += int64(gone)
		m.mu.Unlock()
	}
	if o.Gone != nil {
		return o.Gone(ctx, l.source, []string{l.kindName})
	}
	return nil
}

// lateSight is as saving.listLate.
func (m *Memory) lateSight(page *understudy.Page, id string, rec *memoryRecord, p *prior, at int64) {
	if !p.present() {
		if len(rec.held) > 0 {
			m.list(page.Key.Source, page.Kind, id, CauseDeleted, rec, at, 0, nil, 0)
		}
		return
	}
	if h := rec.held[page.Shape]; h != nil && h.state&stateForgotten == 0 {
		if _, err := jsonspan.Document(h.body); err == nil {
			m.listRedacted(page.Key.Source, page.Kind, id, rec, h.body, at)
		}
	}
}
