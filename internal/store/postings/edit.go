// This file declares the changes that an index receives for a record.

package postings

import "understudy/internal/query"

// Edit is the change of one record in one shape, for an index whose data about a kind has the type K.
type Edit[K any] struct {
	Kind K
	// Was is the record's posting before the change, Is its posting after. They differ if the record moved.
	Was, Is int64
	// Old is what the index has at Was, and New is what it must have at Is; nil means nothing. New and Old may be the same
	// value.
	Old, New *query.Facts
}
