// Serving: from a request through cap, faults, latency and credentials to an answer.
package slowapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
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
		out.send(s.refuse(http.StatusTooManyRequests))
		return
	}
	out.fault = s.faults.pick(asked)
	a, err := s.answer(r, out.fault)
	if errors.Is(err, errClosing) {
		a, err = s.refuse(http.StatusServiceUnavailable), nil
	}
	if err != nil {
		return
	}
	out.send(a)
}

// answer finds what a request gets. The form is read before any waiting: only
// then does net/http notice when the client leaves.
func (s *Server) answer(r *http.Request, f *fault) (format.Answer, error) {
	raw, tooLong, err := readBody(r)
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
		if a, instead := f.instead(r, s.refuse); instead {
			return a, nil
		}
	}
	return s.truth(r, raw, tooLong, err)
}

// truth is what a request gets when nothing is slow or goes wrong. Of its body were read
// raw, whether it is too long, and the error.
func (s *Server) truth(r *http.Request, raw []byte, tooLong bool, err error) (format.Answer, error) {
	switch {
	case tooLong && s.api != nil:
		return s.refuse(http.StatusRequestEntityTooLarge), nil
	case err != nil && s.api != nil:
		return s.refuse(http.StatusBadRequest), nil
	case s.api != nil:
		return s.api.Answer(r, raw, s.absolute(r, "")), nil
	}
	form, refused := readForm(raw, tooLong, err)
	path := r.URL.EscapedPath()
	at, sids := routeOf(path)
	if !s.knows(r) {
		refused := format.RefusalFor(http.StatusUnauthorized)
		refused.Header = map[string]string{"WWW-Authenticate": `Basic realm="Twilio API"`}
		return refused.Answer(), nil
	}
	if refused != nil {
		return refused.Answer(), nil
	}
	if at == nil {
		return format.NotFound(path).Answer(), nil
	}
	t, ok := resolve(s.world, at, path, sids, format.ReadQuery(r.URL.RawQuery))
	if !ok {
		return format.NotFound(path).Answer(), nil
	}
	t.here = s.absolute(r, "")
	return s.do(r, t, form)
}

// do does what the method says to what the path names.
func (s *Server) do(r *http.Request, t target, form url.Values) (format.Answer, error) {
	if do := t.route.handler(r.Method); do != nil {
		return do(s, r, t, form)
	}
	refused := format.Refuse(http.StatusMethodNotAllowed, 20405, "Method not allowed")
	refused.Header = map[string]string{"Allow": t.route.allow()}
	return refused.Answer(), nil
}

// instance shows one record.
func (s *Server) instance(_ *http.Request, t target, _ url.Values) (format.Answer, error) {
	w := s.world
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	if !shows(w, &t) {
		return format.NotFound(t.path).Answer(), nil
	}
	return format.Answer{Status: http.StatusOK, Body: w.Show(nil, t.seq, t.index, t.route.shown(), t.here)}, nil
}

// readBody reads the body of a write.
func readBody(r *http.Request) (raw []byte, tooLong bool, err error) {
	if r.Body == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil, false, nil
	}
	raw, err = io.ReadAll(io.LimitReader(r.Body, maxForm+1))
	return raw, len(raw) > maxForm, err
}

// readForm reads the form in the body of a write.
func readForm(raw []byte, tooLong bool, err error) (url.Values, *format.Refusal) {
	if err != nil {
		return nil, format.Refuse(http.StatusBadRequest, 20001, "The request body could not be read")
	}
	if tooLong {
		return nil, format.Refuse(http.StatusRequestEntityTooLarge, 20413, "The request body is longer than "+strconv.Itoa(maxForm)+" bytes")
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, format.Invalid("The request body is not a form")
	}
	return form, nil
}

// knows tells whether the request carries the main account's credentials; they
// open the accounts below it too.
func (s *Server) knows(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	same := subtle.ConstantTimeCompare([]byte(user), []byte(s.world.Account)) == 1
	return s.tokens.know(password, s.world.Token) && same && ok
}

// delay is how long an answer takes: lists the latency give or take a fifth,
// anything else 0.3 of that.
func (s *Server) delay(r *http.Request) time.Duration {
	d := time.Duration(float64(s.latency) * (0.8 + 0.4*rand.Float64()))
	if s.isList(r) {
		return d
	}
	return d * 3 / 10
}

// enter waits until a fault has a place for a request: those who came first go first. It ends as wait does.
func (s *Server) enter(ctx context.Context, f *fault) (leave func(), err error) {
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

// absolute is the URL of a path of ours under the address the request came to:
// its Host, and without one (HTTP/1.0) the address of the connection. The
// paging of the Monitor API and media_url are absolute, as
// https://monitor.twilio.com/v1/Alerts is at Twilio.
func (s *Server) absolute(r *http.Request, path string) string {
	scheme, host := "http://", r.Host
	if r.TLS != nil {
		scheme = "https://"
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); host == "" && ok {
		host = at.String()
	}
	return scheme + host + path
}
