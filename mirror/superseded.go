// Superseded: held pages grow old at once when what they show has changed.

package mirror

import (
	"encoding/binary"
	"slices"

	"understudy"
)

// news is a set of changes, ready to be looked up by a page's records.
type news struct {
	versions map[int64]int64 // by record; -1: it went
	idents   map[uint64]bool
	lo, hi   int64
	shape    string
}

// supersede makes entries old that show what has changed, except the page that
// brought the change. It reports whether it went looking; the kind's counter
// has risen by one then. A change in one shape leaves pages of other shapes
// alone; a record that went is gone from all.
func (m *Mirror) supersede(k *kind, shape string, changes []understudy.Change, except understudy.Key) bool {
	if len(changes) == 0 {
		return false
	}
	k.changes.Add(1)
	for _, c := range changes {
		if c.What == understudy.Went {
			m.forgetMedia(k, c.ID)
		}
	}
	n := m.newsOf(changes, shape)
	own := m.hot.hash(except)
	var gone []*entry
	m.hot.each(k, func(e *entry) {
		switch {
		case e.hash == own:
		case !e.stored && !e.composed && e.form.shape == shape:
			gone = append(gone, e) // its records have no numbers to look up
		case e.ident != 0 && n.idents[e.ident]:
			gone = append(gone, e) // the store composes a better one
		case e.list && e.superseded.Load() == 0 && n.concerns(m, e):
			e.superseded.Store(m.word(m.now()))
		}
	})
	m.hot.dropAll(gone)
	for _, p := range k.source.polls() {
		if p.kind == k && p.target.Key != except && m.isSuperseded(p) {
			p.nudge()
		}
	}
	return true
}

func (m *Mirror) newsOf(changes []understudy.Change, shape string) *news {
	n := &news{versions: make(map[int64]int64, len(changes)), idents: make(map[uint64]bool, len(changes)), shape: shape}
	for i, c := range changes {
		n.idents[m.hot.ident(c.ID)] = true
		if c.What == understudy.Came {
			continue // no list held can show it yet
		}
		version := c.Version
		if c.What == understudy.Went {
			version = -1
		}
		if len(n.versions) == 0 || i == 0 {
			n.lo, n.hi = c.Record, c.Record
		}
		n.versions[c.Record] = version
		n.lo, n.hi = min(n.lo, c.Record), max(n.hi, c.Record)
	}
	return n
}

// concerns reports whether a list shows an older version of what changed. The
// record numbers beside the packed page settle nearly every case; only a page
// that shows a changed record is unpacked to compare versions.
func (n *news) concerns(m *Mirror, e *entry) bool {
	if len(n.versions) == 0 {
		return false
	}
	var record int64
	for b := e.records; len(b) > 0; {
		d, size := binary.Varint(b)
		if size <= 0 {
			return false
		}
		record, b = record+d, b[size:]
		if record < n.lo || record > n.hi {
			continue
		}
		version, ok := n.versions[record]
		if !ok || version >= 0 && e.form.shape != n.shape {
			continue
		}
		return version < 0 || n.differs(m, e)
	}
	return false
}

// differs compares versions row by row.
func (n *news) differs(m *Mirror, e *entry) bool {
	p, err := m.hot.unpack(e)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(p.Rows, func(r understudy.Row) bool {
		version, ok := n.versions[r.Record]
		return ok && version != r.Version
	})
}

func (m *Mirror) isSuperseded(p *poll) bool {
	e := m.hot.find(p.target.Key)
	return e != nil && (e.superseded.Load() != 0 || e.generation < p.kind.generation.Load())
}
