// Edits: what a transaction does to the indexes of terms and words.

package store

import (
	"understudy/internal/query"
	"understudy/internal/store/codec"
	"understudy/internal/store/words"
)

// edit is what becomes of one record in one shape in the indexes. It is made
// whenever a body comes to be the newest of a record that is present, or ceases
// to be it, and when a record moves.
type edit struct {
	kind  *kindRow
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
			e.oldFacts, room = query.FactsOf(e.old.Body, room)
		}
		if e.new == e.old {
			e.newFacts = e.oldFacts
		} else if e.new != nil {
			e.newFacts, room = query.FactsOf(e.new.Body, room)
		}
	}
	return room
}

// wordEdits appends to dst what edits are to the index of words. They point into
// edits.
func wordEdits(dst []words.Edit, edits []edit) []words.Edit {
	for i := range edits {
		e := &edits[i]
		one := words.Edit{Kind: &e.kind.words, Was: e.was, Is: e.is}
		if e.old != nil {
			one.Old = &e.oldFacts
		}
		if e.new == e.old {
			one.New = one.Old
		} else if e.new != nil {
			one.New = &e.newFacts
		}
		dst = append(dst, one)
	}
	return dst
}
