// Edits: what a transaction does to the indexes of terms and words.

package store

import (
	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/terms"
	"understudy/internal/store/words"
)

// edit is what becomes of one record in one shape in the indexes. It is made
// whenever a body comes to be the newest of a record that is present, or ceases
// to be it, and when a record moves.
type edit struct {
	kind  *catalog.Kind
	shape int64 // its number
	// was and is are its spots before and after; they differ when it moved.
	was, is int64
	// old is what is in the indexes under was, new what is to be there under is;
	// nil: nothing. Their bodies and parents are of interest; old may be new.
	old, new *codec.Entry
	// oldFacts and newFacts are read from them once for both indexes.
	oldFacts, newFacts query.Facts
}

// readFacts reads the bodies of edits; the members of all are appended to room.
func readFacts(edits []edit, room []query.Member) []query.Member {
	for i := range edits {
		e := &edits[i]
		if e.old != nil {
			e.oldFacts, room = query.FactsOf(e.old.Parent, e.old.Body, room)
		}
		if e.new == e.old {
			e.newFacts = e.oldFacts
		} else if e.new != nil {
			e.newFacts, room = query.FactsOf(e.new.Parent, e.new.Body, room)
		}
	}
	return room
}

// editsFor is what edits are to an index that knows K of a kind. They point into
// edits.
func editsFor[K any](edits []edit, of func(*catalog.Kind) K) []postings.Edit[K] {
	all := make([]postings.Edit[K], len(edits))
	for i := range edits {
		e := &edits[i]
		all[i] = postings.Edit[K]{Kind: of(e.kind), Was: e.was, Is: e.is}
		if e.old != nil {
			all[i].Old = &e.oldFacts
		}
		if e.new == e.old {
			all[i].New = all[i].Old
		} else if e.new != nil {
			all[i].New = &e.newFacts
		}
	}
	return all
}

// index brings the indexes up to date with some edits, in a transaction.
func (db indexer) index(c *sqlite.Conn, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	db.members = readFacts(edits, db.members[:0])
	if err := db.indexTerms(c, indexed(edits, db.built.terms.Load())); err != nil {
		return err
	}
	return db.indexWords(c, indexed(edits, db.built.words.Load()))
}

func (db indexer) indexTerms(c *sqlite.Conn, edits []edit) error {
	return terms.Update(c, &db.ranges, editsFor(edits, func(k *catalog.Kind) *terms.Kind { return &k.Terms }))
}

func (db indexer) indexWords(c *sqlite.Conn, edits []edit) error {
	return words.Update(c, &db.cutter, editsFor(edits, func(k *catalog.Kind) *words.Kind { return &k.Words }))
}
