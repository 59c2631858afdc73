// History: what was observed of a record over time.

package understudy

import (
	"fmt"
	"strings"
	"time"
)

// Version is a period in which one shape of a record had the same body, or in which the record was deleted.
type Version struct {
	Number int64  // the store's number of the body; 0 if the record was deleted
	Shape  string // shape of the body; "" if the record was deleted
	Body   []byte // body as the upstream sent it; nil if the record was deleted or the body was not stored
	From   time.Time
	Until  time.Time // when the next version was first seen; zero for the newest version
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
		return Series{}, fmt.Errorf("%w: %q names no number; write SOURCE/KIND.FIELD", ErrInvalid, Clip(text))
	}
	return Series{Source: source, Kind: kind, Field: field}, nil
}

// Sample is the value of a series at one time, spelled as the upstream wrote it.
type Sample struct {
	At    time.Time
	Value string
}

// MaxSamples is how many samples are stored per series. Older samples are deleted.
const MaxSamples = 10_000
