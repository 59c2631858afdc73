// Own: what this port answers in its own name: under /-/, and of a caller's rate.

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

// own answers what is under /-/: health and batches, and nothing else on this port.
func (v *exchange) own() error {
	path, _, _ := strings.Cut(v.r.RequestURI, "?")
	read, _ := method(v.r.Method)
	switch {
	case v.proxy.origin != nil: // upstream has no such path
		return fmt.Errorf("proxy: %s: %w", path, access.ErrNoPath)
	case path == batchPath && v.r.Method == http.MethodPost:
		return batch{v, &atomic.Int64{}}.serve()
	case path == batchPath:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	case path != "/-/health" || v.proxy.o.Health == nil:
		return fmt.Errorf("proxy: %s: %w", path, access.ErrNoPath)
	case !read:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	}
	v.part()
	v.w.Header()["X-Request-Id"] = []string{v.id()}
	rec := &recorder{ResponseWriter: v.w, exchange: v}
	v.proxy.o.Health.ServeHTTP(rec, v.r)
	return nil
}

// rateFields are the fields of answers that say how much a caller may still ask.
type rateFields struct {
	numbers                       spec.Numbers
	limit, used, remaining, reset []string
}

// tellRate says a rate in the fields in which the API tells of its limits.
func tellRate(v *exchange, r understudy.Rate, now time.Time) {
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

// tellSource says what upstream has told of its limits, to a caller that sees everything and whose credential has no
// rate of its own. To others it would tell whether something hidden was asked for. Where upstream tells of its limits in
// the body, that alone counts: what is counted here since may differ.
func tellSource(v *exchange) {
	src := v.proxy.o.Source
	if v.proxy.o.Rate == nil || v.w.Header()[src.Spec.Limits.Remaining] != nil || !v.whole() {
		return
	}
	now := v.proxy.o.Now()
	r, ok := v.proxy.o.Rate(v.target, now)
	if ok && (v.target == nil || v.target.Key.Path() != src.Spec.Limits.Path) {
		tellRate(v, r, now)
	}
}

// ownRate answers with the rate of the caller's own credential where the API tells of its limits, also
// when nothing of it is left. Upstream is not asked.
func ownRate(v *exchange, r understudy.Rate) error {
	v.part()
	now, h := v.proxy.o.Now(), v.w.Header()
	body := v.proxy.o.Source.Spec.Limits.FillAnswer(r, now)
	tellRate(v, r, now)
	h["Cache-Control"] = []string{"private, no-store"}
	h["Vary"] = v.proxy.fields.vary
	h["Content-Type"] = []string{"application/json; charset=utf-8"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	h["X-Request-Id"] = []string{v.id()}
	v.send(http.StatusOK, body)
	return nil
}

// recorder notes what another handler answers.
type recorder struct {
	http.ResponseWriter
	exchange *exchange
}

// Unwrap lets http.ResponseController reach the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader notes the status.
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

// Write counts what is sent.
func (r *recorder) Write(p []byte) (int, error) {
	if !r.exchange.sent {
		r.exchange.line.Status, r.exchange.sent = http.StatusOK, true
	}
	n, err := r.ResponseWriter.Write(p)
	r.exchange.line.Bytes += int64(n)
	return n, err
}
