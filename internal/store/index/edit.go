// This file declares the changes that a transaction makes to the indexes of terms and words.

package index

import (
	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/postings"
	"understudy/internal/store/terms"
	"understudy/internal/store/words"
)

// Edit is the change of one record in one shape in the indexes. An edit is needed whenever a body becomes the newest of
// a present record or stops being its newest, and when a record moves.
type Edit struct {
	Kind *catalog.Kind
	// Was is the record's posting before the change, Is its posting after. They differ if the record moved.
	Was, Is int64
	// Old is what the indexes have at Was, and New what they must have at Is; nil means nothing. Only the bodies and
	// parents of both are used. New and Old may be the same entry.
	Old, New *codec.Entry
	// oldFacts and newFacts are what both indexes need of the bodies. They are read once.
	oldFacts, newFacts query.Facts
}

// readFacts reads the bodies of edits. It appends their members to room and returns room.
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

// editsFor converts edits for an index whose data about a kind has the type K. The results contain pointers into edits.
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
