// This file declares Key, the canonical name of one upstream request, and splits a URI path into segments (RFC 3986).

package understudy

import (
	"fmt"
	"strings"
)

// Key identifies one upstream request. Two requests that must get the same bytes have equal keys. These
// differences do not change the key: the order of parameters, an explicit default page size, and the encoding
// of a name or value. The spelling of values does: a bare, an empty and an absent parameter give three keys,
// and so do two spellings of one date. Keys can be compared with ==. The upstream request uses exactly URI.
//
// Header fields that are part of the request follow URI after a space, encoded as a query:
// "/v1/customers?limit=10 Stripe-Account=acct_1". A URI itself never contains a space.
type Key struct {
	Source string
	URI    string // path and query of the request, such as "/2010-04-01/Accounts/AC…/Calls.json?PageSize=50"
}

// IsZero reports whether the key is empty.
func (k Key) IsZero() bool { return k.URI == "" }

// String returns source and URI, such as "twilio /2010-04-01/…", for logs and errors.
func (k Key) String() string { return k.Source + " " + k.URI }

// RequestURI returns path and query, without the header fields.
func (k Key) RequestURI() string {
	uri, _, _ := strings.Cut(k.URI, " ")
	return uri
}

// Header returns the header fields of the key as a query, or "" if there are none.
func (k Key) Header() string {
	_, fields, _ := strings.Cut(k.URI, " ")
	return fields
}

// WithHeader returns the key with these header fields, encoded as a query. An empty key stays empty.
func (k Key) WithHeader(header string) Key {
	if header != "" && !k.IsZero() {
		k.URI = k.RequestURI() + " " + header
	}
	return k
}

// Path returns the URI without its query.
func (k Key) Path() string {
	path, _, _ := strings.Cut(k.RequestURI(), "?")
	return path
}

// Query returns the raw query of the URI.
func (k Key) Query() string {
	_, query, _ := strings.Cut(k.RequestURI(), "?")
	return query
}

// OwnAsOf is the query parameter that requests the data as it was known at a given time (see ParseInstant).
const OwnAsOf = OwnPrefix + "as_of"

// Query parameters for lists made from records. OwnOrder "asc" returns the oldest records first. OwnSince
// returns records that appeared or changed after the change with that number. OwnText returns records that
// contain some words. OwnNear returns records within a distance from a point, the nearest first.
const (
	OwnOrder = OwnPrefix + "order"
	OwnSince = OwnPrefix + "since"
	OwnText  = OwnPrefix + "q"
	OwnNear  = OwnPrefix + "near"
)

// OwnPrefix begins the names of Understudy's own query parameters. They are removed before a key is made and
// are never sent upstream.
const OwnPrefix = "understudy."

// SplitPath decodes a raw path into segments. It refuses a path that another server could read differently:
// with dot segments, an encoded slash or control characters.
func SplitPath(path string) ([]string, error) { return splitPath(path, false) }

// SplitPathData decodes a raw path whose segments may contain escaped slashes as data (RFC 3986, 2.2). It
// refuses a segment if a piece between two of its slashes would be refused by SplitPath.
func SplitPathData(path string) ([]string, error) { return splitPath(path, true) }

// splitPath decodes a raw path into segments. With slashes set, a segment may contain escaped slashes.
func splitPath(path string, slashes bool) ([]string, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%w: the path does not begin with a slash", ErrInvalid)
	}
	segments := strings.Split(path[1:], "/")
	for i, raw := range segments {
		text, err := unescape(raw, false)
		if err != nil {
			return nil, err
		}
		if slashes && strings.Contains(text, "/") {
			for piece := range strings.SplitSeq(text, "/") {
				if piece == "" || isOdd(piece) {
					return nil, fmt.Errorf("%w: %w: path segment %q", ErrInvalid, ErrNotFound, Clip(raw))
				}
			}
		} else if isOdd(text) {
			return nil, fmt.Errorf("%w: %w: path segment %q", ErrInvalid, ErrNotFound, Clip(raw))
		}
		segments[i] = text
	}
	return segments, nil
}

// isOdd reports whether another server could read a segment in another way, for example as a dot segment.
func isOdd(text string) bool {
	bare, _, _ := strings.Cut(text, ";") // some servers read "..;" as ".."
	return bare == "." || bare == ".." || strings.ContainsFunc(text, func(r rune) bool {
		return r == '/' || r == '\\' || r < ' ' || r == 0x7f
	})
}

// AppendPathSegment escapes one decoded segment. Unreserved characters and the sub-delimiters allowed in a
// segment stay as they are (RFC 3986, 3.3).
func AppendPathSegment(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; isUnreserved(c) || strings.IndexByte("$&+,=:@!'()*", c) >= 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// unescape decodes percent escapes, and with plus set also "+". A string without escapes is returned unchanged.
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
				return "", fmt.Errorf("%w: broken percent escape in %q", ErrInvalid, Clip(s))
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
