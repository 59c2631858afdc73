// Superseded: held pages grow old at once when what they show has changed.

package mirror

import (
	"slices"

	"understudy"
	"understudy/mirror/cache"
)

// news is a set of changes, ready to be looked up by a page's records.
type news struct {
	versions map[int64]int64 // by record; -1: it went
	fields   map[int64]understudy.Names
	idents   map[uint64]bool
	lo, hi   int64
	shape    string
}

// supersede makes entries old that show what has changed, except the page that
// brought the change. It reports whether it went looking; the kind's counter
// has risen by one then. A change in one shape leaves pages of other shapes
// alone; a record that went is gone from all.
func (es *entries) supersede(k *kind, shape string, changes []understudy.Change, except understudy.Key) bool {
	if len(changes) == 0 {
		return false
	}
	k.changes.Add(1)
	for _, c := range changes {
		if c.Type == understudy.Went {
			es.recordWent(k, c.ID)
		}
	}
	n := es.newsOf(changes, shape, understudy.NamesOf(k.source.Spec.Kind(k.name).ID...))
	own := es.hot.Hash(except)
	var gone []*cache.Entry
	es.hot.Each(k.pages, func(e *cache.Entry) {
		switch {
		case e.Hash == own:
		case !e.Stored && !e.Composed && e.Shape() == shape:
			gone = append(gone, e) // its records have no numbers to look up
		case e.Ident != 0 && n.idents[e.Ident]:
			gone = append(gone, e) // the store composes a better one
		case e.List:
			n.makeOld(es, e)
		}
	})
	es.hot.DropAll(gone)
	for _, p := range k.source.polls() {
		if p.kind == k && p.Target.Key != except && es.isSuperseded(p) {
			p.Nudge()
		}
	}
	return true
}

// newsOf are changes of records in a shape. Who sees the ids sees that one went.
func (es *entries) newsOf(changes []understudy.Change, shape string, ids understudy.Names) *news {
	n := &news{
		versions: make(map[int64]int64, len(changes)), fields: make(map[int64]understudy.Names, len(changes)),
		idents: make(map[uint64]bool, len(changes)), shape: shape,
	}
	for i, c := range changes {
		n.idents[es.hot.Ident(c.ID)] = true
		if c.Type == understudy.Came {
			continue // no list held can show it yet
		}
		version, fields := c.Version, c.Fields
		if c.Type == understudy.Went {
			version, fields = -1, ids
		}
		if len(n.versions) == 0 || i == 0 {
			n.lo, n.hi = c.Record, c.Record
		}
		n.versions[c.Record], n.fields[c.Record] = version, fields
		n.lo, n.hi = min(n.lo, c.Record), max(n.hi, c.Record)
	}
	return n
}

// makeOld makes a list old that shows an older version of what changed, and notes
// which fields did. The record numbers beside the packed page settle nearly every
// case; only a page that shows a changed record is unpacked to compare versions.
func (n *news) makeOld(es *entries, e *cache.Entry) {
	if !n.concerns(e) {
		return
	}
	p, err := es.hot.Unpack(e)
	if err != nil {
		e.Superseded.CompareAndSwap(0, es.monotonic(es.now()))
		return
	}
	var fields []string
	older := false
	for _, r := range p.Rows {
		version, ok := n.versions[r.Record]
		if !ok || version == r.Version || version >= 0 && e.Shape() != n.shape {
			continue
		}
		older = true
		fields = slices.AppendSeq(fields, n.fields[r.Record].All())
	}
	if older {
		e.Note(fields)
		e.Superseded.CompareAndSwap(0, es.monotonic(es.now()))
	}
}

// concerns reports whether a list shows one of the records that changed.
func (n *news) concerns(e *cache.Entry) bool {
	if len(n.versions) == 0 {
		return false
	}
	for record := range e.RecordNumbers() {
		if record < n.lo || record > n.hi {
			continue
		}
		if version, ok := n.versions[record]; ok && (version < 0 || e.Shape() == n.shape) {
			return true
		}
	}
	return false
}

func (es *entries) isSuperseded(p *poll) bool {
	e := es.hot.Find(p.Target.Key)
	return e != nil && (e.Superseded.Load() != 0 || e.Generation < p.kind.generation.Load())
}
