// This file answers Understudy's own paths under /-/, and sends the rate limits of callers.

package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/jsonhttp"
	"understudy/spec"
)

// serveOwn answers the paths under /-/. On this port these are only health, readiness and batches.
func (v *exchange) serveOwn() error {
	path, _, _ := strings.Cut(v.r.RequestURI, "?")
	read, _ := method(v.r.Method)
	switch {
	case v.proxy.origin != nil: // callers of upstream's addresses see no paths of Understudy
		return fmt.Errorf("proxy: %s: %w", path, access.ErrNoPath)
	case path == batchPath && v.r.Method == http.MethodPost:
		return batch{v, &atomic.Int64{}}.serve()
	case path == batchPath:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	case path != "/-/health" && path != "/-/ready" || v.proxy.o.Health == nil:
		return fmt.Errorf("proxy: %s: %w", path, access.ErrNoPath)
	case !read:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	}
	v.decideClose()
	v.w.Header()["X-Request-Id"] = []string{v.id()}
	rec := &recorder{ResponseWriter: v.w, exchange: v}
	v.proxy.o.Health.ServeHTTP(rec, v.r)
	return nil
}

// rateFields are the header fields that say how many requests a caller may still send.
type rateFields struct {
	numbers                       spec.Numbers
	limit, used, remaining, reset []string
}

// setRate sets the header fields of a rate limit, in the form in which the API announces its limits.
func setRate(v *exchange, r understudy.Rate, now time.Time) {
	h, l := v.w.Header(), &v.proxy.o.Source.Spec.Limits
	n, f := l.Numbers(r, now), v.proxy.fields.rate.Load()
	if f == nil || f.numbers != n {
		text := func(n int64) []string { return []string{strconv.FormatInt(n, 10)} }
		f = &rateFields{n, text(n.Limit), text(n.Used), text(n.Remaining), text(n.Reset)}
		v.proxy.fields.rate.Store(f)
	}
	h[l.Limit], h[l.Remaining], h[l.Reset] = f.limit, f.remaining, f.reset
	if l.Used != "" {
		h[l.Used] = f.used
	}
}

// setSourceRate sets the header fields with the limits that upstream announced. Only a caller that sees everything and
// whose credential has no rate of its own gets them: they would show other callers whether hidden data was requested. If
// upstream announces its limits in response bodies, only the body counts, because the number counted here may differ.
func setSourceRate(v *exchange) {
	src := v.proxy.o.Source
	if v.proxy.o.Rate == nil || v.w.Header()[src.Spec.Limits.Remaining] != nil || !v.isWhole() {
		return
	}
	now := v.proxy.o.Now()
	r, ok := v.proxy.o.Rate(v.target, now)
	if ok && (v.target == nil || v.target.Key.Path() != src.Spec.Limits.Path) {
		setRate(v, r, now)
	}
}

// sendOwnRate sends the rate limit of the caller's own credential as the response on the path where the API
// announces its limits. It does so even if the limit is used up. It sends no request to upstream.
func sendOwnRate(v *exchange, r understudy.Rate) error {
	v.decideClose()
	now, h := v.proxy.o.Now(), v.w.Header()
	body := v.proxy.o.Source.Spec.Limits.FillAnswer(r, now)
	setRate(v, r, now)
	h["Cache-Control"] = []string{"private, no-store"}
	h["Vary"] = v.proxy.fields.vary
	h["Content-Type"] = []string{"application/json; charset=utf-8"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	h["X-Request-Id"] = []string{v.id()}
	v.send(http.StatusOK, body)
	return nil
}

// recorder records the status and size of a response that another handler writes.
type recorder struct {
	http.ResponseWriter
	exchange *exchange
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader records the status.
func (r *recorder) WriteHeader(status int) {
	r.exchange.line.Status, r.exchange.sent = status, true
	switch {
	case status == http.StatusRequestedRangeNotSatisfiable:
		jsonhttp.SignError(r.Header(), status, outsideRange)
	case status >= http.StatusBadRequest:
		jsonhttp.SignError(r.Header(), status, "")
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the sent bytes.
func (r *recorder) Write(p []byte) (int, error) {
	if !r.exchange.sent {
		r.exchange.line.Status, r.exchange.sent = http.StatusOK, true
	}
	n, err := r.ResponseWriter.Write(p)
	r.exchange.line.Bytes += int64(n)
	return n, err
}
