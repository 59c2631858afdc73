// Requests: which stored answers a request accepts, and what a write invalidates.

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

	"understudy/kit/header"
)

// Request is a request without its body.
type Request struct {
	Method string
	URI    string      // the path and query of the request
	Header http.Header // the header fields of the request, with canonical names
}

// Decision says how a stored answer may be used.
type Decision struct {
	Answer        bool // the stored response may be answered without asking upstream
	Refresh       bool // whether Answer is followed by a request to upstream in the background (RFC 5861, 3)
	AnswerIfDown  bool // it may be answered if upstream cannot be reached (RFC 9111, 4.2.4)
	AnswerIfError bool // it may be answered if upstream responds with 500, 502, 503 or 504 (RFC 5861, 4)
	// FreshLeft is how long the answer remains fresh; negative if it is stale.
	FreshLeft time.Duration
}

// Decide returns how a stored answer may be used for a request at a time (RFC 9111, 4). The caller has chosen
// the right variant (Variant).
func Decide(q *Request, r *Response, now time.Time) Decision {
	b, asked := r.Bounds(), q.directives()
	since := max(0, now.Sub(r.At))
	v := Decision{FreshLeft: b.FreshUntil - since}
	if asked.has("no-cache") || !b.Explicit && q.isPersonal() { // the answer may be another visitor's, even during an outage
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

// isPersonal reports whether a field identifies the visitor. Answers may depend on it even if Vary does not
// say so.
func (q *Request) isPersonal() bool {
	for name := range q.Header {
		if header.IsSensitive(name) {
			return true
		}
	}
	return false
}

// directives returns the directives of Cache-Control. Without it, Pragma counts (RFC 9111, 5.4).
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

// MustAskUpstream reports whether the request demands an answer that upstream has just given or confirmed.
func (q *Request) MustAskUpstream() bool {
	d := q.directives()
	most, ok := d.seconds("max-age")
	return d.has("no-cache") || ok && most == 0
}

// IsOnlyIfCached reports whether the request accepts only a stored answer (RFC 9111, 5.2.1.7).
func (q *Request) IsOnlyIfCached() bool { return q.directives().has("only-if-cached") }

// IsPartial reports whether the request has a condition or asks for a range. Its answer is not shared with
// other requests.
func (q *Request) IsPartial() bool {
	return slices.ContainsFunc(conditionFields, func(name string) bool { return len(q.Header[name]) > 0 })
}

// RemoveConditions returns a copy of a header without the fields that make a request partial.
func RemoveConditions(h http.Header) http.Header {
	plain := h.Clone()
	for _, name := range conditionFields {
		delete(plain, name)
	}
	return plain
}

var conditionFields = []string{"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range"}

// IsForOrigin reports whether the request has a condition that only upstream can check (RFC 9111, 4.3.2).
func (q *Request) IsForOrigin() bool {
	return len(q.Header["If-Match"])+len(q.Header["If-Unmodified-Since"]) > 0
}

// Vary returns the request fields on which the answer depends, with canonical names and sorted (RFC 9111,
// 4.1). ok is false for "*": then the answer matches no other request.
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

// Variant returns the name of the variant that a request asks for by some of its fields, or "" without
// fields. Lines of one field are joined, and space around commas is ignored. Languages and codings are lists
// without order. The name is a digest, because a field may be secret.
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

// IsSafe reports whether a method changes nothing upstream (RFC 9110, 9.2.1). An unknown method may change
// something.
func IsSafe(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY":
		return true
	}
	return false
}

// InvalidatedURIs returns the URIs, as paths with queries, that an unsafe request invalidates (RFC 9111,
// 4.4). They are its own URI and those in Location and Content-Location on the same host. hosts are the names
// of that host. An error response invalidates nothing.
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
