// RecordQuery: selects stored records, and their order.

package query

import "understudy"

// OrderKey is the position of a record among those of its kind, in the order of the upstream's lists. Only
// records that no list page has shown are ordered by their clock. A larger key is nearer the top. All shapes of
// a record share it, and it stays when the record changes or is deleted. 0 means no key. Keys of different
// kinds can be compared: the later clock has the larger key.
type OrderKey int64

// RecordQuery selects stored records that are not deleted, the newest first, or the oldest first with
// OldestFirst. It knows nothing about roles: the caller applies a view to the result.
type RecordQuery struct {
	Source string   // "" means every source
	Kinds  []string // none means every kind
	// Shape, with exactly one kind, selects records in that shape only. If it is empty, each record is returned
	// once: in the shape of its kind's first list, or in another shape if it is not stored in that one.
	Shape  string
	Parent string // id of the record above the results; "" means any
	// IDs, with exactly one kind, selects records by id, with one index lookup for each. None means all.
	IDs []string
	// From and To limit the time of a record's order key: that of its clock or, without a clock, of its kind's
	// order field. The range is [From, To) in Unix seconds; 0 leaves an end open. The limit is coarse: a record
	// that a page showed out of clock order may lie outside it.
	From, To   int64
	Predicates []Predicate // conditions that a record must all meet
	// Rule are the conditions of a row rule, which must match too. How much a store reads depends on them, and
	// not on which other records match Predicates. A query with a Rule has no Text.
	Rule []Predicate
	// ConstantEffort makes a store read as much for a value that no record has as for a rare value. A Rule
	// implies it.
	ConstantEffort bool
	Text           *Text // nil means any text
	// Since selects only records that appeared or changed after the change with this number. It needs exactly
	// one source. 0 means all.
	Since int64
	// Below continues below an order key, or above it with OldestFirst. 0 starts at the beginning.
	Below       OrderKey
	OldestFirst bool
	Limit       int // largest number of records; 0 means until the receiver has enough
	// ExpectedRows is how many records the receiver will probably take. The store reads that many at once. The
	// receiver may take fewer or more. 0 means not known.
	ExpectedRows int
}

// Predicate is one exact condition on a field. A store may return records that do not match it, but never
// misses one that does. A receiver that must be exact checks the body.
type Predicate struct {
	// Field is a dotted name. It may be empty in two cases. With Number it means any field of class phone. With
	// From and To it means the record's clock, or its kind's order field if the clock is empty.
	Field string
	// Any are the decoded values of which the field must have one. A boolean is "true" or "false". Null and the
	// empty text are not allowed.
	Any []string
	// Number is a phone number in any spelling, compared by its digits.
	Number string
	// From and To, without Any and Number, limit a time to [From, To) in Unix seconds; 0 leaves an end open.
	From, To int64
}

// RowRule tells a store about a caller that may find only some records of a kind.
type RowRule struct {
	// CanFind reports whether a record may be found. It is safe for concurrent use.
	CanFind func(*understudy.Record) bool
	// CanFindID reports whether the record with an id may be found. It takes as long for a hidden record as for
	// an id that never existed.
	CanFindID func(id string) bool
	// Predicates match every record that may be found. If Numbers is not empty, every such record also has one
	// of them. From is as in RecordQuery.
	Predicates []Predicate
	Numbers    []string
	From       int64
	// Complete means that Predicates, Numbers and From are the entire rule, so that RecordQuery.Rule can take
	// it. Otherwise a query must have no other conditions, or its duration would reveal what they match.
	Complete bool
	// RecordOnly means that CanFind depends only on the record: as long as the record is the same, so is the
	// result.
	RecordOnly bool
}

// Hit is one record that a query found.
type Hit struct {
	Record *understudy.Record
	Clock  int64 // clock field in Unix seconds; 0 if it is null or absent
	Order  OrderKey
}

// TextOp says how a Text is made of its parts.
type TextOp uint8

// The text operations.
const (
	TextWord   TextOp = iota // the one word in Words
	TextPrefix               // a word that begins with the one in Words
	TextPhrase               // the words directly one after the other; with Prefix the last one is a prefix
	TextAnd                  // a text must match all of Parts
	TextOr                   // a text must match at least one of Parts
	TextNot                  // the first of Parts and not the second
	TextNone                 // matches nothing: only alone in a LocalQuery, and no store is asked
)

// Text is a condition on the words of a record. Words are as typed. A store splits and folds them in the same
// way as the bodies.
type Text struct {
	Op     TextOp
	Words  []string
	Prefix bool
	Parts  []*Text
	// Fields are the fields to search, by kind; a kind that is missing here has none. nil means all fields and
	// names outside the spec, also inside a field of the spec. Only a word, a prefix and a phrase have fields.
	Fields map[string][]string
}

// MaxTextFields is how many fields of a kind a Text can distinguish.
const MaxTextFields = 36*36 - 1

// Count is the number of records that a query finds.
type Count struct {
	N       int64 `json:"n"`
	AtLeast bool  `json:"at_least,omitempty"` // counting stopped early: N is a minimum
}

// RangeScan selects stored records of a kind in one shape that are not deleted. The newest clock comes first.
// Records with the same clock are ordered by record number, the largest first.
type RangeScan struct {
	Source, Kind, Shape string
	Parent              string // id of the record above the results; "" means any
	From, To            int64  // clocks in [From, To), Unix seconds; 0 leaves an end open
	NoClock             bool   // select the records without a clock instead of the others
	NotFinal            bool   // select only records that are not final

	// Below continues after the last row of an answer: only rows after this clock and record number. A record
	// number of zero starts at the beginning.
	Below struct{ Clock, Record int64 }
	Limit int // largest number of rows; 0 means 1000, and the maximum is 10,000
}
