// LocalQuery: questions to a list that upstream's own parameters cannot express.

package request

import (
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/query"
)

// LocalQuery is part of a request for a composed answer. Upstream never gets it, and but for
// Made nothing made by it is kept.
type LocalQuery struct {
	Up    bool        // oldest first
	Since int64       // only records that came or changed after the change of this number
	Text  *query.Text // only what has these words
	// Only, when it is set, reports the records that the caller may find. It is called
	// before the list is cut into pages, from one goroutine at a time.
	Only func(*understudy.Record) bool
	// Equal are the filters of the list, by name, whose value is not meant as it is
	// written: the condition takes its place. Links keep what is written.
	Equal map[string]query.Equality
	// From and Predicates are the part of Only that a store can use. Only is false for
	// every record whose order key is of a time before From (Unix seconds, 0 = open), and
	// for every record that does not fulfil all predicates.
	From       int64
	Predicates []query.Predicate
	// Scan keeps the store from using an index for the list's filters, except those on its
	// clock: they are tested on the records that are read. It is set when Only looks at
	// more than From and Predicates: the time an index takes would tell how much else it
	// finds.
	Scan bool
	// Made is where the mirror keeps the list that it makes. While nothing has changed that the
	// list was made of, the mirror answers the same query with the same page. nil: each is new.
	Made *Made
}

// Made keeps a list that was made from records. Many goroutines may use it at once.
type Made struct{ List atomic.Value }

// Coverage says that every record of a part of a list is held.
type Coverage struct {
	At     time.Time // when the oldest crawl that it rests on began: the answer's age
	Newest time.Time // when the newest page was last known to leave no gap; zero: the part does not reach the newest records
	// Head are the newest records of the newest page that came at Newest, the newest first.
	// Records above them came later, and not all of those may be held. nil: the part has no
	// newest page; empty: that page had no records. It must not be changed.
	Head []string
	// From, when it is not 0, is the clock before which nothing is covered: of the list or,
	// with Above, of the records of that kind above the list.
	From   int64
	Above  string   // the kind of the records the list lies under; "" = none
	Shapes []string // in which the records are held; not to be changed
	Why    string   // without coverage: what is missing, for the caller to read
}
