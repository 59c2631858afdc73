// This file declares LocalQuery, the part of a list request that the upstream's parameters cannot express.

package request

import (
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/query"
)

// LocalQuery is the part of a request that only a composed answer can fulfil. The upstream never receives it.
// Its results are stored only in Cache.
type LocalQuery struct {
	OldestFirst bool        // whether the list begins with the oldest record
	Since       int64       // return only records that are new or changed since the change with this number
	Text        *query.Text // return only records that contain these words
	// Near, if set, lists the nearest records first. It is not combined with OldestFirst.
	Near *query.Near
	// CanFind, if set, reports whether the caller may find a record. It is called before the list is split into
	// pages, from one goroutine at a time.
	CanFind func(*understudy.Record) bool
	// Conditions replace those filters of the list, by name, whose value has a meaning of its own. Links keep the original
	// value.
	Conditions map[string]query.Equality
	// From and Predicates are the part of CanFind that a store can use. CanFind is false for every record whose
	// order key has a time before From (Unix seconds, 0 means open). It is also false for every record that
	// does not match all predicates.
	From       int64
	Predicates []query.Predicate
	// NoIndex stops the store from using an index for the list's filters, except those on its clock. The
	// filters are then tested on the records that are read. It is set if CanFind checks more than From and
	// Predicates, because the duration of an index lookup would reveal what else it finds.
	NoIndex bool
	// Cache stores the composed list. As long as nothing in the list has changed, the mirror answers the same
	// query with the same page. nil means that each list is composed anew.
	Cache *ListCache
}

// ListCache stores a composed list. It is safe for concurrent use.
type ListCache struct{ List atomic.Value }

// Coverage says that every record of a part of a list is stored.
type Coverage struct {
	At time.Time // the start of the oldest crawl on which the coverage rests, from which the age of the answer follows
	// The last time when the newest page left no gap to the stored records; zero if the part does not reach the newest
	// records
	Newest time.Time
	// Head are the ids on the newest page that was received at Newest, the newest first. Records above them are
	// newer, and some may not be stored. It is nil if the part has no newest page, and empty if that page had
	// no records. It must not be changed.
	Head []string
	// From, if not 0, is the clock before which records are not covered. It is a clock of the list or, if Above is set, of
	// the kind Above.
	From    int64
	Above   string   // the kind of the records to which the list belongs, or "" if there is none
	Shapes  []string // the shapes in which the records are stored; must not be changed
	Missing string   // what is missing, as a sentence for the caller, if the list is not covered
}
