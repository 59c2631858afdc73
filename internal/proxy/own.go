// Own: what this port answers in its own name, under /-/.

package proxy

import (
	"fmt"
	"net/http"
	"strings"

	"understudy"
)

// own answers what is under /-/: health, and nothing else on this port.
func (v *exchange) own() error {
	path, _, _ := strings.Cut(v.r.RequestURI, "?")
	read, _ := method(v.r.Method)
	switch {
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
