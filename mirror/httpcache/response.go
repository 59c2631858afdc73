// Responses: the age and the lifetime that follow from the header of a response.

// Package httpcache decides for a shared HTTP cache which responses may be stored, how long they are fresh, which requests they
// may answer, and what a write invalidates (RFC 9111, 5861, 9213). It stores nothing, sends nothing and reads no clock.
package httpcache

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy/internal/aging"
	"understudy/kit/header"
)

// Response is a response of upstream without its body.
type Response struct {
	Status int
	Header http.Header // the end-to-end header fields, under their canonical names
	At     time.Time   // when the header was received
	// InitialAge is the age of the response at the time At, in whole seconds (RFC 9111, 4.2.3: corrected_initial_age).
	InitialAge time.Duration
}

// NewResponse returns a response. asked is when its request was sent, and at is when its header was received. The
// result always has a Date (RFC 9110, 6.6.1) and has only end-to-end fields. The given header is not changed.
func NewResponse(status int, h http.Header, asked, at time.Time) Response {
	r := Response{Status: status, Header: EndToEnd(h), At: at}
	date, ok := header.Date(r.Header.Get("Date"))
	if !ok {
		date = at
		r.Header["Date"] = []string{at.UTC().Format(http.TimeFormat)}
	}
	apparent := max(0, at.Sub(date).Truncate(time.Second))
	said, _ := parseAge(r.Header)
	r.InitialAge = max(apparent, said+at.Sub(asked).Truncate(time.Second))
	delete(r.Header, "Age")
	if r.InitialAge > 0 {
		r.Header["Age"] = []string{strconv.FormatInt(int64(r.InitialAge/time.Second), 10)}
	}
	return r
}

// parseAge returns the value of the header field Age. It uses the first value if there are several, and ignores a
// value that is not valid (RFC 9111, 5.1). It ignores parameters of a structured field (RFC 9651, 3.3).
func parseAge(h http.Header) (age time.Duration, said bool) {
	for item := range header.Items(h["Age"]) {
		number, _, _ := strings.Cut(item, ";")
		if strings.HasPrefix(number, `"`) {
			break
		}
		return header.Seconds(number)
	}
	return 0, false
}

// Age returns how old the response is (RFC 9111, 4.2.3).
func (r *Response) Age(now time.Time) time.Duration {
	return r.InitialAge + max(0, aging.Age(r.At, now))
}

// directives returns the directives that apply to this cache. They come from a valid targeted field (RFC 9213, 2.2),
// otherwise from Cache-Control.
func (r *Response) directives() (d directives, targeted bool) {
	if lines := r.Header["Cdn-Cache-Control"]; len(lines) > 0 {
		if d, ok := readTargeted(lines); ok {
			return d, true
		}
	}
	return readDirectives(r.Header["Cache-Control"]), false
}

// heuristicStatuses are the statuses whose responses may be stored even if upstream states no lifetime (RFC 9110,
// 15.1). 206 is missing, because parts of a response are not stored.
var heuristicStatuses = map[int]bool{
	200: true, 203: true, 204: true, 300: true, 301: true, 308: true, 404: true, 405: true, 410: true, 414: true, 501: true,
}

// maxHeuristicLife is the maximum lifetime of a response for which upstream states none.
const maxHeuristicLife = 24 * time.Hour

// Lifetime returns how long the response is fresh after upstream has created it (RFC 9111, 4.2.1). explicit is true if upstream
// stated the lifetime. Otherwise it is a tenth of the time since the last change (4.2.2), and at most a day.
func (r *Response) Lifetime() (d time.Duration, explicit bool) {
	said, targeted := r.directives()
	for _, name := range []string{"s-maxage", "max-age"} {
		if d, ok := said.seconds(name); ok {
			return d, true
		}
	}
	date, ok := header.Date(r.Header.Get("Date"))
	if !ok {
		date = r.At
	}
	if lines := r.Header["Expires"]; len(lines) > 0 && !targeted {
		expires, ok := header.Date(lines[0])
		if !ok || len(lines) > 1 {
			return 0, true
		}
		return max(0, expires.Sub(date)), true
	}
	changed, ok := header.Date(r.Header.Get("Last-Modified"))
	if !ok || !heuristicStatuses[r.Status] && !said.has("public") {
		return 0, false
	}
	return min(max(0, date.Sub(changed)/10), maxHeuristicLife), false
}

// hasValidator reports whether upstream can be asked if the response is still valid (RFC 9110, 8.8).
func (r *Response) hasValidator() bool {
	_, dated := header.Date(r.Header.Get("Last-Modified"))
	return r.Header.Get("Etag") != "" || dated
}

// CanStore reports whether the response to a request may be stored for other requests (RFC 9111, 3). It must be a
// complete response to a GET, with a lifetime or a validator. If the request has Authorization, or has a Cookie and
// the response sets one, upstream must permit it (3.5). If the response sets a cookie, it must be public. If the
// request identifies a visitor, the response must have a stated lifetime or be public.
func (r *Response) CanStore(q *Request) bool {
	said, _ := r.directives()
	asked := readDirectives(q.Header["Cache-Control"])
	_, explicit := r.Lifetime()
	_, vary := r.Vary()
	shared := said.has("public") || said.has("must-revalidate") || said.has("s-maxage")
	switch {
	case q.Method != http.MethodGet && !r.isAnswerToGet(q, explicit), asked.has("no-store"):
		return false
	case r.Status < 200 || r.Status == http.StatusPartialContent || r.Status == http.StatusNotModified:
		return false
	case said.has("must-understand") && !isKnownStatus(r.Status):
		return false
	case said.isNoStore(), said.hasWhole("private"), !vary:
		return false
	case !shared && (len(q.Header["Authorization"]) > 0 || len(q.Header["Cookie"]) > 0 && len(r.Header["Set-Cookie"]) > 0):
		return false
	case len(r.Header["Set-Cookie"]) > 0 && !said.has("public") && r.PrivateFields()["Set-Cookie"] == nil:
		return false
	case q.isPersonal() && !explicit && !said.has("public"):
		return false
	case said.hasWhole("no-cache"):
		return r.hasValidator()
	case explicit:
		d, _ := r.Lifetime()
		// otherwise the stored response could never be used
		return d > r.InitialAge || r.hasValidator() || said.has("stale-while-revalidate") || said.has("stale-if-error")
	}
	return r.hasValidator() && (heuristicStatuses[r.Status] || said.has("public")) && len(r.Header["Set-Cookie"]) == 0
}

// isAnswerToGet reports whether the response to a POST may be used for a GET of the same URI (RFC 9110, 9.3.3).
func (r *Response) isAnswerToGet(q *Request, explicit bool) bool {
	return q.Method == http.MethodPost && q.URI != "" && r.Header.Get("Content-Location") == q.URI && explicit && r.Status == http.StatusOK
}

// isKnownStatus reports whether this cache knows the caching rules of a status (RFC 9111, 5.2.2.3).
func isKnownStatus(status int) bool {
	return heuristicStatuses[status] || http.StatusText(status) != ""
}

// PrivateFields returns the header fields that are only for the client that sent the request (RFC 9111, 5.2.2.4 and
// 5.2.2.7). They are not stored.
func (r *Response) PrivateFields() http.Header {
	said, _ := r.directives()
	own := http.Header{}
	for _, name := range []string{"no-cache", "private"} {
		for field := range header.Items([]string{strings.Trim(said[name], `"`)}) {
			field = http.CanonicalHeaderKey(field)
			if values, has := r.Header[field]; has {
				own[field] = values
			}
		}
	}
	return own
}

// StoredHeader returns the header fields that are stored with the response.
func (r *Response) StoredHeader() http.Header {
	kept := r.Header.Clone()
	for name := range r.PrivateFields() {
		delete(kept, name)
	}
	delete(kept, "Age")
	return kept
}

// Update returns the stored response after upstream has confirmed it by a 304, or by the response to a HEAD. The new
// header fields replace the stored ones, except those that describe the body (RFC 9111, 3.2).
func (r *Response) Update(by *Response) Response {
	now := Response{Status: r.Status, Header: r.Header.Clone(), At: by.At, InitialAge: by.InitialAge}
	for name, values := range by.Header {
		if !bodyFields[name] {
			now.Header[name] = values
		}
	}
	delete(now.Header, "Age")
	return now
}

// bodyFields are the header fields that describe the body. Update does not change them.
var bodyFields = map[string]bool{"Content-Encoding": true, "Content-Length": true, "Content-Md5": true, "Content-Range": true, "Etag": true,
	"Digest": true, "Content-Digest": true, "Repr-Digest": true}

// MatchHead reports whether the response to a HEAD may describe the stored response. known is true if a validator
// proves it (RFC 9111, 4.3.5). length is the length of the stored body.
func (r *Response) MatchHead(head *Response, length string) (same, known bool) {
	for _, name := range []string{"Etag", "Last-Modified"} {
		switch said := head.Header.Get(name); said {
		case "":
		case r.Header.Get(name):
			known = true
		default:
			return false, false
		}
	}
	said := head.Header.Get("Content-Length")
	return head.Status == r.Status && (said == "" || said == length), known
}

// IsSelectedBy reports whether a 304 confirms this stored response: their ETags are the same, or without an ETag
// their Last-Modified (RFC 9111, 4.3.4). If not, upstream must be asked again without conditions.
func (r *Response) IsSelectedBy(confirmation *Response) bool {
	if tag := confirmation.Header.Get("Etag"); tag != "" {
		return header.MatchTag(r.Header.Get("Etag"), tag)
	}
	modified := confirmation.Header.Get("Last-Modified")
	return modified == "" || modified == r.Header.Get("Last-Modified")
}

// Conditions returns the request header fields that ask upstream whether the response is still valid (RFC 9111,
// 4.3.1). It returns nil if the response has no validator.
func (r *Response) Conditions() http.Header {
	c := http.Header{}
	if tag := r.Header.Get("Etag"); tag != "" {
		c["If-None-Match"] = []string{tag}
	}
	if _, dated := header.Date(r.Header.Get("Last-Modified")); dated {
		c["If-Modified-Since"] = r.Header["Last-Modified"][:1]
	}
	if len(c) == 0 {
		return nil
	}
	return c
}
