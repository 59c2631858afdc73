// Requests: which stored responses may answer a request, and what a write invalidates.

package httpcache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy/internal/aging"
	"understudy/kit/header"
)

// Request is a request without its body.
type Request struct {
	Method string
	URI    string      // the path and the query of the request
	Header http.Header // the header fields of the request, under their canonical names
}

// Decision says how a stored response may be used for a request.
type Decision struct {
	Answer        bool // whether the stored response may be used without asking upstream
	Refresh       bool // whether upstream must be asked in the background after Answer (RFC 5861, 3)
	AnswerIfDown  bool // whether the stored response may be used if upstream cannot be reached (RFC 9111, 4.2.4)
	AnswerIfError bool // whether the stored response may be used if upstream answers 500, 502, 503 or 504 (RFC 5861, 4)
	// FreshLeft is how long the response stays fresh. It is negative if the response is stale.
	FreshLeft time.Duration
}

// Decide returns how a stored response may be used for a request at a time (RFC 9111, 4). The response must be the
// variant that belongs to the request (see Variant).
func Decide(q *Request, r *Response, now time.Time) Decision {
	b, asked := r.Bounds(), q.directives()
	since := max(0, aging.Age(r.At, now))
	v := Decision{FreshLeft: b.FreshUntil - since}
	// the response may be for another visitor, so it is not used even during an outage
	if asked.has("no-cache") || !b.Explicit && q.isPersonal() {
		return v
	}
	within := func(name string) bool {
		n, ok := asked.seconds(name)
		return ok && -v.FreshLeft <= n
	}
	if !b.Strict {
		v.AnswerIfError = since <= b.ErrorUntil || within("stale-if-error")
		v.AnswerIfDown = since <= b.DownUntil || v.AnswerIfError
	}
	if most, ok := asked.seconds("max-age"); ok && r.Age(now) > most {
		return v
	}
	if least, ok := asked.seconds("min-fresh"); ok && v.FreshLeft < least {
		return v
	}
	switch {
	case b.Validate:
	case v.FreshLeft > 0:
		v.Answer = true
	case b.Strict:
	case asked.has("max-stale") && (asked["max-stale"] == "" || within("max-stale")):
		v.Answer = true
	case since <= b.RefreshUntil:
		v.Answer, v.Refresh = true, true
	}
	return v
}

// isPersonal reports whether a header field identifies the visitor. The response may depend on the visitor even if
// Vary does not say so.
func (q *Request) isPersonal() bool {
	for name := range q.Header {
		if header.IsSensitive(name) {
			return true
		}
	}
	return false
}

// directives returns the directives in Cache-Control. If the field is absent, it uses Pragma (RFC 9111, 5.4).
func (q *Request) directives() directives {
	if lines := q.Header["Cache-Control"]; len(lines) > 0 {
		return readDirectives(lines)
	}
	d := readDirectives(q.Header["Pragma"])
	if d.has("no-cache") {
		return directives{"no-cache": ""}
	}
	return nil
}

// MustAskUpstream reports whether the request accepts only a response that upstream has sent or confirmed since.
func (q *Request) MustAskUpstream() bool {
	d := q.directives()
	most, ok := d.seconds("max-age")
	return d.has("no-cache") || ok && most == 0
}

// IsOnlyIfCached reports whether the request accepts only a stored response (RFC 9111, 5.2.1.7).
func (q *Request) IsOnlyIfCached() bool { return q.directives().has("only-if-cached") }

// IsPartial reports whether the request has a condition or asks for a range. The response to such a request is not
// shared with other requests.
func (q *Request) IsPartial() bool {
	return slices.ContainsFunc(conditionFields, func(name string) bool { return len(q.Header[name]) > 0 })
}

// RemoveConditions returns a copy of a header without conditions and ranges.
func RemoveConditions(h http.Header) http.Header {
	plain := h.Clone()
	for _, name := range conditionFields {
		delete(plain, name)
	}
	return plain
}

var conditionFields = []string{"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range"}

// IsForOrigin reports whether the request has a condition that only upstream can evaluate (RFC 9111, 4.3.2).
func (q *Request) IsForOrigin() bool {
	return len(q.Header["If-Match"])+len(q.Header["If-Unmodified-Since"]) > 0
}

// Vary returns the names of the request header fields on which the response depends, in canonical form and sorted
// (RFC 9111, 4.1). ok is false for "*", which means that the response matches no other request.
func (r *Response) Vary() (fields []string, ok bool) {
	for name := range header.Items(r.Header["Vary"]) {
		if name == "*" {
			return nil, false
		}
		fields = append(fields, http.CanonicalHeaderKey(name))
	}
	slices.Sort(fields)
	return slices.Compact(fields), true
}

// Variant returns a name for the values that a request has in some header fields: requests with the same name may get
// the same stored response. It is "" without fields. Lines of the same field are joined, and spaces around commas are
// ignored. The order of languages and codings does not matter. The name is a hash, because a value may be secret.
func Variant(fields []string, h http.Header) string {
	if len(fields) == 0 {
		return ""
	}
	var text []byte
	for _, name := range fields {
		values := slices.Collect(header.Items(h[name]))
		if name == "Accept-Language" || name == "Accept-Encoding" {
			for i, value := range values {
				values[i] = strings.ToLower(strings.ReplaceAll(value, " ", ""))
			}
			slices.Sort(values)
		}
		text = fmt.Appendf(text, "%s %t %q\n", name, len(h[name]) > 0, strings.Join(values, ","))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// IsSafe reports whether requests with a method change nothing upstream (RFC 9110, 9.2.1). An unknown method counts
// as one that changes something.
func IsSafe(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY":
		return true
	}
	return false
}

// InvalidatedURIs returns the URIs, as path and query, whose stored responses an unsafe request invalidates (RFC
// 9111, 4.4). These are the request's own URI, and those in Location and Content-Location if they have the same host.
// hosts are the names of that host. A response with an error invalidates nothing.
func InvalidatedURIs(q *Request, r *Response, hosts ...string) []string {
	if IsSafe(q.Method) || r.Status < 200 || r.Status >= 400 {
		return nil
	}
	all := []string{q.URI}
	own, err := url.Parse(q.URI)
	if err != nil {
		return all
	}
	for _, name := range []string{"Location", "Content-Location"} {
		to, err := own.Parse(r.Header.Get(name))
		if err != nil || r.Header.Get(name) == "" || to.Host != "" && !slices.Contains(hosts, strings.ToLower(to.Host)) {
			continue
		}
		if uri := to.RequestURI(); !slices.Contains(all, uri) {
			all = append(all, uri)
		}
	}
	return all
}
