// Package header reads the header fields of HTTP requests.
package header

import (
	"strconv"
	"strings"
	"time"
)

// ConfirmsTag reports whether a 304 with the entity tag said is about the response stored with the
// entity tag stored (RFC 9111, 4.3.4). A 304 without a tag does not disagree.
func ConfirmsTag(stored, said string) bool {
	if opaque, weak := strings.CutPrefix(said, "W/"); weak {
		return opaque == strings.TrimPrefix(stored, "W/")
	}
	return said == "" || said == stored
}

// Items yields the comma-separated items of a header's lines, trimmed. Commas
// in quoted strings do not separate.
func Items(lines []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for line != "" {
				end, quoted := 0, false
				for ; end < len(line) && (quoted || line[end] != ','); end++ {
					switch line[end] {
					case '"':
						quoted = !quoted
					case '\\':
						if quoted {
							end++
						}
					}
				}
				end = min(end, len(line))
				if item := strings.Trim(line[:end], " \t"); item != "" && !yield(item) {
					return
				}
				if end == len(line) {
					break
				}
				line = line[end+1:]
			}
		}
	}
}

// MaxSeconds bounds the seconds a header may name; more means that many.
const MaxSeconds = 1 << 31

// Seconds reads a delta-seconds value, quoted or not (RFC 9111, 1.2.2). ok is false for
// anything else.
func Seconds(text string) (d time.Duration, ok bool) {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > MaxSeconds {
		n = MaxSeconds
	}
	return time.Duration(n) * time.Second, true
}

// dates are the forms of an HTTP-date.
var dates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// Date reads an HTTP-date in one of its three forms (RFC 9110, 5.6.7), in capital letters or
// not (RFC 9111, 4.2). The name of the day may be any day's. ok is false for anything else.
func Date(text string) (t time.Time, ok bool) {
	for _, form := range dates {
		t, err := time.Parse(form, strings.ToUpper(text))
		_, want, _ := strings.Cut(t.Format(form), " ")
		_, got, _ := strings.Cut(text, " ")
		if err == nil && strings.EqualFold(got, want) { // Parse takes more spaces and fewer digits, too
			return t, true
		}
	}
	return time.Time{}, false
}

// Wait is the wait preference of the lines of Prefer (RFC 7240, 4.3): how long the
// client will wait for an answer. The first one counts; ok is false when there is
// none, or when it names no seconds.
func Wait(lines []string) (d time.Duration, ok bool) {
	for item := range Items(lines) {
		preference, _, _ := strings.Cut(item, ";")
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.Trim(name, " \t"), "wait") {
			return Seconds(strings.Trim(value, " \t"))
		}
	}
	return 0, false
}
