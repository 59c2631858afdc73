// Values of settings: durations, times and secrets.

package understudy

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"
)

// longUnit matches one part of a duration that time.ParseDuration does not know: days, weeks or years.
var longUnit = regexp.MustCompile(`^(\d+(?:\.\d+)?)([dwy])`)

// longHours maps each unit of longUnit to its length in hours.
var longHours = map[string]float64{"d": 24, "w": 7 * 24, "y": 365 * 24}

// ParseDuration parses a duration as time.ParseDuration does. In front it also accepts days (d, 24 hours),
// weeks (w) and years (y, 365 days): 30d, 2w, 1y, 1d12h, 1.5d, 90s. The error quotes the text and shows the
// accepted forms.
func ParseDuration(text string) (time.Duration, error) {
	hours, rest := "", text
	for part := longUnit.FindStringSubmatch(rest); part != nil; part = longUnit.FindStringSubmatch(rest) {
		n, _ := strconv.ParseFloat(part[1], 64) // an overflow gives a text that time.ParseDuration refuses below
		hours += strconv.FormatFloat(n*longHours[part[2]], 'f', -1, 64) + "h"
		rest = rest[len(part[0]):]
	}
	d, err := time.ParseDuration(hours + rest)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration; write 30s, 5m, 24h, 30d or 2w", Clip(text))
	}
	return d, nil
}

// ParseTime parses a time by the first layout that fits. A text without a zone is taken to be in the given
// zone.
func ParseTime(text string, zone *time.Location, layouts ...string) (t time.Time, err error) {
	for _, layout := range layouts {
		if t, err = time.ParseInLocation(layout, text, zone); err == nil {
			break
		}
	}
	return t, err
}

// Secret is a text that is formatted, logged and marshalled as "[redacted]". Only Reveal returns the text. The
// zero value is empty.
//
// The text is behind a pointer because package fmt bypasses methods that it cannot call: those of unexported
// fields, and for verbs such as %p.
type Secret struct{ text *string }

// NewSecret returns a Secret with that text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. Use it only to send the secret.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsEmpty reports whether there is no text.
func (s Secret) IsEmpty() bool { return s.Reveal() == "" }

// Equal reports whether the secret equals other. It compares in constant time, also if the lengths differ.
func (s Secret) Equal(other string) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(other))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

const redacted = "[redacted]"

// String returns "[redacted]".
func (s Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (s Secret) GoString() string { return redacted }

// Format writes "[redacted]" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText returns "[redacted]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
