// Target: what of a request's path and query goes into the log.

package accesslog

import "strings"

// redacted stands for what is left out.
const redacted = "…"

// maxTarget bounds what of a target is written, in bytes.
const maxTarget = 1024

// AppendTarget appends a request target for between quotes: its path and the
// names of its parameters. Values are left out, as are path segments and names
// that could be a phone number (7 digits or more and little else): a log is
// read by more people than the records are.
func AppendTarget(dst []byte, target string) []byte {
	if len(target) > maxTarget {
		target = target[:maxTarget]
	}
	path, query, asked := strings.Cut(target, "?")
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		dst = appendUnlessNumber(dst, segment)
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
		dst = appendUnlessNumber(append(dst, separator), name)
		if has {
			dst = append(dst, '=')
		}
		if value != "" {
			dst = append(dst, redacted...)
		}
	}
	return dst
}

func appendUnlessNumber(dst []byte, text string) []byte {
	if number(text) {
		return append(dst, redacted...)
	}
	return appendSafe(dst, text)
}

// number reports text that may hold a phone number: 7 digits or more once
// percent escapes are read, no letters, and at most a file's ending behind.
// Ids, which mix letters in, are not, nor are dates, which name versions of
// APIs.
func number(text string) bool {
	digits, head := 0, -1 // head: how many digits came before the last dot
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && i+2 < len(text) && hex(text[i+1]) < 16 && hex(text[i+2]) < 16 {
			c = hex(text[i+1])<<4 | hex(text[i+2])
			i += 2
		}
		switch {
		case '0' <= c && c <= '9':
			digits++
		case c == '.':
			head = digits
		case 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_':
			// Letters only in a short ending, or this is none.
			dot := strings.LastIndexByte(text, '.')
			return head >= 7 && dot < i && len(text)-dot <= 6
		}
	}
	return digits >= 7 && !date(text)
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
