// Serving: from a request through cap, faults, latency and credentials to an answer.
package slowapi

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"understudy/internal/slowapi/format"
)

// maxForm bounds the body of a write, in bytes.
const maxForm = 64 << 10

// Why a wait ended early.
var (
	errGone    = errors.New("slowapi: the client left")
	errClosing = errors.New("slowapi: the server closes")
)

// ServeHTTP answers one request. It ends early, without an answer, when the
// client leaves.
//
//	/-/ ----------> control (no credentials, no latency, never counted)
//	anything else > count > cap > fault > wait > credentials > path > page, record or write > wire
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/-/") {
		s.control(w, r)
		return
	}
	began := s.now()
	asked := r.URL.RequestURI()
	s.counts.add(r.URL.EscapedPath(), asked)
	busy := s.busy.Add(1)
	defer s.busy.Add(-1)
	out := reply{w: w, r: r, began: began, busy: busy, s: s}
	if busy > int64(s.cap) {
		out.send(s.api.Refuse(http.StatusTooManyRequests))
		return
	}
	out.fault = s.faults.pick(asked)
	a, err := s.answer(r, out.fault)
	if errors.Is(err, errClosing) {
		a, err = s.api.Refuse(http.StatusServiceUnavailable), nil
	}
	if err == nil && a.Status != 0 { // else the client left
		out.send(a)
	}
}

// answer finds what a request gets. The form is read before any waiting: only
// then does net/http notice when the client leaves.
func (s *Server) answer(r *http.Request, f *rule) (format.Answer, error) {
	raw, unread := readBody(r)
	leave, late := s.enter(r.Context(), f)
	if late != nil {
		return format.Answer{}, late
	}
	defer leave()
	if err := s.wait(r.Context(), s.delay(r)); err != nil {
		return format.Answer{}, err
	}
	if f != nil {
		if err := s.wait(r.Context(), f.delay); err != nil {
			return format.Answer{}, err
		}
		if a, instead := f.instead(r, s.api.Refuse); instead {
			return a, nil
		}
	}
	return s.api.Answer(r, raw, unread, address(r)), nil
}

// readBody reads the body of a write; unread is the status of the error when it cannot be.
func readBody(r *http.Request) (raw []byte, unread int) {
	if r.Body == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil, 0
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxForm+1))
	switch {
	case len(raw) > maxForm:
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return raw, 0
}

// delay is how long an answer takes: lists the latency give or take a fifth,
// anything else 0.3 of that.
func (s *Server) delay(r *http.Request) time.Duration {
	d := time.Duration(float64(s.latency) * (0.8 + 0.4*rand.Float64()))
	if s.api.Routes.IsList(r) {
		return d
	}
	return d * 3 / 10
}

// enter waits until a fault has a place for a request: those who came first go first. It ends as wait does.
func (s *Server) enter(ctx context.Context, f *rule) (leave func(), err error) {
	if f == nil || f.busy == nil {
		return func() {}, nil
	}
	select {
	case f.busy <- struct{}{}:
		return func() { <-f.busy }, nil
	case <-ctx.Done():
		return nil, errGone
	case <-s.closing:
		return nil, errClosing
	}
}

// wait lets time pass. It ends early with an error when the client leaves or
// the server closes.
func (s *Server) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errGone
	case <-s.closing:
		return errClosing
	}
}

// address returns where the request came to: its Host, and without one (HTTP/1.0) the address
// of the connection. The paging of the Monitor API and media_url are absolute, as
// https://monitor.twilio.com/v1/Alerts is at Twilio.
func address(r *http.Request) string {
	scheme, host := "http://", r.Host
	if r.TLS != nil {
		scheme = "https://"
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); host == "" && ok {
		host = at.String()
	}
	return scheme + host
}
