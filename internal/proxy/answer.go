// This file sends the status, header and body of a response.

package proxy

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/charset"
	"understudy/kit/jsonhttp"
	"understudy/request"
	"understudy/spec/paging"
)

// Header values that are the same for every response. Header maps share these slices. Appending to such a slice
// never changes it, because it has no spare capacity.
var (
	cachePrivate = []string{"private"}
	nosniff      = []string{"nosniff"}
	sandbox      = []string{"sandbox"}
)

// restrictContent forbids the browser to execute what upstream sent, whatever its content type. The browser may
// have a credential for the origin of this port.
func (v *exchange) restrictContent() {
	h := v.w.Header()
	h["X-Content-Type-Options"], h["Content-Security-Policy"] = nosniff, sandbox
}

// answer sends the part of a response that the caller may see.
func (v *exchange) answer(a *request.Response, view *access.View) {
	v.setOriginFields(a)
	status, h := a.Page.Status, v.w.Header()
	if a.Outcome == request.Composed && status >= http.StatusBadRequest {
		jsonhttp.SignError(h, status, "a refusal in upstream's words, built here ("+a.Detail+")")
	}
	if name, value := v.links(a.Page); name != "" {
		h[name] = []string{value}
	}
	v.copyUpstreamFields(a, view)
	if len(view.Body) == 0 {
		v.send(status, nil)
		return
	}
	view = encodeView(v.proxy.restoreOrigins(view))
	l := v.proxy.representation(view)
	body, length, in := v.chooseForm(a, view, l)
	if status == http.StatusOK && a.ForwardReason != fwdMethod && v.r.Method != http.MethodPost {
		h["Etag"] = l.etags[in]
		if match := v.r.Header["If-None-Match"]; match != nil && hasTag(match, l.tag) {
			v.send(http.StatusNotModified, nil)
			return
		}
	}
	h["Content-Type"] = l.contentType
	h["Content-Length"] = length
	if in != plainForm {
		h["Content-Encoding"] = codings[in]
	}
	v.send(status, body)
}

// copyUpstreamFields copies the fields of upstream's header that the spec allows. Their meaning is unknown, so only a caller
// that sees the whole response gets them.
func (v *exchange) copyUpstreamFields(a *request.Response, view *access.View) {
	if a.Page.Header == "" || !view.Unredacted || !v.isWhole() {
		return
	}
	for _, name := range v.proxy.o.Source.Spec.Headers.Back {
		value := a.Page.HeaderField(name)
		if path, ok := strings.CutPrefix(value, v.proxy.o.Source.PublicURL+"/"); ok && v.proxy.origin != nil && v.proxy.o.Source.PublicURL != "" {
			only, _, _ := strings.Cut("/"+path, "?")
			value = v.proxy.origin(only) + "/" + path
		}
		if value != "" {
			v.w.Header()[name] = []string{value}
		}
	}
}

// encodeView returns a view in the charset that upstream used. The mirror stores text as UTF-8.
func encodeView(view *access.View) *access.View {
	if view.Charset == "" {
		return view
	}
	out := *view
	body, ok := charset.Charset(view.Charset).Encode(view.Body)
	if !ok { // the charset lacks a character of the body, so the response stays UTF-8 and its content type says so
		out.ContentType = "application/json"
		return &out
	}
	sum := sha256.Sum256(body)
	out.Body, out.Unredacted = body, false // the stored compressed body is UTF-8, so it cannot be sent
	copy(out.Sum[:], sum[:])
	return &out
}

// links returns the header field that links to the next page, if the API has its links in the header and not in the
// body. Page tokens are made of ids, so a caller that does not see the ids gets no link. If the caller may know the
// number of records, a Link header also has upstream's other relations.
func (v *exchange) links(p *understudy.Page) (name, value string) {
	t := v.target
	if t.List == nil || p.Next.IsZero() && p.Header == "" {
		return "", ""
	}
	paged := t.Spec.PagingOf(t.List)
	if !paged.HasNextInHeader() || !v.proxy.o.Gate.CanSeeIDs(v.caller, v.proxy.o.Source.Name, t.Kind) {
		return "", ""
	}
	if !p.Next.IsZero() {
		name, value = paged.NextHeader(v.proxy.linkTo(p.Next.RequestURI(), t.OwnParams))
	}
	kept, _ := understudy.ParseQuery(p.Header) // cannot fail, because Query.String made the text
	params := func(relation string) string {
		text, _ := kept.Get(paging.ParamsField(relation))
		return text
	}
	if value != "" && paged.Style == "header" {
		value += params("next")
	}
	if paged.Style != "header" || p.Header == "" || !v.proxy.o.Gate.CanCount(v.caller, v.proxy.o.Source.Name, t.Kind.Name) {
		return name, value
	}
	for _, relation := range paging.Relations {
		if uri, there := kept.Get(paging.RelationField(relation)); there {
			name, value = "Link", paging.AppendLink(value, v.proxy.linkTo(uri, t.OwnParams), relation)+params(relation)
		}
	}
	return name, value
}

// linkTo returns the address of a page of a list. It begins with the address to which the caller sends its
// requests, and keeps Understudy's own parameters of the request.
func (p *Proxy) linkTo(uri string, own understudy.Query) string {
	base := p.o.Source.PublicURL
	if p.origin != nil {
		base = p.origin(uri)
	}
	link := append([]byte(base), uri...)
	if len(own) > 0 {
		sign := byte('?')
		if strings.IndexByte(uri, '?') >= 0 {
			sign = '&'
		}
		link = own.AppendTo(append(link, sign))
	}
	return string(link)
}

// isWhole reports whether the caller sees every record of the source and every field that the spec names.
func (v *exchange) isWhole() bool {
	return v.visibility.SeesAll || v.visibility == access.Visibility{} && v.proxy.o.Gate.CanSeeAll(v.caller, v.proxy.o.Source.Name)
}

// setOriginFields sets the header fields that say where the response comes from.
func (v *exchange) setOriginFields(a *request.Response) {
	v.decideClose()
	setSourceRate(v)
	v.line.Outcome, v.line.Upstream = a.Outcome.String(), a.UpstreamTime
	h := v.w.Header()
	h["Cache-Control"] = cachePrivate
	h["Vary"] = v.proxy.fields.vary
	if a.ForwardReason != fwdMethod { // the response to a write has no age
		h["Age"] = ages.value(int64(a.CurrentAge() / time.Second))
	}
	if a.Outcome == request.Warm && a.Detail == "" {
		h["Cache-Status"] = hits.value(floorSeconds(a.TTL))
	} else {
		h["Cache-Status"] = []string{string(appendCacheStatus(nil, a))}
	}
	switch {
	case !v.isWhole(): // no time is sent, because it would show when hidden data was stored
		if a.UpstreamTime > 0 {
			h["Server-Timing"] = []string{string(appendMillis([]byte("upstream;dur="), a.UpstreamTime))}
		}
	case a.UpstreamTime > 0 || a.StoreTime > 0:
		h["Server-Timing"] = []string{string(appendServerTiming(nil, a))}
	default:
		h["Server-Timing"] = fromMemory
	}
	if v.line.ID == "" {
		h["X-Request-Id"] = v.proxy.ids.Next()
		v.line.ID = h["X-Request-Id"][0]
	} else {
		h["X-Request-Id"] = []string{v.line.ID}
	}
}

// seconds are the values of a header field that ends with a number of seconds. Each value is made only once. It is
// safe for concurrent use.
type seconds struct {
	before string
	made   [8 << 10]atomic.Pointer[[1]string]
}

// The header fields that differ between responses from memory.
var (
	ages       seconds
	hits       = seconds{before: "understudy; hit; ttl="}
	fromMemory = []string{"store;dur=0"}
)

// value returns the field's value for a number of seconds. Callers must not change it.
func (s *seconds) value(n int64) []string {
	if n < 0 || n >= int64(len(s.made)) {
		return []string{s.before + strconv.FormatInt(n, 10)}
	}
	v := s.made[n].Load()
	if v == nil {
		v = &[1]string{s.before + strconv.FormatInt(n, 10)}
		s.made[n].Store(v)
	}
	return v[:]
}

// send sends the header, and the body unless the request was HEAD.
func (v *exchange) send(status int, body []byte) {
	v.sent, v.line.Status = true, status
	if len(body) == 0 && status != http.StatusNoContent && status != http.StatusNotModified {
		v.w.Header()["Content-Length"] = []string{"0"}
	}
	v.w.WriteHeader(status)
	if v.r.Method == http.MethodHead || len(body) == 0 {
		return
	}
	v.response = request.Response{} // releases the stored response while the client reads, because only the body is still needed
	if v.leave != nil {
		v.leave()
	}
	defer v.trace.End(v.trace.Begin("write"), 0)
	n, _ := v.w.Write(body) // a write error means that the caller has left
	v.line.Bytes = int64(n)
}

// fwdMethod is the value of fwd in Cache-Status for a write.
const fwdMethod = "method"

// appendCacheStatus appends the Cache-Status of a response (RFC 9211).
func appendCacheStatus(dst []byte, a *request.Response) []byte {
	dst = append(dst, "understudy; "...)
	switch {
	case a.Outcome == request.Cold:
		dst = append(append(dst, "fwd="...), forwardToken(a.ForwardReason)...)
		switch {
		case a.Joined:
			dst = append(dst, "; collapsed"...)
		case a.Stored:
			dst = append(dst, "; stored"...)
		}
	case a.Outcome == request.Composed:
		dst = append(dst, "hit"...)
	default:
		dst = append(dst, "hit; ttl="...)
		dst = strconv.AppendInt(dst, floorSeconds(a.TTL), 10)
	}
	if a.Detail != "" {
		dst = append(appendQuoted(append(dst, `; detail="`...), a.Detail), '"')
	}
	if a.Newest > 0 {
		dst = strconv.AppendInt(append(dst, "; newest="...), int64(a.Newest/time.Second), 10)
		dst = strconv.AppendInt(append(dst, "; walked="...), int64(max(a.Age, 0)/time.Second), 10)
	}
	return dst
}

// forwardToken returns fwd if it is a token of RFC 9211, else "uri-miss".
func forwardToken(fwd string) string {
	switch fwd {
	case "bypass", fwdMethod, "uri-miss", "vary-miss", "miss", "request", "stale", "partial":
		return fwd
	}
	return "uri-miss"
}

// floorSeconds returns a duration in seconds, rounded down.
func floorSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d < 0 && d%time.Second != 0 {
		s--
	}
	return s
}

// appendQuoted appends text between the quotes of a structured field's string (RFC 8941, 3.3.3). Each character
// that is not printable ASCII becomes "?".
func appendQuoted(dst []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || r > '~':
			dst = append(dst, '?')
		default:
			dst = append(dst, byte(r))
		}
	}
	return dst
}

// appendServerTiming appends the Server-Timing of a response.
func appendServerTiming(dst []byte, a *request.Response) []byte {
	if a.UpstreamTime > 0 {
		dst = append(appendMillis(append(dst, "upstream;dur="...), a.UpstreamTime), ", "...)
	}
	return appendMillis(append(dst, "store;dur="...), a.StoreTime)
}

// appendMillis appends a duration in milliseconds with at most one decimal.
func appendMillis(dst []byte, d time.Duration) []byte {
	tenths := max(d, 0).Round(100*time.Microsecond) / (100 * time.Microsecond)
	dst = strconv.AppendInt(dst, int64(tenths/10), 10)
	if tenths%10 != 0 {
		dst = append(dst, '.', byte('0'+tenths%10))
	}
	return dst
}
