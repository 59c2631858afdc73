// RecordQuery: which held records are wanted, and in what order they come.

package query

import "understudy"

// OrderKey is where a record stands among those of its kind, in the order of upstream's lists. The clock orders only
// records that no page has shown. A larger key is nearer the top. It is the same for every shape of a record and
// stays when the record changes or goes. 0 is no key. Keys of different kinds can be compared: a record with a later
// clock has the larger one.
type OrderKey int64

// RecordQuery names records that are held and present, in their order: the newest first, or the oldest first with Up.
// It does not know roles: the caller applies a view to what it finds.
type RecordQuery struct {
	Source string   // "" = every source
	Kinds  []string // none = every kind
	// Shape, with exactly one kind, wants records in that shape only. With "" each record comes once: in the shape of
	// its kind's first list or, when it is not held in that, in another.
	Shape  string
	Parent string // only those under it; "" = all
	// IDs, with exactly one kind, wants the records of these ids alone, with one index lookup for each. None = all.
	IDs []string
	// From and To bound the time of a record's order key: that of its clock or, without one, of its kind's order. The
	// range is [From, To) in Unix seconds; 0 = open. The bound is coarse: a record that a page showed out of the
	// clock's order may lie outside it.
	From, To   int64
	Predicates []Predicate // all must hold
	// Rule are the conditions of a row rule, which must hold, too. How much a store reads depends on them, and not on
	// which of the other records fulfil Predicates. There is no Text beside them.
	Rule []Predicate
	// Even, which a Rule implies, has a store read as much for a value that no record has as for one that few have.
	Even bool
	Text *Text // nil = any text
	// Since wants only records that came or changed after the change of this
	// number; with exactly one source. 0 = all.
	Since int64
	// Below continues below an order key (with Up: above it). 0 = from the beginning.
	Below OrderKey
	Up    bool
	Limit int // records at most; 0 = until the receiver has enough
	// Want is how many records the receiver is likely to take. As many are read at once; it
	// may take fewer or more. 0 = not known.
	Want int
}

// Predicate is one exact condition on a field. A store may find more records by it than
// fulfil it, never fewer. A receiver that must be exact looks at the body.
type Predicate struct {
	// Field is dotted. It may be "" with Number, which means any field of class phone, and with From and To: the time
	// of the record's clock or, while it has none, that of its kind's order.
	Field string
	// Any are the values, decoded, one of which the field has. A boolean is
	// "true" or "false"; null and the empty text cannot be asked for.
	Any []string
	// Number is a phone number in any form, compared by its digits.
	Number string
	// From and To, without Any and Number, bound a time: in [From, To), Unix seconds; 0 = open.
	From, To int64
}

// RowRule is what a store needs to know of a caller that may find only some records of a kind.
type RowRule struct {
	// Finds reports whether a record may be found. It is safe for concurrent use.
	Finds func(*understudy.Record) bool
	// Named reports whether the record of an id may be found. It takes as long for one that
	// may not as for one that never was.
	Named func(id string) bool
	// Predicates hold for every record that may be found, and one of Numbers when there are
	// any. From is as in RecordQuery.
	Predicates []Predicate
	Numbers    []string
	From       int64
	// Whole says that Predicates, Numbers and From are the whole rule, which RecordQuery.Rule takes. Without Whole a
	// query must have no other conditions, or its time tells what they find.
	Whole bool
	// Steady says that Finds looks at nothing but the record: a record that stays the same stays found, or not.
	Steady bool
}

// Hit is one record that a query found.
type Hit struct {
	Record *understudy.Record
	Clock  int64 // of its clock field in Unix seconds; 0 = null or none
	Order  OrderKey
}

// TextOp says how a Text is made of its parts.
type TextOp uint8

// The ways.
const (
	TextWord   TextOp = iota // the one word in Words
	TextPrefix               // a word that begins with the one in Words
	TextPhrase               // the words, one right after the other; the last one a prefix when Prefix is set
	TextAnd                  // all of Of
	TextOr                   // one of Of
	TextNot                  // the first of Of and not the second
	TextNone                 // nothing: stands alone in a LocalQuery, and no store is asked
)

// Text is a condition on the words of a record. Words are as typed: a store cuts and
// folds them as it does the bodies.
type Text struct {
	Op     TextOp
	Words  []string
	Prefix bool
	Of     []*Text
	// In are the fields that words are searched in, by kind: none of a kind that is not
	// there. nil = all, and the names that the spec does not have, also inside a field that
	// it has. Only a word, a prefix and a phrase have fields.
	In map[string][]string
}

// MaxTextFields is how many fields of a kind a Text can tell apart.
const MaxTextFields = 36*36 - 1

// Count is how many records a query finds.
type Count struct {
	N       int64 `json:"n"`
	AtLeast bool  `json:"at_least,omitempty"` // counting stopped early: there are this many or more
}

// RangeScan names held records: those of a kind in one shape that are present,
// the newest clock first and of one clock the last found first.
type RangeScan struct {
	Source, Kind, Shape string
	Parent              string // only those under it; "" = all
	From, To            int64  // clocks in [From, To), Unix seconds; 0 = open
	Unclocked           bool   // those without a clock instead of the others
	Open                bool   // only those that are not final

	// Below continues after the last row of an answer: only rows that come after this clock
	// and record number. A zero record number: from the beginning.
	Below struct{ Clock, Record int64 }
	Limit int // rows at most; 0 = 1000, more than 10,000 is 10,000
}
