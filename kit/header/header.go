// Package header reads the header fields of HTTP requests.
package header

import (
	"strconv"
	"strings"
	"time"
)

// MatchTag reports whether a 304 response confirms a stored response (RFC 9111, 4.3.4). stored and said are the entity
// tags of the stored response and of the 304 response. A 304 response without a tag confirms every stored response.
func MatchTag(stored, said string) bool {
	if opaque, weak := strings.CutPrefix(said, "W/"); weak {
		return opaque == strings.TrimPrefix(stored, "W/")
	}
	return said == "" || said == stored
}

// Items yields the comma-separated items of a header's lines, trimmed. Commas inside quoted strings do not
// separate items.
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

// Weight returns an item of a header such as Accept without its parameters, and the item's weight in thousandths (RFC 9110,
// 12.4.2). The weight is 1000 if the item has no parameter q, and 0 if that is malformed.
func Weight(item string) (value string, weight int) {
	value, params, _ := strings.Cut(item, ";")
	value = strings.Trim(value, " \t")
	for param := range strings.SplitSeq(params, ";") {
		name, q, ok := strings.Cut(strings.Trim(param, " \t"), "=")
		if !ok || !strings.EqualFold(name, "q") {
			continue
		}
		whole, fraction, _ := strings.Cut(q, ".")
		if whole != "0" && whole != "1" || len(fraction) > 3 {
			return value, 0
		}
		n, err := strconv.Atoi(whole + (fraction + "000")[:3])
		if err != nil || n < 0 || n > 1000 || strings.ContainsAny(fraction, "+-") {
			return value, 0
		}
		return value, n
	}
	return value, 1000
}

// MaxSeconds is the maximum of a duration in a header, in seconds. A larger number is reduced to it.
const MaxSeconds = 1 << 31

// Seconds parses a delta-seconds value, quoted or not (RFC 9111, 1.2.2). ok is false for any other text.
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

// dateFormats are the three formats of an HTTP-date.
var dateFormats = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// Date parses an HTTP-date in one of its three formats (RFC 9110, 5.6.7), in any letter case (RFC 9111, 4.2).
// The name of the weekday is not checked. ok is false for any other text.
func Date(text string) (t time.Time, ok bool) {
	for _, form := range dateFormats {
		t, err := time.Parse(form, strings.ToUpper(text))
		_, want, _ := strings.Cut(t.Format(form), " ")
		_, got, _ := strings.Cut(text, " ")
		if err == nil && strings.EqualFold(got, want) { // compared with the text, because time.Parse also accepts extra spaces and fewer digits
			return t, true
		}
	}
	return time.Time{}, false
}

// Wait returns the wait preference of the lines of a Prefer header (RFC 7240, 4.3): how long the client is
// willing to wait for a response. The first wait preference counts. ok is false if there is none, or if its
// value is not a number of seconds.
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
