// Response: the header of one answer, how old it is and how long it is fresh.

// Package httpcache has the decisions of a shared HTTP cache: what it may store, how long
// that is fresh, what it may answer a request with, and what a write makes invalid (RFC
// 9111, 5861, 9213). It keeps nothing, sends nothing and reads no clock.
package httpcache

import (
	"net/http"
	"strings"
	"time"

	"understudy/kit/header"
)

// Response is an answer of upstream, less its body.
type Response struct {
	Status int
	Header http.Header // end to end, in canonical form
	At     time.Time   // when its header came
	// InitialAge is how old it was then (RFC 9111, 4.2.3: corrected_initial_age), in whole
	// seconds.
	InitialAge time.Duration
}

// Received is an answer whose request was sent at asked and whose header came at at. It has
// a Date (RFC 9110, 6.6.1) and no field of the connection. The header given is not changed.
func Received(status int, h http.Header, asked, at time.Time) Response {
	r := Response{Status: status, Header: EndToEnd(h), At: at}
	date, ok := header.Date(r.Header.Get("Date"))
	if !ok {
		date = at
		r.Header["Date"] = []string{at.UTC().Format(http.TimeFormat)}
	}
	apparent := max(0, at.Sub(date).Truncate(time.Second))
	said, _ := ageOf(r.Header)
	r.InitialAge = max(apparent, said+at.Sub(asked).Truncate(time.Second))
	delete(r.Header, "Age")
	if r.InitialAge > 0 {
		r.Header["Age"] = []string{seconds(r.InitialAge)}
	}
	return r
}

// ageOf is the Age of a header. Of several the first counts, and one that is no whole number
// says nothing (RFC 9111, 5.1). Parameters, which a structured field may have (RFC 9651,
// 3.3), mean nothing here.
func ageOf(h http.Header) (age time.Duration, said bool) {
	for item := range header.Items(h["Age"]) {
		number, _, _ := strings.Cut(item, ";")
		if strings.HasPrefix(number, `"`) {
			break
		}
		return header.Seconds(number)
	}
	return 0, false
}

// Age is how old the answer is (RFC 9111, 4.2.3).
func (r *Response) Age(now time.Time) time.Duration {
	return r.InitialAge + max(0, now.Sub(r.At))
}

// directives are those for this cache: of the first targeted field that can be read (RFC
// 9213, 2.2), else of Cache-Control.
func (r *Response) directives() (d directives, targeted bool) {
	if lines := r.Header["Cdn-Cache-Control"]; len(lines) > 0 {
		if d, ok := readTargeted(lines); ok {
			return d, true
		}
	}
	return readDirectives(r.Header["Cache-Control"]), false
}

// heuristic are the statuses whose answers may be stored without a word of upstream (RFC
// 9110, 15.1); 206 is not, as parts are not stored.
var heuristic = map[int]bool{
	200: true, 203: true, 204: true, 300: true, 301: true, 308: true, 404: true, 405: true, 410: true, 414: true, 501: true,
}

// mostHeuristic bounds what is taken to be fresh without a word of upstream.
const mostHeuristic = 24 * time.Hour

// Lifetime is how long the answer is fresh, from when upstream made it (RFC 9111, 4.2.1).
// explicit says that upstream said so; else it is a tenth of the time since the last change
// (4.2.2), at most a day.
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
	if !ok || !heuristic[r.Status] && !said.has("public") {
		return 0, false
	}
	return min(max(0, date.Sub(changed)/10), mostHeuristic), false
}

// validator reports whether upstream can be asked if the answer is still right (RFC 9110,
// 8.8).
func (r *Response) validator() bool {
	_, dated := header.Date(r.Header.Get("Last-Modified"))
	return r.Header.Get("Etag") != "" || dated
}

// Storable reports whether the answer to a request may be stored for others (RFC 9111, 3):
// a whole answer to a GET, whose freshness upstream says or which it can be asked about.
// What came to a request with Authorization, or with a Cookie where the answer sets one, is
// for its sender alone unless upstream says that it is not (3.5). A cookie that is set is for
// others with public alone; without a word of freshness what a visitor sent is not shared.
func (r *Response) Storable(q *Request) bool {
	said, _ := r.directives()
	asked := readDirectives(q.Header["Cache-Control"])
	_, explicit := r.Lifetime()
	_, vary := r.Vary()
	shared := said.has("public") || said.has("must-revalidate") || said.has("s-maxage")
	switch {
	case q.Method != http.MethodGet && !r.asGet(q, explicit), asked.has("no-store"):
		return false
	case r.Status < 200 || r.Status == http.StatusPartialContent || r.Status == http.StatusNotModified:
		return false
	case said.has("must-understand") && !understood(r.Status):
		return false
	case said.forbidsStoring(), said.whole("private"), !vary:
		return false
	case !shared && (len(q.Header["Authorization"]) > 0 || len(q.Header["Cookie"]) > 0 && len(r.Header["Set-Cookie"]) > 0):
		return false
	case len(r.Header["Set-Cookie"]) > 0 && !said.has("public") && r.Own()["Set-Cookie"] == nil:
		return false
	case q.personal() && !explicit && !said.has("public"):
		return false
	case said.whole("no-cache"):
		return r.validator()
	case explicit:
		d, _ := r.Lifetime()
		return d > r.InitialAge || r.validator() || said.stale() // else it could never be used
	}
	return r.validator() && (heuristic[r.Status] || said.has("public")) && len(r.Header["Set-Cookie"]) == 0
}

// asGet reports whether the answer to a POST is what a GET would get (RFC 9110, 9.3.3).
func (r *Response) asGet(q *Request, explicit bool) bool {
	return q.Method == http.MethodPost && q.URI != "" && r.Header.Get("Content-Location") == q.URI && explicit && r.Status == http.StatusOK
}

// understood reports whether the caching rules of a status are known (RFC 9111, 5.2.2.3).
func understood(status int) bool {
	return heuristic[status] || http.StatusText(status) != ""
}

// Own are the fields that upstream lets nobody else have without asking it (RFC 9111, 5.2.2.4
// and 5.2.2.7): who asked gets them, and they are not stored.
func (r *Response) Own() http.Header {
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

// Kept is the header to store.
func (r *Response) Kept() http.Header {
	kept := r.Header.Clone()
	for name := range r.Own() {
		delete(kept, name)
	}
	delete(kept, "Age")
	return kept
}

// Update is the stored answer after upstream said that it is still right: fields of the 304,
// or of the answer to a HEAD, take the place of stored ones, but for those that describe the
// body (RFC 9111, 3.2).
func (r *Response) Update(by *Response) Response {
	now := Response{Status: r.Status, Header: r.Header.Clone(), At: by.At, InitialAge: by.InitialAge}
	for name, values := range by.Header {
		if !ofBody[name] {
			now.Header[name] = values
		}
	}
	delete(now.Header, "Age")
	return now
}

// ofBody are the fields that no other answer may change.
var ofBody = map[string]bool{"Content-Encoding": true, "Content-Length": true, "Content-Md5": true, "Content-Range": true, "Etag": true,
	"Digest": true, "Content-Digest": true, "Repr-Digest": true}

// SameAs reports whether the answer to a HEAD may be about the stored body, and whether a
// validator says so (RFC 9111, 4.3.5).
func (r *Response) SameAs(head *Response, length string) (same, known bool) {
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

// IsSelectedBy reports whether a 304 is about this stored answer: its ETag, or without one its
// Last-Modified, is the stored one (RFC 9111, 4.3.4). Where it is not, upstream has to be asked
// again without conditions.
func (r *Response) IsSelectedBy(confirmation *Response) bool {
	if tag := confirmation.Header.Get("Etag"); tag != "" {
		return header.MatchTag(r.Header.Get("Etag"), tag)
	}
	modified := confirmation.Header.Get("Last-Modified")
	return modified == "" || modified == r.Header.Get("Last-Modified")
}

// Conditions are the fields that ask upstream whether the answer is still right (RFC 9111,
// 4.3.1); nil where it has no validator.
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
