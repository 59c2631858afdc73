// Query: the parameters of a request, in order, exactly as meant.

package understudy

import (
	"fmt"
	"slices"
	"strings"
)

// Param is one query parameter. Bare tells "baz" (no equals sign) from "baz="
// (an empty value): upstreams echo them differently, so keys keep them apart.
type Param struct {
	Name, Value string
	Bare        bool
}

// Query is a request's parameters in order. The zero value is empty.
// url.Values is not used because it loses order and bare names.
type Query []Param

// MaxParams bounds how many parameters one request may carry.
const MaxParams = 100

// ParseQuery splits and decodes a raw query. "+" is a space, empty pieces are
// dropped, the first "=" ends the name (so "StartTime>=2024" names
// "StartTime>"). A broken percent escape or more than MaxParams parameters is
// ErrInvalid.
func ParseQuery(raw string) (Query, error) {
	if raw == "" {
		return nil, nil
	}
	q := make(Query, 0, 1+strings.Count(raw, "&"))
	for piece := range strings.SplitSeq(raw, "&") {
		if piece == "" {
			continue
		}
		if len(q) == MaxParams {
			return nil, fmt.Errorf("%w: more than %d query parameters", ErrInvalid, MaxParams)
		}
		name, value, has := strings.Cut(piece, "=")
		n, err := unescape(name, true)
		if err != nil {
			return nil, err
		}
		v, err := unescape(value, true)
		if err != nil {
			return nil, err
		}
		q = append(q, Param{Name: n, Value: v, Bare: !has})
	}
	return q, nil
}

// AppendTo appends the encoded query to dst and returns it: the form of
// url.Values.Encode except that order is kept and a bare name stays bare.
func (q Query) AppendTo(dst []byte) []byte {
	for i, p := range q {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = appendEscaped(dst, p.Name)
		if !p.Bare {
			dst = append(dst, '=')
			dst = appendEscaped(dst, p.Value)
		}
	}
	return dst
}

// String is the encoded query, in one allocation.
func (q Query) String() string {
	n := 0
	for _, p := range q {
		n += escapedLen(p.Name) + escapedLen(p.Value) + 2
	}
	var small [1024]byte
	if n <= len(small) {
		return string(q.AppendTo(small[:0]))
	}
	var b strings.Builder
	b.Grow(n)
	for i, p := range q {
		if i > 0 {
			b.WriteByte('&')
		}
		writeEscaped(&b, p.Name)
		if !p.Bare {
			b.WriteByte('=')
			writeEscaped(&b, p.Value)
		}
	}
	return b.String()
}

// Get is the value of the first parameter of that name; ok is false without one.
func (q Query) Get(name string) (value string, ok bool) {
	for _, p := range q {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// Count is how many parameters have that name.
func (q Query) Count(name string) (n int) {
	for _, p := range q {
		if p.Name == name {
			n++
		}
	}
	return n
}

// Without is q without the parameters that drop reports. q itself does not change.
func (q Query) Without(drop func(Param) bool) Query {
	return slices.DeleteFunc(slices.Clone(q), drop)
}

const upperHex = "0123456789ABCDEF"

// longer is by how many bytes escaping makes a byte longer: 0 for those that
// url.QueryEscape leaves alone (RFC 3986 unreserved) and for the space.
var longer = func() (t [256]uint8) {
	for c := range t {
		if !plain(byte(c)) && c != ' ' {
			t[c] = 2
		}
	}
	return t
}()

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '~'
}

func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		n += int(longer[s[i]])
	}
	return n
}

func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := range len(s) {
		c := s[i]
		if longer[c] == 0 && c != ' ' {
			continue
		}
		dst = append(dst, s[start:i]...)
		if start = i + 1; c == ' ' {
			dst = append(dst, '+')
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return append(dst, s[start:]...)
}

// writeEscaped is appendEscaped for what is too long for the stack.
func writeEscaped(b *strings.Builder, s string) {
	var small [256]byte
	for len(s) > 0 {
		n := min(len(s), len(small)/3)
		b.Write(appendEscaped(small[:0], s[:n]))
		s = s[n:]
	}
}

// Clip cuts foreign text to 60 characters, so that an error that quotes it stays short.
func Clip(s string) string { return ClipTo(s, 60) }

// ClipTo returns the first n characters of a longer text.
func ClipTo(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
