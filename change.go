// Change: a record came, changed or went; numbered.

package understudy

import "time"

// What says what happened to a record.
type What uint8

// The three things that happen to records.
const (
	Came What = iota + 1
	Changed
	Went
)

// String is "came", "changed" or "went".
func (w What) String() string {
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

// Change is one numbered row: numbers are per source, gap-free and become
// visible in order. It names the version, never a value.
type Change struct {
	N       int64
	Source  string
	Kind    string
	ID      string
	What    What
	Record  int64 // the store's number of the record
	Version int64 // the version it now has; of one that went, the last
	At      time.Time
}
