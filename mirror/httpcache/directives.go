// Directives: what Cache-Control and the fields like it say.

package httpcache

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy/kit/header"
)

// directives are names in lower case, with their values as they were written; "" for none.
// Of several of one name the first counts (RFC 9111, 4.2.1).
type directives map[string]string

// readDirectives reads Cache-Control (RFC 9111, 5.2). A value that is none stays: it is
// looked at where it counts.
func readDirectives(lines []string) directives {
	d := directives{}
	for item := range header.Items(lines) {
		name, value, _ := strings.Cut(item, "=")
		name = strings.ToLower(name)
		if _, said := d[name]; !said {
			d[name] = value
		}
	}
	return d
}

func (d directives) has(name string) bool {
	_, said := d[name]
	return said
}

// whole reports a directive that is not about some fields alone.
func (d directives) whole(name string) bool {
	value, said := d[name]
	return said && strings.Trim(value, `" `) == ""
}

// seconds is the number of a directive. One that is none is 0: what is not known counts as
// stale (RFC 9111, 4.2.1).
func (d directives) seconds(name string) (n time.Duration, said bool) {
	value, said := d[name]
	if !said {
		return 0, false
	}
	n, _ = header.Seconds(value)
	return n, true
}

// revalidates reports whether upstream forbids answers that are past fresh (RFC 9111, 4.2.4).
func (d directives) revalidates() bool {
	return d.has("must-revalidate") || d.has("proxy-revalidate") || d.has("s-maxage") || d.whole("no-cache")
}

// forbidsStoring reports whether upstream forbids that the answer is stored. must-understand
// takes that back (RFC 9111, 5.2.2.3).
func (d directives) forbidsStoring() bool { return d.has("no-store") && !d.has("must-understand") }

// stale reports whether upstream permits answers that are past fresh (RFC 5861).
func (d directives) stale() bool { return d.has("stale-while-revalidate") || d.has("stale-if-error") }

// readTargeted reads a targeted field (RFC 9213, 2.1), a dictionary of structured fields
// (RFC 9651, 3.2) whose members are flags or whole numbers. ok is false for one that cannot
// be read, or that says nothing: then Cache-Control counts.
func readTargeted(lines []string) (d directives, ok bool) {
	d = directives{}
	for item := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		item, _, _ = strings.Cut(strings.Trim(item, " \t"), ";") // parameters mean nothing here
		name, value, valued := strings.Cut(item, "=")
		if !isKey(name) {
			return nil, false
		}
		switch {
		case !valued || value == "?1":
			d[name] = ""
		case value == "?0":
			delete(d, name)
		case value == "" || strings.ContainsAny(value, ` ()\`):
			return nil, false
		default:
			if _, err := strconv.ParseInt(value, 10, 64); err == nil {
				d[name] = value
			} // a member of another type counts as if it were not there
		}
	}
	return d, len(d) > 0
}

// isKey reports whether a text is the key of a structured field.
func isKey(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c == '*'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || strings.IndexByte("_-.", c) >= 0)) {
			return false
		}
	}
	return text != ""
}

// ofConnection are the fields of one connection (RFC 9110, 7.6.1), and those between a client
// and a proxy (11.7).
var ofConnection = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings"}

// EndToEnd is a header that may be passed on: without the fields of the connection and those
// that Connection names. The header given is not changed.
func EndToEnd(h http.Header) http.Header {
	passed := h.Clone()
	if passed == nil {
		passed = http.Header{}
	}
	for name := range header.Items(h["Connection"]) {
		delete(passed, http.CanonicalHeaderKey(name))
	}
	for _, name := range ofConnection {
		delete(passed, name)
	}
	return passed
}

// seconds writes a duration as a header does.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
