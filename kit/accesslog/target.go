// Target: which parts of a request's path, query and headers are logged.

package accesslog

import (
	"net/http"
	"net/netip"
	"strings"
	"unicode"
)

// redacted replaces a text that must not be logged.
const redacted = "…"

// maxTarget is the maximum number of bytes of a target that are logged.
const maxTarget = 1024

// numberDigits is the minimum number of digits of a phone number.
const numberDigits = 7

// maxEscaped is how many times a text may have been percent-escaped. A text that was escaped more often is not logged.
const maxEscaped = 8

// AppendTarget appends a request target that will be inside quotes: its path and the names of its parameters. Values
// are redacted, because more people read a log than may see the records. A path segment or a name with 7 digits or more
// is redacted too, in any script and however often it was escaped. Digits of a date, such as an API version, do not
// count, nor do the digits of a text that known accepts as an id. If known is nil, no text is an id.
func AppendTarget(dst []byte, target string, known func(text string) bool) []byte {
	if len(target) > maxTarget {
		target = target[:maxTarget]
	}
	path, query, asked := strings.Cut(target, "?")
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		dst = appendOrRedact(dst, segment, known)
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
		dst = appendOrRedact(append(dst, separator), name, known)
		if has {
			dst = append(dst, '=')
		}
		if value != "" {
			dst = append(dst, redacted...)
		}
	}
	return dst
}

// appendOrRedact appends a path segment or the name of a parameter, or … if it may contain a phone number.
func appendOrRedact(dst []byte, text string, known func(string) bool) []byte {
	plain, ok := unescape(text)
	if !ok || countPhoneDigits(plain, known) >= numberDigits {
		return append(dst, redacted...)
	}
	return appendSafe(dst, text)
}

// Client is what a line says about the client of a request.
type Client struct {
	Host  string // the start of the Host header, up to what may be a phone number
	Agent string // the start of the User-Agent header, up to what may be a phone number
}

// maxClient is the maximum number of bytes of a header of the client that are logged.
const maxClient = 256

// ClientOf returns the client of a request.
func ClientOf(r *http.Request) Client {
	return Client{Host: redactHost(r.Host), Agent: redactDigits(r.UserAgent())}
}

// redactHost returns a host with an optional port. Digits of an IP address are no phone number.
func redactHost(host string) string {
	shown := redactDigits(host)
	if shown == host {
		return host
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		at, _ := netip.ParseAddrPort(host)
		addr = at.Addr()
	}
	if addr.IsValid() && addr.Zone() == "" {
		return host
	}
	return shown
}

// redactDigits returns a text up to numberDigits digits without a letter between them. It shortens long texts.
func redactDigits(text string) string {
	text = text[:min(len(text), maxClient)]
	digits, first := 0, 0 // the number of digits since the last letter, and the place of the first
	for i, r := range text {
		switch {
		case unicode.IsNumber(r):
			if digits == 0 {
				first = i
			}
			if digits++; digits == numberDigits {
				return text[:first] + redacted
			}
		case unicode.IsLetter(r):
			digits = 0
		}
	}
	return text
}

// unescape decodes percent escapes until none is left. ok is false if the text was escaped more than maxEscaped times.
func unescape(text string) (plain string, ok bool) {
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

// countPhoneDigits counts the digits of a text that belong neither to a date nor to an id. known may be nil.
func countPhoneDigits(text string, known func(string) bool) int {
	digits, start := 0, -1 // start is the index of the current word, or -1 between words
	word := func(end int) {
		if start >= 0 && !isDate(text[start:end]) && (known == nil || !known(text[start:end])) {
			digits += digitsIn(text[start:end])
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case r < unicode.MaxASCII && isWordByte(byte(r)):
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

// isWordByte reports whether c can be part of a date or an id.
func isWordByte(c byte) bool {
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

// isDate reports whether a text has the form 2006-01-02.
func isDate(text string) bool {
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
