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

// Get is the value of the first parameter of that name; ok is false when there
// is none.
func (q Query) Get(name string) (value string, ok bool) {
	for _, p := range q {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// Without is q less the parameters drop picks; q itself stays as it was.
func (q Query) Without(drop func(Param) bool) Query {
	return slices.DeleteFunc(slices.Clone(q), drop)
}

const upperHex = "0123456789ABCDEF"

// plain reports bytes that url.QueryEscape leaves alone (RFC 3986 unreserved).
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '~'
}

func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		if c := s[i]; !plain(c) && c != ' ' {
			n += 2
		}
	}
	return n
}

func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case plain(c):
			dst = append(dst, c)
		case c == ' ':
			dst = append(dst, '+')
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

func writeEscaped(b *strings.Builder, s string) {
	for i := range len(s) {
		switch c := s[i]; {
		case plain(c):
			b.WriteByte(c)
		case c == ' ':
			b.WriteByte('+')
		default:
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
}

// unescape decodes percent escapes, and "+" when plus is set. Strings without
// any are returned as they are.
func unescape(s string, plus bool) (string, error) {
	if !strings.ContainsAny(s, "%+") {
		return s, nil
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%':
			if i+2 >= len(s) || unhex(s[i+1]) > 15 || unhex(s[i+2]) > 15 {
				return "", fmt.Errorf("%w: broken percent escape in %q", ErrInvalid, clip(s))
			}
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		case c == '+' && plus:
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// clip keeps foreign text in an error short.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
