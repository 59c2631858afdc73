// Edits: what a transaction does to the indexes of terms and words.

package index

import (
	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/postings"
	"understudy/internal/store/terms"
	"understudy/internal/store/words"
)

// Edit is what becomes of one record in one shape in the indexes. It is made whenever a body comes to be the newest
// of a record that is present, or ceases to be it, and when a record moves.
type Edit struct {
	Kind  *catalog.Kind
	Shape int64 // its number
	// Was and is are its postings before and after; they differ when it moved.
	Was, Is int64
	// Old is what is in the indexes under was, new what is to be there under is;
	// nil: nothing. Their bodies and parents are of interest; old may be new.
	Old, New *codec.Entry
	// oldFacts and newFacts are read from them once for both indexes.
	oldFacts, newFacts query.Facts
}

// readFacts reads the bodies of edits; the members of all are appended to room.
func readFacts(edits []Edit, room []query.Member) []query.Member {
	for i := range edits {
		e := &edits[i]
		if e.Old != nil {
			e.oldFacts, room = query.FactsOf(e.Old.Parent, e.Old.Body, room)
		}
		if e.New == e.Old {
			e.newFacts = e.oldFacts
		} else if e.New != nil {
			e.newFacts, room = query.FactsOf(e.New.Parent, e.New.Body, room)
		}
	}
	return room
}

// editsFor is what edits are to an index that knows K of a kind. They point into edits.
func editsFor[K any](edits []Edit, of func(*catalog.Kind) K) []postings.Edit[K] {
	all := make([]postings.Edit[K], len(edits))
	for i := range edits {
		e := &edits[i]
		all[i] = postings.Edit[K]{Kind: of(e.Kind), Was: e.Was, Is: e.Is}
		if e.Old != nil {
			all[i].Old = &e.oldFacts
		}
		if e.New == e.Old {
			all[i].New = all[i].Old
		} else if e.New != nil {
			all[i].New = &e.newFacts
		}
	}
	return all
}

func termsOf(k *catalog.Kind) *terms.Kind { return &k.Terms }

func wordsOf(k *catalog.Kind) *words.Kind { return k.Words }
