// Wish: what is asked of a list beyond what upstream's own parameters can say.

package request

import (
	"time"

	"understudy"
	"understudy/internal/query"
)

// LocalQuery is asked of a composed answer; upstream is never asked for it and
// nothing made by it is kept.
type LocalQuery struct {
	Up    bool        // oldest first
	Since int64       // only what came or changed after the change of this number
	Text  *query.Text // only what has these words
	// Only, when it is set, says which records the asker may find. It is called
	// before the list is cut into pages, from one goroutine at a time.
	Only func(*understudy.Record) bool
	// From and Terms say of Only what a store can make use of: it says no to
	// every record whose place is of a time before From (Unix seconds, 0 = open),
	// and to every one that does not fulfil all terms.
	From       int64
	Predicates []query.Predicate
	// Scan has no index asked for the list's filters, but for those on its clock: they
	// are tested on what is read. It is set where From and Terms are not all that Only
	// looks at: how long an index takes would tell how much it finds besides.
	Scan bool
}

// Coverage says that every record upstream has of a stretch of a list is held.
type Coverage struct {
	At     time.Time // when the oldest walk that it rests on began: the answer's age
	Newest time.Time // when the newest page was last known to leave no gap; zero: the stretch does not reach the newest records
	// Tip are the newest records of the newest page that came at Newest, the
	// newest first: what stands above them came later, and not all of that may be
	// held. nil: the stretch has no newest page; empty: that page was. Not to be
	// changed.
	Head []string
	// From, when it is not 0, is the clock before which nothing is covered: of
	// the list or, with Above, of the records of that kind it lies under.
	From   int64
	Above  string   // the kind of the records the list lies under; "" = none
	Shapes []string // in which the records are held; not to be changed
	Why    string   // when there is none: what is missing, in words for whoever asked
}
