// Generic: requests to a source of which no spec is known, passed on as they came.

package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/header"
	"understudy/kit/httprange"
	"understudy/kit/jsonhttp"
	"understudy/request"
	"understudy/spec"
)

// generic is one request to such a source.
type generic struct{ exchange *exchange }

// serve asks the gate, then the mirror, and answers with what came, its header kept.
func (v generic) serve() (err error) {
	if v.exchange.target == nil {
		if v.exchange.target, err = v.passed(); err != nil {
			v.exchange.odd = true
			return err
		}
	}
	if v.exchange.r.Method == http.MethodConnect || v.exchange.r.Method == http.MethodTrace {
		v.exchange.odd = true
		return fmt.Errorf("proxy: %w", understudy.ErrMethod)
	}
	if err := v.exchange.proxy.o.Gate.CheckWrite(v.exchange.caller, v.exchange.target, v.exchange.r.Method); err != nil {
		return err
	}
	for name := range v.exchange.r.Header {
		if spec.IsMethodOverride(name) && v.misleads(name) {
			return fmt.Errorf("proxy: %w: header %s: use the method itself", understudy.ErrInvalid, name)
		}
	}
	if v.exchange.r.ContentLength > v.exchange.proxy.o.MaxBody {
		return &http.MaxBytesError{Limit: v.exchange.proxy.o.MaxBody}
	}
	ctx := v.exchange.r.Context()
	x := request.Exchange{
		Target: v.exchange.target, Method: v.exchange.r.Method, Header: v.passable(), Host: v.exchange.r.Host,
		Flow: v.exchange.caller.Flow, OnInformational: v.early,
	}
	action := understudy.ActionList
	switch v.exchange.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		leave, err := v.exchange.proxy.writes.Take(v.exchange.caller.Name)
		if err != nil {
			return limitedError{}
		}
		defer leave()
		var done func()
		ctx, done = lasting(ctx, streamTime)
		defer done()
		if action = understudy.ActionSend; v.exchange.r.Method == http.MethodDelete {
			action = understudy.ActionDelete
		}
	}
	if v.exchange.r.ContentLength != 0 {
		if x.Body, err = io.ReadAll(http.MaxBytesReader(v.exchange.w, v.exchange.r.Body, v.exchange.proxy.o.MaxBody)); err != nil {
			return bodyError{err}
		}
		v.exchange.read = true
	}
	if err := v.mayOverride(x.Body); err != nil {
		return err
	}
	if err := v.exchange.audit(action, nil, v.exchange.r.Method); err != nil {
		return err
	}
	a, err := v.exchange.proxy.o.Exchanger.Exchange(ctx, x)
	switch {
	case err != nil && action != understudy.ActionList:
		return unsentError{err}
	case err != nil:
		return err
	}
	defer a.Close()
	return v.relay(a)
}

// streamTime bounds how long the answer to a write may be read.
const streamTime = 24 * time.Hour

// passed is the target of the request line, as it is.
func (v generic) passed() (*spec.Target, error) {
	uri := v.exchange.r.RequestURI
	if !strings.HasPrefix(uri, "/") { // a whole URL, as proxies are asked
		uri = v.exchange.r.URL.RequestURI()
	}
	v.exchange.line.RedactedTarget = string(v.exchange.proxy.o.Log.AppendTarget(nil, uri))
	return v.exchange.proxy.o.Source.Spec.ResolveVerbatim(v.exchange.proxy.o.Source.Name, uri)
}

// knownGeneric is Known of a generic source.
func (p *Proxy) knownGeneric(r *http.Request) (context.Context, func() (any, bool)) {
	v := generic{&exchange{proxy: p, r: p.carriers.Strip(r), came: r}}
	t, err := v.passed()
	_, admit := p.o.Admit(r, p.o.Source.Name)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if err != nil || admit == nil || !reads || p.o.Open && r.Header["Authorization"] != nil {
		return nil, nil
	}
	h := v.passable()
	if !p.o.Exchanger.IsReadyFor(t, h) {
		return nil, nil
	}
	k := &known{aimed{t, v.exchange.line.RedactedTarget}, admit}
	return context.WithValue(context.Background(), knownKey{}, k), func() (any, bool) { return nil, p.o.Exchanger.IsReadyFor(t, h) }
}

// passable is the header that upstream and the cache may see: without the credential by which
// we know the caller, without cookies of this server, which browsers send to every port of a
// host, and without fields that name another request than this one.
func (v generic) passable() http.Header {
	h := v.exchange.r.Header
	switch {
	case v.exchange.proxy.o.Open && v.exchange.caller.Name == loopback:
		h = v.exchange.came.Header // it gave none to us: what it gave is upstream's
	case h["Authorization"] != nil:
		h = h.Clone()
		delete(h, "Authorization")
	}
	for name := range h {
		if v.misleads(name) {
			h = h.Clone()
			maps.DeleteFunc(h, func(name string, _ []string) bool { return v.misleads(name) })
			break
		}
	}
	if !slices.ContainsFunc(h["Cookie"], ownCookie) {
		return h
	}
	h = h.Clone()
	var kept []string
	for _, line := range h["Cookie"] {
		for cookie := range strings.SplitSeq(line, ";") {
			if cookie = strings.Trim(cookie, " \t"); cookie != "" && !ownCookie(cookie) {
				kept = append(kept, cookie)
			}
		}
	}
	if delete(h, "Cookie"); len(kept) > 0 {
		h["Cookie"] = []string{strings.Join(kept, "; ")}
	}
	return h
}

// misleads reports a field that names another method, address, host or sender than those of
// the request, unless the settings pass it.
func (v generic) misleads(name string) bool {
	return spec.IsMisleading(name) && !slices.Contains(v.exchange.proxy.o.Source.Spec.Headers.Pass, name)
}

// loopback is the name of who is on this machine.
const loopback = "loopback"

// ownCookie reports a line with a cookie of this server.
func ownCookie(line string) bool {
	return strings.Contains(line, "__Host-understudy") || strings.Contains(line, "understudy_")
}

// early passes an informational answer on, where the writer sends it before the answer: one
// that sends nothing before the end would take it for the answer.
func (v generic) early(status int, fields http.Header) {
	if _, sends := v.exchange.w.(http.Flusher); !sends || !v.exchange.r.ProtoAtLeast(1, 1) {
		return
	}
	h := v.exchange.w.Header()
	kept := h.Clone()
	clear(h)
	v.setFields(h, fields)
	v.exchange.w.WriteHeader(status)
	clear(h)
	maps.Copy(h, kept)
}

// setFields sets the fields of an answer of upstream, less cookies that are named as ours and the
// field that says that an error is ours. Addresses of upstream in them become ours.
func (v generic) setFields(h, fields http.Header) {
	maps.Copy(h, fields)
	delete(h, jsonhttp.ErrorHeader)
	if cookies := h["Set-Cookie"]; slices.ContainsFunc(cookies, ownCookie) {
		h["Set-Cookie"] = slices.DeleteFunc(slices.Clone(cookies), ownCookie)
	}
	if v.exchange.proxy.origin == nil {
		rewriteLinks(h, v.exchange.proxy.o.Source)
	}
}

// relay sends an answer. What is whole is answered by the conditions and the range of the
// request; a stream goes out as it comes.
func (v generic) relay(a *request.ExchangeResponse) error {
	h := v.exchange.w.Header()
	delete(h, "X-Content-Type-Options") // the header is upstream's
	delete(h, "Content-Security-Policy")
	v.setFields(h, a.Header)
	v.told(a)
	if a.Stream != nil {
		return v.stream(a)
	}
	status, body := a.Response.Page.Status, a.Response.Page.Body
	whole := status == http.StatusOK && (a.Response.Stored || a.Response.Outcome != request.Cold) && v.reads()
	switch {
	case whole && v.unchanged(h):
		for _, name := range []string{"Content-Length", "Content-Type", "Content-Encoding"} {
			delete(h, name)
		}
		v.exchange.send(http.StatusNotModified, nil)
	case whole && v.exchange.r.Method == http.MethodGet && len(body) > 0 && httprange.Range(v.exchange.r.Header) != "":
		v.exchange.part()
		delete(h, "Content-Length")
		v.exchange.sent = true
		changed, _ := header.Date(h.Get("Last-Modified"))
		part := v.exchange.r.Clone(v.exchange.r.Context())
		part.Header = http.Header{"Range": {httprange.Range(v.exchange.r.Header)}, "If-Range": v.exchange.r.Header["If-Range"]}
		if h["Content-Type"] == nil {
			h["Content-Type"] = nil // else it is guessed
		}
		http.ServeContent(&recorder{ResponseWriter: v.exchange.w, exchange: v.exchange}, part, "", changed, bytes.NewReader(body))
	case v.exchange.r.Method == http.MethodHead && len(body) == 0, status == http.StatusNoContent, status == http.StatusNotModified:
		v.exchange.sent, v.exchange.line.Status = true, status
		v.exchange.w.WriteHeader(status)
	default:
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		v.exchange.send(status, body)
	}
	return nil
}

// reads reports whether the request asks for what is there.
func (v generic) reads() bool {
	return (v.exchange.r.Method == http.MethodGet || v.exchange.r.Method == http.MethodHead) &&
		len(v.exchange.r.Header["If-Match"])+len(v.exchange.r.Header["If-Unmodified-Since"]) == 0
}

// told sets the fields that say how the answer came, beside those of caches before us.
func (v generic) told(a *request.ExchangeResponse) {
	v.exchange.part()
	v.exchange.line.Outcome, v.exchange.line.Upstream = a.Response.Outcome.String(), a.Response.UpstreamTime
	h := v.exchange.w.Header()
	h["Cache-Status"] = append(slices.Clip(a.Header["Cache-Status"]), string(appendCacheStatus(nil, &a.Response)))
	h["Server-Timing"] = append(slices.Clip(a.Header["Server-Timing"]), string(appendServerTiming(nil, &a.Response)))
	if h["X-Request-Id"] == nil {
		h["X-Request-Id"] = []string{v.exchange.id()}
	}
	if age := a.Response.CurrentAge(); a.Response.Outcome != request.Cold || a.Response.Stored && age >= time.Second {
		h["Age"] = []string{strconv.FormatInt(int64(age/time.Second), 10)}
	}
}

// unchanged reports whether the requester has the answer already (RFC 9111, 4.3.2).
func (v generic) unchanged(h http.Header) bool {
	if lines := v.exchange.r.Header["If-None-Match"]; len(lines) > 0 {
		tag := strings.TrimPrefix(h.Get("Etag"), "W/")
		for item := range header.Items(lines) {
			if item == "*" || tag != "" && strings.TrimPrefix(item, "W/") == tag {
				return true
			}
		}
		return false
	}
	since, ok := header.Date(v.exchange.r.Header.Get("If-Modified-Since"))
	if !ok {
		return false
	}
	for _, name := range []string{"Last-Modified", "Date"} {
		if changed, ok := header.Date(h.Get(name)); ok {
			return !changed.After(since)
		}
	}
	return false
}

// stream sends the header, a body as it comes, and the trailer behind it. When it breaks off, so
// does the connection: the client does not take a part for all. When the client leaves, the request
// upstream ends, though nothing comes of it just then.
func (v generic) stream(a *request.ExchangeResponse) error {
	defer context.AfterFunc(v.exchange.r.Context(), func() { _ = a.Close() })()
	h := v.exchange.w.Header()
	if delete(h, "Content-Length"); a.Length >= 0 {
		h["Content-Length"] = []string{strconv.FormatInt(a.Length, 10)}
	}
	announced := map[string]bool{}
	for name := range a.Trailer {
		h["Trailer"], announced[name] = append(h["Trailer"], name), true
	}
	v.exchange.sent, v.exchange.line.Status = true, a.Response.Page.Status
	v.exchange.w.WriteHeader(a.Response.Page.Status)
	control := http.NewResponseController(v.exchange.w)
	_ = control.Flush() // a writer that cannot sends all later
	buf := make([]byte, 32<<10)
	for {
		n, err := a.Stream.Read(buf)
		if n > 0 {
			// Where there are no deadlines (in tests), the server's own bound it.
			_ = control.SetWriteDeadline(v.exchange.proxy.o.Now().Add(readTime))
			if _, err := v.exchange.w.Write(buf[:n]); err != nil {
				return nil // the caller has left
			}
			v.exchange.line.Bytes += int64(n)
			if v.exchange.line.Bytes != a.Length { // else all was sent
				_ = control.Flush()
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	trailer := http.Header{}
	v.setFields(trailer, a.Trailer)
	for name, values := range trailer {
		if !announced[name] {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
	return nil
}

// readTime is how long a caller may take for one piece of a stream.
const readTime = time.Minute
