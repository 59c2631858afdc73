// Saved: the result of saving a page.

package request

import "understudy"

// PageSaved is the event that a page was saved. Events may be lost. Only the rows in the store are reliable.
type PageSaved struct {
	Page    *understudy.Page // the saved page with its numbers
	Changes []understudy.Change
	Reason  Reason
}

// SaveResult is the result of saving a page.
type SaveResult struct {
	Page    *understudy.Page    // the given page, or a copy with Version and the rows' numbers set
	Changes []understudy.Change // the changes in the order of their numbers; empty if nothing was new
}

// Invalidation names what a write changed: all lists of a kind with any filter and, if ID is not empty, one
// record of the kind.
type Invalidation struct{ Source, Kind, ID string }
