// Directives: the names and values in Cache-Control and similar header fields.

package httpcache

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy/kit/header"
)

// directives maps the name of each directive, in lower case, to its value as written, or "" if it has none. If a name
// occurs several times, it has the first value (RFC 9111, 4.2.1).
type directives map[string]string

// readDirectives parses Cache-Control (RFC 9111, 5.2). It keeps values that are not valid; the code that uses a value
// checks it.
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

// hasWhole reports whether a directive is present and has no list of header fields to which it is limited.
func (d directives) hasWhole(name string) bool {
	value, said := d[name]
	return said && strings.Trim(value, `" `) == ""
}

// seconds returns the value of a directive as a number of seconds. A value that is not valid counts as 0, so that the
// response is stale (RFC 9111, 4.2.1). said is false if the directive is absent.
func (d directives) seconds(name string) (n time.Duration, said bool) {
	value, said := d[name]
	if !said {
		return 0, false
	}
	n, _ = header.Seconds(value)
	return n, true
}

// mustRevalidate reports whether upstream forbids the use of stale responses (RFC 9111, 4.2.4).
func (d directives) mustRevalidate() bool {
	return d.has("must-revalidate") || d.has("proxy-revalidate") || d.has("s-maxage") || d.hasWhole("no-cache")
}

// isNoStore reports whether upstream forbids storing the response. If must-understand is present, no-store has no
// effect (RFC 9111, 5.2.2.3).
func (d directives) isNoStore() bool { return d.has("no-store") && !d.has("must-understand") }

// readTargeted parses a cache control field that is targeted at certain caches (RFC 9213, 2.1). It is a dictionary of
// structured fields (RFC 9651, 3.2) whose members are flags or integers. ok is false if the field is not valid or is
// empty; Cache-Control then applies.
func readTargeted(lines []string) (d directives, ok bool) {
	d = directives{}
	for item := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		item, _, _ = strings.Cut(strings.Trim(item, " \t"), ";") // parameters of a member have no meaning in this field
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
			} // a member with a value of another type is ignored
		}
	}
	return d, len(d) > 0
}

// isKey reports whether a text is a valid key in a structured field.
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

// hopByHop are the header fields that concern only one connection (RFC 9110, 7.6.1), and those between a client and a
// proxy (11.7).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings"}

// EndToEnd returns a copy of a header without the fields in hopByHop and the fields that Connection names.
func EndToEnd(h http.Header) http.Header {
	passed := h.Clone()
	if passed == nil {
		passed = http.Header{}
	}
	for name := range header.Items(h["Connection"]) {
		delete(passed, http.CanonicalHeaderKey(name))
	}
	for _, name := range hopByHop {
		delete(passed, name)
	}
	return passed
}
