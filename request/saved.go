// Saved: what saving a page did.

package request

import "understudy"

// PageSaved is the event that a page was saved. An event may be lost; the rows in the
// store are the truth.
type PageSaved struct {
	Page    *understudy.Page // as saved, with its numbers
	Changes []understudy.Change
	Reason  Reason
}

// Saved is what saving a page did.
type Saved struct {
	Page    *understudy.Page    // the page given, or a copy with Version and the rows' numbers set
	Changes []understudy.Change // in number order; empty when nothing was new
}

// Invalidation names what a write touched: the lists of a kind in every filter and,
// when ID is not empty, one record of it.
type Invalidation struct{ Source, Kind, ID string }
