// This file declares the changes that an index receives for a record.

package postings

import "understudy/internal/query"

// Edit is the change of a record in one shape, for an index whose data of a kind has the type K.
type Edit[K any] struct {
	Kind K
	// Was and Is are its postings before and after. They differ if the record moved.
	Was, Is int64
	// Old is what the index has at Was, New what it must have at Is; nil means nothing. New may be the same
	// value as Old.
	Old, New *query.Facts
}
