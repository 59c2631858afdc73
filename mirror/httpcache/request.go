// Request: what may be answered from what is stored, and what a write makes invalid.

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

// Request is a request, less its body.
type Request struct {
	Method string
	URI    string      // its path and query
	Header http.Header // in canonical form
}

// Decision says what may be done with a stored answer.
type Decision struct {
	Answer  bool // it may be given without asking upstream
	Refresh bool // with Answer: upstream is to be asked behind it (RFC 5861, 3)
	Down    bool // it may be given when upstream cannot be reached (RFC 9111, 4.2.4)
	Error   bool // it may be given when upstream answers 500, 502, 503 or 504 (RFC 5861, 4)
	// Left is how long the answer is fresh still; negative: past fresh by that much.
	Left time.Duration
}

// Decide says what may be done with a stored answer to a request at a time (RFC 9111, 4). The
// variant is taken to be right (Variant).
func Decide(q *Request, r *Response, now time.Time) Decision {
	b, asked := r.Bounds(), q.directives()
	since := max(0, now.Sub(r.At))
	v := Decision{Left: b.Fresh - since}
	if asked.has("no-cache") || !b.Explicit && q.personal() { // it may be another visitor's answer, also in an outage
		return v
	}
	within := func(name string) bool {
		n, ok := asked.seconds(name)
		return ok && -v.Left <= n
	}
	if !b.Strict {
		v.Error = since <= b.Error || within("stale-if-error")
		v.Down = since <= b.Down || v.Error
	}
	if most, ok := asked.seconds("max-age"); ok && r.Age(now) > most {
		return v
	}
	if least, ok := asked.seconds("min-fresh"); ok && v.Left < least {
		return v
	}
	switch {
	case b.Validate:
	case v.Left > 0:
		v.Answer = true
	case b.Strict:
	case asked.has("max-stale") && (asked["max-stale"] == "" || within("max-stale")):
		v.Answer = true
	case since <= b.Behind:
		v.Answer, v.Refresh = true, true
	}
	return v
}

// personal reports a field that tells one visitor from another, on which answers may depend
// though nothing says so.
func (q *Request) personal() bool {
	for name := range q.Header {
		if header.IsSensitive(name) {
			return true
		}
	}
	return false
}

// directives are those of Cache-Control; Pragma counts without it (RFC 9111, 5.4).
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

// Forces reports whether the request wants an answer that upstream has given or confirmed
// just now.
func (q *Request) Forces() bool {
	d := q.directives()
	most, ok := d.seconds("max-age")
	return d.has("no-cache") || ok && most == 0
}

// OnlyIfCached reports whether the request wants what is stored or nothing (RFC 9111,
// 5.2.1.7).
func (q *Request) OnlyIfCached() bool { return q.directives().has("only-if-cached") }

// Partial reports whether the request asks for less than all, or for an answer that depends
// on what its sender has: such a request is not shared, and not answered for another.
func (q *Request) Partial() bool {
	return slices.ContainsFunc(conditions, func(name string) bool { return len(q.Header[name]) > 0 })
}

// Unconditional is a header without the fields of Partial.
func Unconditional(h http.Header) http.Header {
	plain := h.Clone()
	for _, name := range conditions {
		delete(plain, name)
	}
	return plain
}

var conditions = []string{"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range"}

// ForOrigin reports a condition that upstream alone can decide (RFC 9111, 4.3.2).
func (q *Request) ForOrigin() bool {
	return len(q.Header["If-Match"])+len(q.Header["If-Unmodified-Since"]) > 0
}

// Vary are the request fields that the answer depends on, in canonical form and in order
// (RFC 9111, 4.1). ok is false when it depends on more than these: then nothing matches it.
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

// Variant names the variant of an answer that a request asks for, by some of its fields; ""
// for no fields. Lines of one field are joined, space around commas goes; languages and
// codings are lists without an order. The name is a digest: a field may be a secret.
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

// Safe reports whether a method changes nothing upstream (RFC 9110, 9.2.1). A method that is
// not known may.
func Safe(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY":
		return true
	}
	return false
}

// Invalidated are the URIs, as paths with their queries, of which nothing stored counts after
// an answer to a request that is not safe (RFC 9111, 4.4): its own, and those of Location and
// Content-Location on the same host. hosts are the names of that host. An error changes
// nothing.
func Invalidated(q *Request, r *Response, hosts ...string) []string {
	if Safe(q.Method) || r.Status < 200 || r.Status >= 400 {
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
