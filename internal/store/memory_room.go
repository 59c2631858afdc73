// The store in memory makes room and forgets, by the same rules.

package store

import (
	"cmp"
	"context"
	"slices"

	"understudy"
)

// pageCost is what a page in memory is said to take beside its bodies.
const pageCost = 256

// used is bytes of bodies and pages.
func (m *Memory) used() (n int64) {
	for _, s := range m.sources {
		for _, p := range s.pages {
			n += pageCost + int64(len(p.page.Body))
		}
		for _, k := range s.kinds {
			for _, r := range k.records {
				for name := range r.versions {
					n += int64(len(name[1]))
				}
			}
		}
	}
	return n
}

func (m *Memory) spaceNow() Space {
	s := m.space
	s.File = m.used()
	return s
}

// Space is as DB.Space; File counts bytes of bodies.
func (m *Memory) Space(ctx context.Context) (Space, error) {
	if err := m.enter(ctx); err != nil {
		return Space{}, failed(false, err, "measure")
	}
	defer m.mu.Unlock()
	return m.spaceNow(), nil
}

// room makes room for a page, or refuses it.
func (m *Memory) room(p *understudy.Page) error {
	if m.o.Limit <= 0 {
		return nil
	}
	need := pageCost + 2*int64(len(p.Body)) // its records, and itself
	if (m.used()+need)*100 > m.o.Limit*evictAt {
		m.evict(need)
	}
	if m.used()+need > m.o.Limit {
		return &fault{reason: limitReached, saving: true}
	}
	return nil
}

// Evict is as DB.Evict.
func (m *Memory) Evict(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return failed(false, err, "make room")
	}
	defer m.mu.Unlock()
	if m.o.Limit > 0 && m.used()*100 > m.o.Limit*evictAt {
		m.evict(0)
	}
	return nil
}

// evict is makeRoom; need is what else there has to be room for.
func (m *Memory) evict(need int64) {
	enough := func() bool { return (m.used()+need)*100 <= m.o.Limit*evictTo }
	before := m.o.Now().Add(-unread).UnixNano()
	pages := m.byRead()
	n, _ := slices.BinarySearchFunc(pages, before+1, func(p heldPage, at int64) int { return cmp.Compare(p.read, at) })
	for share := n; ; share = min(max(leastShare, len(pages)/4), len(pages)) {
		for _, p := range pages[:share] {
			if enough() {
				return
			}
			delete(p.of.pages, p.page.Key.URI)
			m.space.EvictedPages++
			m.space.EvictedAt = m.o.Now()
		}
		pages = pages[share:]
		if enough() {
			return
		}
		m.sweep(enough)
		if enough() || len(pages) == 0 {
			return
		}
	}
}

// heldPage is a page and the source it belongs to.
type heldPage struct {
	*memoryPage
	of *memorySource
}

// byRead lists all pages, the one unread for longest first.
func (m *Memory) byRead() (pages []heldPage) {
	for _, s := range m.sources {
		for _, p := range s.pages {
			pages = append(pages, heldPage{p, s})
		}
	}
	slices.SortFunc(pages, func(a, b heldPage) int {
		return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.page.Version, b.page.Version))
	})
	return pages
}

// sweep removes versions that are not the newest of their record and that no
// page shows, the oldest first, until it is enough.
func (m *Memory) sweep(enough func() bool) {
	needed := map[int64]bool{}
	for _, p := range m.byRead() {
		for _, r := range p.page.Rows {
			needed[r.Version] = true
		}
	}
	type old struct {
		version int64
		name    [2]string
		of      *memoryRecord
	}
	var all []old
	for _, s := range m.sources {
		for _, k := range s.kinds {
			for _, rec := range k.records {
				for name, v := range rec.versions {
					if h := rec.held[name[0]]; !needed[v] && (h == nil || h.version != v) {
						all = append(all, old{v, name, rec})
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Compare(a.version, b.version) })
	for _, o := range all {
		if enough() {
			return
		}
		delete(o.of.versions, o.name)
		o.of.taken(o.version)
		m.space.EvictedVersions++
		m.space.EvictedAt = m.o.Now()
	}
}

// ForgetPage is as DB.ForgetPage.
func (m *Memory) ForgetPage(ctx context.Context, key understudy.Key) (held bool, err error) {
	if err := m.enter(ctx); err != nil {
		return false, failed(true, err, "forget page %s", key)
	}
	defer m.mu.Unlock()
	if s := m.sources[key.Source]; s != nil {
		_, held = s.pages[key.URI]
		delete(s.pages, key.URI)
	}
	return held, nil
}

// ForgetRecord is as DB.ForgetRecord.
func (m *Memory) ForgetRecord(ctx context.Context, source, kind, id string) (pages, versions int, err error) {
	if err := m.enter(ctx); err != nil {
		return 0, 0, failed(true, err, "forget record %s %s %s", source, kind, id)
	}
	defer m.mu.Unlock()
	s := m.sources[source]
	if s == nil || s.kinds[kind] == nil {
		return 0, 0, nil
	}
	for uri, p := range s.pages {
		shows := slices.ContainsFunc(p.page.Rows, func(r understudy.Row) bool { return r.ID == id })
		if p.page.Kind == kind && (p.page.ID == id || shows) {
			delete(s.pages, uri)
			pages++
		}
	}
	if rec := s.kinds[kind].records[id]; rec != nil {
		m.silent++
		versions = len(rec.versions)
		clear(rec.versions)
		rec.past = nil
		for _, h := range rec.held {
			h.body, h.state = nil, h.state|stateForgotten
		}
	}
	return pages, versions, nil
}
