// Change: a record came, changed or went; numbered.

package understudy

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// ChangeType says what happened to a record.
type ChangeType uint8

// The three things that happen to records.
const (
	Came ChangeType = iota + 1
	Changed
	Went
)

// String is "came", "changed" or "went".
func (w ChangeType) String() string {
	switch w {
	case Came:
		return "came"
	case Changed:
		return "changed"
	case Went:
		return "went"
	}
	return "unknown"
}

// Change is one numbered row. Numbers count by source, have no gap and become visible
// in order. A change names the version, never a value.
type Change struct {
	N       int64
	Source  string
	Kind    string
	ID      string
	Type    ChangeType
	Record  int64 // the store's number of the record
	Version int64 // the version it now has; of one that went, the last
	At      time.Time
	Fields  Names // of one that changed: what differs between the version before and this one; "" when that is not known
}

// Names is a set of field names, dotted as in a spec, in order and one per
// line. Names are as the body writes them, so that a line break in one is
// escaped. It is a string, so that a Change can be compared.
type Names string

// NamesOf is the set of the names given; they are put in order.
func NamesOf(names ...string) Names {
	names = slices.Clone(names)
	slices.Sort(names)
	return Names(strings.Join(slices.Compact(names), "\n"))
}

// All are the names, in order.
func (n Names) All() iter.Seq[string] {
	if n == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(string(n), "\n")
}

// Has reports whether a name is among them.
func (n Names) Has(name string) bool {
	for have := range n.All() {
		if have == name {
			return true
		}
	}
	return false
}
