// Secret: a string that does not leak.

package understudy

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
)

// Secret is text that formats, logs and marshals as "[redacted]". Reveal is
// the only way to it. The zero value is empty.
//
// The text lies behind a pointer because package fmt looks past methods where
// it cannot call them: in unexported fields, and for verbs like %p.
type Secret struct{ text *string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. Callers hand it to the wire and nowhere else.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// Is compares in constant time, whatever the lengths.
func (s Secret) Is(other string) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(other))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

const redacted = "[redacted]"

// String is always "[redacted]".
func (s Secret) String() string { return redacted }

// GoString is always "[redacted]".
func (s Secret) GoString() string { return redacted }

// Format writes "[redacted]" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText is always "[redacted]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue is always "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
