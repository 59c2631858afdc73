// History: what was seen of a record, and when.

package understudy

import (
	"fmt"
	"strings"
	"time"
)

// Version is one period in which a record looked the same in one shape, or was gone.
type Version struct {
	Number int64  // the store's number of the body; 0 when the record was gone
	Shape  string // "" when the record was gone
	Body   []byte // as upstream sent it; nil when it was gone, or when the body was not kept
	From   time.Time
	Until  time.Time // when the next one was first seen; zero: it is the newest
	Gone   bool
}

// Series names a number that is kept as it was at times: a field of a kind that is one
// thing of its source, such as a balance.
type Series struct{ Source, Kind, Field string }

// String is SOURCE/KIND.FIELD, as people write it.
func (s Series) String() string { return s.Source + "/" + s.Kind + "." + s.Field }

// ParseSeries reads SOURCE/KIND.FIELD; ErrInvalid for another form.
func ParseSeries(text string) (Series, error) {
	source, rest, slash := strings.Cut(text, "/")
	kind, field, dot := strings.Cut(rest, ".")
	if !slash || !dot || source == "" || kind == "" || field == "" || strings.Contains(field, "/") {
		return Series{}, fmt.Errorf("%w: %q names no number; write SOURCE/KIND.FIELD", ErrInvalid, Clip(text))
	}
	return Series{Source: source, Kind: kind, Field: field}, nil
}

// Sample is a number of a series at a time, as upstream wrote it.
type Sample struct {
	At    time.Time
	Value string
}

// MaxSamples is how many samples of a series are kept; the oldest go.
const MaxSamples = 10_000
