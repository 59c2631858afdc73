// Change: a numbered row that says that a record appeared, changed or was deleted.

package understudy

import (
	"iter"
	"slices"
	"strings"
	"time"
)

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
	Record  int64 // the store's number of the record
	Version int64 // number of the record's version after the change; for a deleted record, of its last version
	At      time.Time
	Fields  Names // fields that differ from the version before; "" if they are not known or if the record did not change
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
