// Own: what this port answers in its own name: under /-/, and of a caller's rate.

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"understudy"
)

// own answers what is under /-/: health and batches, and nothing else on this port.
func (v *exchange) own() error {
	path, _, _ := strings.Cut(v.r.RequestURI, "?")
	read, _ := method(v.r.Method)
	switch {
	case v.origin != nil: // upstream has no such path
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrNotFound)
	case path == batchPath && v.r.Method == http.MethodPost:
		return batch{v, &atomic.Int64{}}.serve()
	case path == batchPath:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	case path != "/-/health" || v.o.Health == nil:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrNotFound)
	case !read:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	}
	v.part()
	v.w.Header()["X-Request-Id"] = []string{v.id()}
	rec := &recorder{ResponseWriter: v.w, exchange: v}
	v.o.Health.ServeHTTP(rec, v.r)
	return nil
}

var errUnbounded = errors.New("no rate bounds this credential")

// ownRate tells the caller of the rate of its own credential, where the API tells of its
// limits. It is told also when nothing of it is left. Upstream is not asked.
func ownRate(v *exchange, r understudy.Rate, bound bool) error {
	if !bound {
		return fmt.Errorf("proxy: %w: %w", understudy.ErrNotFound, errUnbounded)
	}
	v.part()
	body, h, l := v.o.Source.Spec.Limits.Tell(r, v.o.Now()), v.w.Header(), &v.o.Source.Spec.Limits
	tellRate(h, l, v.o.Now(), r)
	h["Cache-Control"] = []string{"private, no-store"}
	h["Vary"] = v.varies
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
