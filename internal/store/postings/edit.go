// Edits: what an index is told of a record.

package postings

import "understudy/internal/query"

// Edit is what becomes of a record in one shape, for an index that knows K of its kind.
type Edit[K any] struct {
	Kind K
	// Was and Is are its postings before and after; they differ when it moved.
	Was, Is int64
	// Old is what is in the index at Was, New what is to be there at Is; nil: nothing. Old may be New.
	Old, New *query.Facts
}
