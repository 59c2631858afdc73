// Target: what of a request's path and query goes into the log.

package accesslog

import (
	"strings"
	"unicode"
)

// redacted stands for what is left out.
const redacted = "…"

// maxTarget bounds what of a target is written, in bytes.
const maxTarget = 1024

// numberDigits is how many digits a phone number has at least.
const numberDigits = 7

// maxEscaped is how often a text may have been escaped; one that was escaped
// more often is left out.
const maxEscaped = 8

// AppendTarget appends a request target for between quotes: its path and the names of
// its parameters. Values are left out, and every path segment and name with 7 digits or
// more, in any script and however often escaped: more people read a log than may see
// the records. Digits of a date, which names the version of an API, and of a text that
// known accepts as an id do not count; a nil known accepts none.
func AppendTarget(dst []byte, target string, known func(text string) bool) []byte {
	if len(target) > maxTarget {
		target = target[:maxTarget]
	}
	path, query, asked := strings.Cut(target, "?")
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		dst = appendUnlessNumber(dst, segment, known)
		if more {
			dst = append(dst, '/')
		}
	}
	if !asked {
		return dst
	}
	separator := byte('?')
	for more := true; more; separator = '&' {
		var param string
		param, query, more = strings.Cut(query, "&")
		name, value, has := strings.Cut(param, "=")
		dst = appendUnlessNumber(append(dst, separator), name, known)
		if has {
			dst = append(dst, '=')
		}
		if value != "" {
			dst = append(dst, redacted...)
		}
	}
	return dst
}

func appendUnlessNumber(dst []byte, text string, known func(string) bool) []byte {
	plain, ok := unescaped(text)
	if !ok || unexplained(plain, known) >= numberDigits {
		return append(dst, redacted...)
	}
	return appendSafe(dst, text)
}

// unescaped reads percent escapes until none is left; ok is false for a text
// that was escaped too often.
func unescaped(text string) (plain string, ok bool) {
	for range maxEscaped {
		next := unescapeOnce(text)
		if len(next) == len(text) {
			return text, true
		}
		text = next
	}
	return text, false
}

func unescapeOnce(text string) string {
	at := strings.IndexByte(text, '%')
	if at < 0 {
		return text
	}
	var b strings.Builder
	for b.WriteString(text[:at]); at < len(text); at++ {
		c := text[at]
		if c == '%' && at+2 < len(text) && hex(text[at+1]) < 16 && hex(text[at+2]) < 16 {
			c = hex(text[at+1])<<4 | hex(text[at+2])
			at += 2
		}
		b.WriteByte(c)
	}
	return b.String()
}

// unexplained counts the digits of a text that belong to no date and no id.
func unexplained(text string, known func(string) bool) int {
	digits, start := 0, -1 // start: of the word at hand
	word := func(end int) {
		if start >= 0 && !date(text[start:end]) && (known == nil || !known(text[start:end])) {
			digits += digitsIn(text[start:end])
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case r < unicode.MaxASCII && wordByte(byte(r)):
			if start < 0 {
				start = i
			}
			continue
		case unicode.IsNumber(r):
			digits++
		}
		word(i)
	}
	word(len(text))
	return digits
}

// wordByte reports what dates and ids are written in.
func wordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '-'
}

func digitsIn(text string) (n int) {
	for i := range len(text) {
		if c := text[i]; '0' <= c && c <= '9' {
			n++
		}
	}
	return n
}

// date reports a text of the form 2006-01-02.
func date(text string) bool {
	if len(text) != len("2006-01-02") {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (i == 4 || i == 7) != (c == '-') || c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func hex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 255
}
