// Responses: the header of an answer, its age and its lifetime.

// Package httpcache makes the decisions of a shared HTTP cache: what may be stored, how long it is fresh,
// which requests it may answer, and what a write invalidates (RFC 9111, 5861, 9213). It stores nothing, sends
// nothing and reads no clock.
package httpcache

import (
	"net/http"
	"strings"
	"time"

	"understudy/kit/header"
)

// Response is an answer of upstream without its body.
type Response struct {
	Status int
	Header http.Header // the end-to-end header fields, with canonical names
	At     time.Time   // when the header was received
	// InitialAge is the age at that time (RFC 9111, 4.2.3: corrected_initial_age), in whole seconds.
	InitialAge time.Duration
}

// NewResponse returns an answer whose request was sent at asked and whose header was received at at. The
// result has a Date (RFC 9110, 6.6.1) and no fields of the connection. The given header is not changed.
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
		r.Header["Age"] = []string{formatSeconds(r.InitialAge)}
	}
	return r
}

// parseAge returns the Age of a header. Of several values the first counts; an invalid value is ignored (RFC
// 9111, 5.1). Parameters of a structured field are ignored (RFC 9651, 3.3).
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

// Age returns how old the answer is (RFC 9111, 4.2.3).
func (r *Response) Age(now time.Time) time.Duration {
	return r.InitialAge + max(0, now.Sub(r.At))
}

// directives returns the directives for this cache: those of a valid targeted field (RFC 9213, 2.2),
// otherwise those of Cache-Control.
func (r *Response) directives() (d directives, targeted bool) {
	if lines := r.Header["Cdn-Cache-Control"]; len(lines) > 0 {
		if d, ok := readTargeted(lines); ok {
			return d, true
		}
	}
	return readDirectives(r.Header["Cache-Control"]), false
}

// heuristicStatuses are the statuses whose answers may be stored without a stated lifetime (RFC 9110, 15.1).
// 206 is missing because parts are not stored.
var heuristicStatuses = map[int]bool{
	200: true, 203: true, 204: true, 300: true, 301: true, 308: true, 404: true, 405: true, 410: true, 414: true, 501: true,
}

// maxHeuristicLife is the maximum lifetime of an answer without a stated one.
const maxHeuristicLife = 24 * time.Hour

// Lifetime returns how long the answer is fresh after upstream created it (RFC 9111, 4.2.1). explicit says
// that upstream stated the lifetime. Otherwise it is a tenth of the time since the last change (4.2.2), at
// most a day.
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

// hasValidator reports whether upstream can be asked if the answer is still valid (RFC 9110, 8.8).
func (r *Response) hasValidator() bool {
	_, dated := header.Date(r.Header.Get("Last-Modified"))
	return r.Header.Get("Etag") != "" || dated
}

// CanStore reports whether the answer to a request may be stored for other requests (RFC 9111, 3). It must be
// a complete answer to a GET with a lifetime or a validator. An answer to a request with Authorization, or
// with a Cookie if the answer sets one, needs upstream's permission (3.5). An answer that sets a cookie needs
// public. An answer to a personal request also needs a stated lifetime or public.
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
		return d > r.InitialAge || r.hasValidator() || said.canServeStale() // the stored response could otherwise never be used
	}
	return r.hasValidator() && (heuristicStatuses[r.Status] || said.has("public")) && len(r.Header["Set-Cookie"]) == 0
}

// isAnswerToGet reports whether the answer to a POST is also the answer to a GET (RFC 9110, 9.3.3).
func (r *Response) isAnswerToGet(q *Request, explicit bool) bool {
	return q.Method == http.MethodPost && q.URI != "" && r.Header.Get("Content-Location") == q.URI && explicit && r.Status == http.StatusOK
}

// isKnownStatus reports whether the caching rules of a status are known (RFC 9111, 5.2.2.3).
func isKnownStatus(status int) bool {
	return heuristicStatuses[status] || http.StatusText(status) != ""
}

// PrivateFields returns the fields that only the requester may get without asking upstream (RFC 9111, 5.2.2.4
// and 5.2.2.7). They are not stored.
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

// StoredHeader returns the header to store.
func (r *Response) StoredHeader() http.Header {
	kept := r.Header.Clone()
	for name := range r.PrivateFields() {
		delete(kept, name)
	}
	delete(kept, "Age")
	return kept
}

// Update returns the stored answer after a 304, or the answer to a HEAD, confirmed it. The new fields replace
// the stored ones, except those that describe the body (RFC 9111, 3.2).
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

// bodyFields are the fields that describe the body and that no other answer may change.
var bodyFields = map[string]bool{"Content-Encoding": true, "Content-Length": true, "Content-Md5": true, "Content-Range": true, "Etag": true,
	"Digest": true, "Content-Digest": true, "Repr-Digest": true}

// MatchHead reports whether the answer to a HEAD may describe the stored body. known reports whether a
// validator proves it (RFC 9111, 4.3.5).
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

// IsSelectedBy reports whether a 304 refers to this stored answer: its ETag, or without an ETag its
// Last-Modified, is the stored one (RFC 9111, 4.3.4). Otherwise upstream must be asked again without
// conditions.
func (r *Response) IsSelectedBy(confirmation *Response) bool {
	if tag := confirmation.Header.Get("Etag"); tag != "" {
		return header.MatchTag(r.Header.Get("Etag"), tag)
	}
	modified := confirmation.Header.Get("Last-Modified")
	return modified == "" || modified == r.Header.Get("Last-Modified")
}

// Conditions returns the fields that ask upstream whether the answer is still valid (RFC 9111, 4.3.1). It
// returns nil if the answer has no validator.
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
