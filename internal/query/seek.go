// This file contains queries that select stored records, and the order of records.

package query

import (
	"understudy"
	"understudy/kit/geo"
)

// OrderKey is the position of a record among the records of its kind, in the order of the upstream's lists. A
// record that no list page has shown is ordered by its clock. A larger key is nearer to the top of the list. All
// shapes of a record share the key, and it stays the same when the record changes or is deleted. 0 means no key.
// Keys of different kinds can be compared: the record with the later clock has the larger key.
type OrderKey int64

// RecordQuery selects stored records that are not deleted. The newest comes first, or the oldest if OldestFirst is
// true. A query knows nothing about roles, so the caller must apply a view to the result.
type RecordQuery struct {
	Source string   // the source of the records; "" means every source
	Kinds  []string // the kinds of the records; none means every kind
	// Shape selects records in that shape only; it needs exactly one kind. If it is empty, each record is returned
	// once: in the shape of its kind's first list, or in another shape if it is not stored in that shape.
	Shape  string
	Parent string // the id of the parent record of the results; "" means any
	// IDs selects records by id; it needs exactly one kind. No ids means all records.
	IDs []string
	// Numbers selects records by their Number; it needs exactly one kind, and no IDs. No numbers means all records.
	Numbers []int64
	// From and To limit the time in a record's order key. This is the time of the record's clock or, without a
	// clock, of its kind's order field. The range is [From, To) in Unix seconds; 0 means no limit. The range is not
	// exact, because a page may have shown a record out of clock order.
	From, To   int64
	Predicates []Predicate // the conditions that a record must all fulfil
	// Rule are the conditions of a row rule, which a record must also fulfil. How much a store reads depends on
	// these conditions, and not on which other records match Predicates. A query with a Rule has no Text.
	Rule []Predicate
	// ConstantEffort makes a store read as much for a value that no record has as for a rare value. A query with a
	// Rule always does this.
	ConstantEffort bool
	Text           *Text // the condition on the words of a record; nil means any text
	// Since selects only records that were added or changed after the change with this number. It needs exactly one
	// source. 0 means all records.
	Since int64
	// Below continues the query below an order key, or above it if OldestFirst is true. 0 starts at the beginning.
	Below       OrderKey
	OldestFirst bool
	Limit       int // the maximum number of records; 0 means no limit, so that the receiver decides when to stop
	// ExpectedRows is the number of records that the receiver will probably take; 0 means unknown. The store reads
	// that many records at once. The receiver may take fewer or more.
	ExpectedRows int
}

// Predicate is one exact condition on a field. A store may return records that do not match the condition, but
// never omits a record that matches. A receiver that needs an exact result must check the body.
type Predicate struct {
	// Field is a dotted name. It may be empty in two cases. If Number is set, it means any field of class phone. If
	// From or To is set, it means the record's clock, or its kind's order field if the clock is empty.
	Field string
	// Any are the decoded values, one of which the field must have. A boolean is "true" or "false". Null and the
	// empty text are not allowed.
	Any []string
	// Number is a phone number in any spelling, compared by its digits.
	Number string
	// From and To limit a time to [From, To) in Unix seconds; 0 means no limit. They are used only without Any and Number.
	From, To int64
}

// Circle is an area on the earth.
type Circle struct {
	At     geo.Point
	Meters float64    // the radius
	Unit   LengthUnit // the unit in which a person wrote the radius
}

// LengthUnit is a unit of length, such as mi.
type LengthUnit struct {
	Name   string
	Meters float64
}

// Near selects the records within a distance from a point, and orders them by their distance.
type Near struct {
	// Distance returns the distance of a record in metres. ok is false if the record is too far away, has no coordinates, or is hidden
	// from the caller. Only one goroutine at a time may call Distance.
	Distance func(*understudy.Record) (meters float64, ok bool)
	// Numbers, if not nil, contains the number of every record that is near enough.
	Numbers []int64
}

// RowRule tells a store which records of a kind a caller may find.
type RowRule struct {
	// CanFind reports whether a record may be found. It is safe for concurrent use.
	CanFind func(*understudy.Record) bool
	// CanFindID reports whether the record with an id may be found. The call takes as long for a hidden record as
	// for an id that never existed.
	CanFindID func(id string) bool
	// Predicates match every record that may be found. If Numbers is not empty, every such record also has one of
	// them. From is as in RecordQuery.
	Predicates []Predicate
	Numbers    []string
	From       int64
	// Complete is true if Predicates, Numbers and From are the entire rule, so that they can be the Rule of a
	// RecordQuery. Otherwise a query must have no other conditions, or its duration would reveal what they match.
	Complete bool
	// RecordOnly is true if the result of CanFind depends only on the record. The result is then the same as long
	// as the record is the same.
	RecordOnly bool
}

// Hit is one record that a query found.
type Hit struct {
	Record *understudy.Record
	Clock  int64 // the clock field in Unix seconds; 0 if it is null or absent
	Order  OrderKey
}

// TextOp says how a Text combines its words or parts.
type TextOp uint8

// The text operations.
const (
	TextWord   TextOp = iota // matches a text that contains the only word in Words
	TextPrefix               // matches a text with a word that begins with the only word in Words
	// matches a text that contains the words directly one after the other; if Prefix is true, the last is the
	// beginning of a word
	TextPhrase
	TextAnd  // matches a text that all of Parts match
	TextOr   // matches a text that at least one of Parts matches
	TextNot  // matches a text that the first of Parts matches and the second does not
	TextNone // matches nothing; used only in a LocalQuery, and no store is asked
)

// Text is a condition on the words of a record. Its words are as typed by the user. A store splits them into words
// and folds their case in the same way as the bodies.
type Text struct {
	Op     TextOp
	Words  []string
	Prefix bool
	Parts  []*Text
	// Fields are the fields to search, by kind. In a kind without an entry no field is searched. nil means all
	// fields, and also names outside the spec, which may lie inside a field of the spec. Only a word, a prefix and
	// a phrase have Fields.
	Fields map[string][]string
}

// MaxTextFields is the maximum number of fields of a kind that a Text can distinguish.
const MaxTextFields = 36*36 - 1

// Count is the number of records that a query finds.
type Count struct {
	N       int64 `json:"n"`
	AtLeast bool  `json:"at_least,omitempty"` // whether counting stopped early, so that N is a minimum
}

// RangeScan selects stored records of a kind in one shape that are not deleted. The newest clock comes first.
// Records with the same clock are ordered by record number, the largest first.
type RangeScan struct {
	Source, Kind, Shape string
	Parent              string // the id of the parent record of the results; "" means any
	From, To            int64  // the clocks of the results are in [From, To), in Unix seconds; 0 means no limit
	NoClock             bool   // whether to select only records without a clock, instead of those with a clock
	NotFinal            bool   // whether to select only records that are not final

	// Below continues after the last row of an earlier answer: only rows after this clock and record number are
	// selected. A record number of zero starts at the beginning.
	Below struct{ Clock, Record int64 }
	Limit int // the maximum number of rows; 0 means 1000; at most 10,000
}
