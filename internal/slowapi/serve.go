// Serving: what happens to a request, from the limit on concurrent requests to the response.
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

// maxForm is the maximum size of a request body, in bytes.
const maxForm = 64 << 10

// The reasons why a wait may end early.
var (
	errClientGone = errors.New("slowapi: the client left")
	errClosing    = errors.New("slowapi: the server closes")
)

// ServeHTTP answers one request. It returns early without an answer if the client closes the connection.
//
//	/-/ ----------> control (no credentials, no latency, never counted)
//	anything else > count > cap > fault > wait > credentials > path > page, record or write > wire
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/-/") {
		s.serveControl(w, r)
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
	if err == nil && a.Status != 0 { // a status of 0 means that the client has closed the connection
		out.send(a)
	}
}

// answer waits for the latency and returns the response. It reads the body before it waits, because net/http notices
// that a connection was closed only after the body was read.
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
		if a, instead := f.replacement(r, s.api.Refuse); instead {
			return a, nil
		}
	}
	return s.api.Answer(r, raw, unread, address(r)), nil
}

// readBody reads the body of a write. If that fails, unread is the HTTP status to answer with. Otherwise it is 0.
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

// delay returns a random delay. For a list it is the latency plus or minus up to 20 %, and for every other request 0.3 of that.
func (s *Server) delay(r *http.Request) time.Duration {
	d := time.Duration(float64(s.latency) * (0.8 + 0.4*rand.Float64()))
	if s.api.Routes.IsList(r) {
		return d
	}
	return d * 3 / 10
}

// enter waits until fewer requests run than the rule f permits at once. Requests continue in the order in which they
// arrived. It returns an error if the client closes the connection or the server closes.
func (s *Server) enter(ctx context.Context, f *rule) (leave func(), err error) {
	if f == nil || f.slots == nil {
		return func() {}, nil
	}
	select {
	case f.slots <- struct{}{}:
		return func() { <-f.slots }, nil
	case <-ctx.Done():
		return nil, errClientGone
	case <-s.closing:
		return nil, errClosing
	}
}

// wait waits for the duration d. It returns an error as soon as the client closes the connection or the server closes.
func (s *Server) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errClientGone
	case <-s.closing:
		return errClosing
	}
}

// address returns the base URL of this server as the client sees it. It uses the Host header, or if there is none
// (HTTP/1.0), the local address of the connection. Some responses contain absolute URLs, such as media_url and the
// page links of the Monitor API.
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
