// Secret: a string that does not leak into logs.

package understudy

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
)

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
