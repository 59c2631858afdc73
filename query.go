// This file declares Query, the decoded parameters of a request in their order.

package understudy

import (
	"fmt"
	"slices"
	"strings"
)

// Param is one query parameter. Bare marks a name without an equals sign ("baz"), as opposed to an empty value
// ("baz="). Upstreams return the two differently, so keys distinguish them.
type Param struct {
	Name, Value string
	Bare        bool
}

// Query is a request's parameters in order. The zero value is empty. url.Values is not used because it loses
// the order and bare names.
type Query []Param

// MaxParams is the maximum number of parameters in one request.
const MaxParams = 100

// ParseQuery splits and decodes a raw query. "+" becomes a space and empty pieces are dropped. The first "="
// ends the name, so "StartTime>=2024" has the name "StartTime>". A broken percent escape or more than MaxParams
// parameters is ErrInvalid.
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

// AppendTo appends the encoded query to dst. It encodes as url.Values.Encode does, but keeps the order and bare
// names.
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

// String returns the encoded query, with one allocation.
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

// Get returns the value of the first parameter with that name. ok is false if there is none.
func (q Query) Get(name string) (value string, ok bool) {
	for _, p := range q {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// Count returns how many parameters have that name.
func (q Query) Count(name string) (n int) {
	for _, p := range q {
		if p.Name == name {
			n++
		}
	}
	return n
}

// Remove returns a copy of q without the parameters for which drop returns true.
func (q Query) Remove(drop func(Param) bool) Query {
	return slices.DeleteFunc(slices.Clone(q), drop)
}

const upperHex = "0123456789ABCDEF"

// escapeGrowth is by how many bytes escaping lengthens each byte. It is 0 for a space and for the bytes that
// url.QueryEscape leaves alone (RFC 3986 unreserved).
var escapeGrowth = func() (t [256]uint8) {
	for c := range t {
		if !isUnreserved(byte(c)) && c != ' ' {
			t[c] = 2
		}
	}
	return t
}()

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '~'
}

func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		n += int(escapeGrowth[s[i]])
	}
	return n
}

func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := range len(s) {
		c := s[i]
		if escapeGrowth[c] == 0 && c != ' ' {
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

// writeEscaped escapes a text of any length through a small buffer on the stack.
func writeEscaped(b *strings.Builder, s string) {
	var small [256]byte
	for len(s) > 0 {
		n := min(len(s), len(small)/3)
		b.Write(appendEscaped(small[:0], s[:n]))
		s = s[n:]
	}
}

// Clip shortens a text from another program to 60 characters, so that an error that quotes the text stays short.
func Clip(s string) string { return ClipTo(s, 60) }

// ClipTo returns the first n characters of s, followed by "…" if s is longer.
func ClipTo(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
