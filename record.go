// This file declares Record, one object of the API, its versions over time, and the numbered changes of records.

package understudy

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Record is the newest stored version of one object in one shape.
type Record struct {
	Source, Kind, Shape, ID string

	Number      int64     // the number of the record in the store, the same in all its shapes
	Version     int64     // the number of this body in the store
	Body        []byte    // the JSON object as the upstream sent it, byte for byte; never changed
	Since       time.Time // when this body was first received
	Seen        time.Time // when the upstream last returned the record
	Final       bool      // the record is in a final state of the spec
	Invalidated bool      // a write touched the record since it was last received, so only a new fetch may answer, except during an outage
}

// Annotation is what people wrote on a record: notes, and the mark that it is handled. It exists only in
// Understudy's store, not upstream. It must not be changed.
type Annotation struct {
	Source, Kind, ID string
	Notes            []Note // the notes on the record, the oldest first
	Handled          *Mark  // who handled the record, and when; nil if it is not handled
}

// Note is one text that a person wrote on a record.
type Note struct {
	Number int64     `json:"number"` // a number that is unique among all notes
	Text   string    `json:"text"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// Mark says who marked a record as handled, and when.
type Mark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Limits of the notes on a record.
const (
	MaxNote  = 4000 // maximum size of one note in bytes
	MaxNotes = 100  // maximum number of notes per record
)

// Version is a period in which one shape of a record had the same body, or in which the record was deleted.
type Version struct {
	Number int64  // the number of the body in the store, or 0 if the record was deleted
	Shape  string // the shape of the body, or "" if the record was deleted
	Body   []byte // the body as the upstream sent it, or nil if the record was deleted or the body is not stored
	From   time.Time
	Until  time.Time // when the next version was first received; zero for the newest version
	Gone   bool
}

// Series names a numeric field whose past values are stored. The field belongs to a kind that exists once per
// source, such as a balance.
type Series struct{ Source, Kind, Field string }

// String returns SOURCE/KIND.FIELD, the form that people write.
func (s Series) String() string { return s.Source + "/" + s.Kind + "." + s.Field }

// ParseSeries parses SOURCE/KIND.FIELD. Any other form is ErrInvalid.
func ParseSeries(text string) (Series, error) {
	source, rest, slash := strings.Cut(text, "/")
	kind, field, dot := strings.Cut(rest, ".")
	if !slash || !dot || source == "" || kind == "" || field == "" || strings.Contains(field, "/") {
		return Series{}, fmt.Errorf("%w: %q does not name a number field; write SOURCE/KIND.FIELD", ErrInvalid, Clip(text))
	}
	return Series{Source: source, Kind: kind, Field: field}, nil
}

// Sample is the value of a series at a time, in the upstream's spelling.
type Sample struct {
	At    time.Time
	Value string
}

// MaxSamples is the maximum number of samples that are stored per series. Older samples are deleted.
const MaxSamples = 10_000

// ChangeType says what happened to a record.
type ChangeType uint8

// The three types of change.
const (
	Appeared ChangeType = iota + 1
	Changed
	Deleted
)

// String returns "came", "changed" or "went", the words of the change feed.
func (w ChangeType) String() string {
	switch w {
	case Appeared:
		return "came"
	case Changed:
		return "changed"
	case Deleted:
		return "went"
	}
	return "unknown"
}

// Change is one numbered change of a record. Each source has its own sequence of numbers, without gaps. Changes
// become visible in that order. A change names the version of the record, never a value of it.
type Change struct {
	N       int64
	Source  string
	Kind    string
	ID      string
	Type    ChangeType
	Record  int64 // the number of the record in the store
	Version int64 // the number of the record's version after the change, or of its last version if it was deleted
	At      time.Time
	Fields  Names // the names of the fields that differ from the previous version; "" if not known or if no field differs
}

// Names is a sorted set of field names, one per line, with dots for nested fields as in a spec. Names are
// written as in the JSON body, where a line break is escaped. Names is a string so that a Change can be
// compared.
type Names string

// NewNames returns the set of the given names.
func NewNames(names ...string) Names {
	names = slices.Clone(names)
	slices.Sort(names)
	return Names(strings.Join(slices.Compact(names), "\n"))
}

// All returns the names in sorted order.
func (n Names) All() iter.Seq[string] {
	if n == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(string(n), "\n")
}

// Has reports whether the set contains a name.
func (n Names) Has(name string) bool {
	for have := range n.All() {
		if have == name {
			return true
		}
	}
	return false
}
