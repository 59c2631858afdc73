// Paths: the segments of a URI path, decoded and encoded (RFC 3986).

package understudy

import (
	"fmt"
	"strings"
)

// SplitPath decodes a raw path into segments. It refuses a path that another server could read differently:
// with dot segments, an encoded slash or control characters.
func SplitPath(path string) ([]string, error) { return splitPath(path, false) }

// SplitPathData decodes a raw path whose segments may contain escaped slashes as data (RFC 3986, 2.2). It
// refuses a segment if a piece between two of its slashes would be refused by SplitPath.
func SplitPathData(path string) ([]string, error) { return splitPath(path, true) }

// splitPath decodes a raw path into segments. With slashes set, a segment may contain escaped slashes.
func splitPath(path string, slashes bool) ([]string, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%w: path does not begin with a slash", ErrInvalid)
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

// isOdd reports whether another server could read the segment as something other than one segment.
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
