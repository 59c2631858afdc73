// This file decodes and quotes JSON strings, and finds text that cannot be stored without loss.

package jsonspan

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a value as text for people: a string without its quotes and escapes, any other value as written.
func Text(data []byte, v Value) string {
	raw := v.Bytes(data)
	if v.Kind != String {
		return string(raw)
	}
	if raw = raw[1 : len(raw)-1]; bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	return string(appendDecoded(make([]byte, 0, len(raw)), raw))
}

// Name returns the name that a raw name stands for, without escapes.
func Name(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	return string(appendDecoded(make([]byte, 0, len(raw)), raw))
}

// appendDecoded appends the raw string to dst with its escapes decoded.
func appendDecoded(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		if raw = raw[i:]; raw[1] != 'u' {
			dst = append(dst, simpleEscapes[raw[1]])
			raw = raw[2:]
			continue
		}
		r, n := decodeUnicodeEscape(raw)
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
}

var simpleEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decodeUnicodeEscape decodes the \uXXXX at the beginning of raw, or two of them if they form a surrogate pair.
// It returns the number of bytes decoded. A lone surrogate becomes U+FFFD.
func decodeUnicodeEscape(raw []byte) (r rune, n int) {
	r = hex4(raw[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(raw[8:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// hex4 returns the value of four hex digits, or -1 if a byte is not a hex digit.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Quote appends s as a JSON string. It escapes only what JSON requires: / < > & and characters beyond ASCII
// stay unchanged. Bytes that are not UTF-8 become U+FFFD.
func Quote(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = utf8.AppendRune(append(dst, s[start:i]...), utf8.RuneError)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// CheckLossless returns nil if a document that Parse accepted can be decoded, stored and shown without loss.
// Otherwise its error names the first bytes that are not UTF-8, or the first escape of a lone surrogate.
func CheckLossless(data []byte) error {
	if !utf8.Valid(data) {
		for i := 0; i < len(data); {
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				return &Error{i, "invalid UTF-8"}
			}
			i += n
		}
	}
	// Backslashes occur only in strings, and each begins an escape.
	for i := 0; ; {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 {
			return nil
		}
		if i += next; data[i+1] != 'u' {
			i += 2
			continue
		}
		r, n := decodeUnicodeEscape(data[i:])
		if r == utf8.RuneError && utf16.IsSurrogate(hex4(data[i+2:])) {
			return &Error{i, fmt.Sprintf("lone surrogate %s", data[i:i+6])}
		}
		i += n
	}
}
