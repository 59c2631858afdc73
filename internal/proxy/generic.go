// This file forwards requests to a generic source, which has no spec.

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

// generic is one request to a generic source.
type generic struct{ exchange *exchange }

// serve checks the request with the gate and sends the mirror's response with the header fields of upstream.
func (v generic) serve() (err error) {
	if v.exchange.target == nil {
		if v.exchange.target, err = v.forwardTarget(); err != nil {
			v.exchange.foreign = true
			return err
		}
	}
	if v.exchange.r.Method == http.MethodConnect || v.exchange.r.Method == http.MethodTrace {
		v.exchange.foreign = true
		return fmt.Errorf("proxy: %w", understudy.ErrMethod)
	}
	if err := v.exchange.proxy.o.Gate.CheckWrite(v.exchange.caller, v.exchange.target, v.exchange.r.Method); err != nil {
		return err
	}
	for name := range v.exchange.r.Header {
		if spec.IsMethodOverride(name) && v.isMisleading(name) {
			return fmt.Errorf("proxy: %w: header %s cannot replace the method; send the request with that method", understudy.ErrInvalid, name)
		}
	}
	if v.exchange.r.ContentLength > v.exchange.proxy.o.MaxBody {
		return &http.MaxBytesError{Limit: v.exchange.proxy.o.MaxBody}
	}
	ctx := v.exchange.r.Context()
	x := request.Exchange{
		Target: v.exchange.target, Method: v.exchange.r.Method, Header: v.forwardedHeader(), Host: v.exchange.r.Host,
		Flow: v.exchange.caller.Flow, OnInformational: v.sendEarly,
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
		ctx, done = writeContext(ctx, maxStreamTime)
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
	if err := v.checkOverride(x.Body); err != nil {
		return err
	}
	if err := v.exchange.logAction(action, nil, v.exchange.r.Method); err != nil {
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
	return v.sendExchanged(a)
}

// maxStreamTime is the maximum duration of the response to a write.
const maxStreamTime = 24 * time.Hour

// forwardTarget returns the target that the request line names, unchanged.
func (v generic) forwardTarget() (*spec.Target, error) {
	uri := v.exchange.r.RequestURI
	if !strings.HasPrefix(uri, "/") { // the request line has an absolute URL, as clients send it to a proxy
		uri = v.exchange.r.URL.RequestURI()
	}
	v.exchange.line.RedactedTarget = string(v.exchange.proxy.o.Log.AppendTarget(nil, uri))
	return v.exchange.proxy.o.Source.Spec.ResolveVerbatim(v.exchange.proxy.o.Source.Name, uri)
}

// prepareGenericRepeat does what PrepareRepeat does, for a generic source.
func (p *Proxy) prepareGenericRepeat(r *http.Request) (context.Context, func() (any, bool)) {
	v := generic{&exchange{proxy: p, r: p.carriers.Strip(r), original: r}}
	t, err := v.forwardTarget()
	_, admit := p.o.Admit(r, p.o.Source.Name)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if err != nil || admit == nil || !reads || p.o.Open && r.Header["Authorization"] != nil {
		return nil, nil
	}
	h := v.forwardedHeader()
	if !p.o.Exchanger.IsReadyFor(t, h) {
		return nil, nil
	}
	k := p.newRepeat(r, parsedTarget{t, v.exchange.line.RedactedTarget}, admit)
	return context.WithValue(context.Background(), repeatKey{}, k), func() (any, bool) { return nil, p.o.Exchanger.IsReadyFor(t, h) }
}

// forwardedHeader returns the header fields of the request that upstream and the cache may see. They contain no credential
// for this server, and no cookies of this server, which browsers send to every port of a host. They also contain no
// field that names another request than this one.
func (v generic) forwardedHeader() http.Header {
	h := v.exchange.r.Header
	switch {
	case v.exchange.proxy.o.Open && v.exchange.caller.Name == loopback:
		h = v.exchange.original.Header // local callers need no credential for this server, so the credential in the request is meant for upstream
	case h["Authorization"] != nil:
		h = h.Clone()
		delete(h, "Authorization")
	}
	for name := range h {
		if v.isMisleading(name) {
			h = h.Clone()
			maps.DeleteFunc(h, func(name string, _ []string) bool { return v.isMisleading(name) })
			break
		}
	}
	if !slices.ContainsFunc(h["Cookie"], hasOwnCookie) {
		return h
	}
	h = h.Clone()
	var kept []string
	for _, line := range h["Cookie"] {
		for cookie := range strings.SplitSeq(line, ";") {
			if cookie = strings.Trim(cookie, " \t"); cookie != "" && !hasOwnCookie(cookie) {
				kept = append(kept, cookie)
			}
		}
	}
	if delete(h, "Cookie"); len(kept) > 0 {
		h["Cookie"] = []string{strings.Join(kept, "; ")}
	}
	return h
}

// isMisleading reports whether a header field names a method, address, host or sender that differs from the
// request's. Fields that the settings allow are not misleading.
func (v generic) isMisleading(name string) bool {
	return spec.IsMisleading(name) && !slices.Contains(v.exchange.proxy.o.Source.Spec.Headers.Pass, name)
}

// loopback is the name of every caller on this machine.
const loopback = "loopback"

// hasOwnCookie reports whether a line of a Cookie header contains a cookie of this server.
func hasOwnCookie(line string) bool {
	return strings.Contains(line, "__Host-understudy") || strings.Contains(line, "understudy_")
}

// sendEarly sends an informational response (1xx) if the writer can send it before the final response. Another
// writer would send it as the final response.
func (v generic) sendEarly(status int, fields http.Header) {
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

// setFields copies the header fields of an upstream response. It leaves out cookies with the names of our cookies,
// and the field that marks an error as ours. Addresses of upstream become addresses of this server.
func (v generic) setFields(h, fields http.Header) {
	maps.Copy(h, fields)
	delete(h, jsonhttp.ErrorHeader)
	if cookies := h["Set-Cookie"]; slices.ContainsFunc(cookies, hasOwnCookie) {
		h["Set-Cookie"] = slices.DeleteFunc(slices.Clone(cookies), hasOwnCookie)
	}
	if v.exchange.proxy.origin == nil {
		rewriteLinks(h, v.exchange.proxy.o.Source)
	}
}

// sendExchanged sends a response. A complete response is checked against the conditions and the range of the request. A
// stream is sent as it arrives.
func (v generic) sendExchanged(a *request.ExchangeResponse) error {
	h := v.exchange.w.Header()
	delete(h, "X-Content-Type-Options") // a generic response has only the header fields that upstream sent
	delete(h, "Content-Security-Policy")
	v.setFields(h, a.Header)
	v.setOrigin(a)
	if a.Stream != nil {
		return v.stream(a)
	}
	status, body := a.Response.Page.Status, a.Response.Page.Body
	whole := status == http.StatusOK && (a.Response.Stored || a.Response.Outcome != request.Cold) && v.isRead()
	switch {
	case whole && v.isUnchanged(h):
		for _, name := range []string{"Content-Length", "Content-Type", "Content-Encoding"} {
			delete(h, name)
		}
		v.exchange.send(http.StatusNotModified, nil)
	case whole && v.exchange.r.Method == http.MethodGet && len(body) > 0 && httprange.Range(v.exchange.r.Header) != "":
		v.exchange.decideClose()
		delete(h, "Content-Length")
		v.exchange.sent = true
		changed, _ := header.Date(h.Get("Last-Modified"))
		part := v.exchange.r.Clone(v.exchange.r.Context())
		part.Header = http.Header{"Range": {httprange.Range(v.exchange.r.Header)}, "If-Range": v.exchange.r.Header["If-Range"]}
		if h["Content-Type"] == nil {
			h["Content-Type"] = nil // a nil value keeps net/http from guessing the type
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

// isRead reports whether the request is a GET or HEAD without conditions that writes use.
func (v generic) isRead() bool {
	return (v.exchange.r.Method == http.MethodGet || v.exchange.r.Method == http.MethodHead) &&
		len(v.exchange.r.Header["If-Match"])+len(v.exchange.r.Header["If-Unmodified-Since"]) == 0
}

// setOrigin adds to the fields that say where the response comes from. Values of other caches come first.
func (v generic) setOrigin(a *request.ExchangeResponse) {
	v.exchange.decideClose()
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

// isUnchanged reports whether the client already has the current response (RFC 9111, 4.3.2).
func (v generic) isUnchanged(h http.Header) bool {
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

// stream sends the header, the body as it arrives, and the trailer. If the body ends early, stream closes the
// connection, so that the client does not take the partial body as complete. If the client leaves, the upstream
// request ends even while no data arrives.
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
	v.exchange.sent, v.exchange.streams, v.exchange.line.Status = true, true, a.Response.Page.Status
	v.exchange.w.WriteHeader(a.Response.Page.Status)
	control := http.NewResponseController(v.exchange.w)
	_ = control.Flush() // if the writer cannot flush, the server sends everything at the end of the response
	buf := make([]byte, 32<<10)
	for {
		n, err := a.Stream.Read(buf)
		if n > 0 {
			// The writers of tests have no deadlines. The server's own deadlines apply there.
			_ = control.SetWriteDeadline(v.exchange.proxy.o.Now().Add(maxReadTime))
			if _, err := v.exchange.w.Write(buf[:n]); err != nil {
				return nil // a write error means that the caller has left
			}
			v.exchange.line.Bytes += int64(n)
			if v.exchange.line.Bytes != a.Length { // more of the body follows later, so this part is sent at once
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

// maxReadTime is how long a caller may take to read one piece of a stream.
const maxReadTime = time.Minute
