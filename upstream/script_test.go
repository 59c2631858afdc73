// A scripted upstream: what tests about rules talk to.

package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy"
	"understudy/kit/retry"
	"understudy/request"
	"understudy/spec"
)

const (
	account   = "AC00000000000000000000000000000001"
	token     = "slowapitoken"
	callsPath = "/2010-04-01/Accounts/" + account + "/Calls.json"
)

// script is an http.RoundTripper that answers by a function of the number of
// the request, counted from 0.
type script struct {
	do func(n int, r *http.Request) (*http.Response, error)

	mu    sync.Mutex
	asked []string
	at    []time.Duration // since the first
	first time.Time
	now   int // under way
	most  int
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.asked)
	if n == 0 {
		s.first = time.Now()
	}
	s.asked = append(s.asked, r.URL.RequestURI())
	s.at = append(s.at, time.Since(s.first))
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	return s.do(n, r)
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// reply is an answer; headers are pairs.
func reply(status int, body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

const emptyCalls = `{"calls":[]}`

func well(int, *http.Request) (*http.Response, error) { return reply(200, emptyCalls), nil }

var errRefused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

func refused(int, *http.Request) (*http.Response, error) { return nil, errRefused }

// slow answers like do after d, or ends with the request.
func slow(d time.Duration, do func(int, *http.Request) (*http.Response, error)) func(int, *http.Request) (*http.Response, error) {
	return func(n int, r *http.Request) (*http.Response, error) {
		if err := retry.Wait(r.Context(), d); err != nil {
			return nil, err
		}
		return do(n, r)
	}
}

// scripted is a client of the built-in spec with a scripted upstream.
func scripted(t testing.TB, s *script, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{
		Source: &spec.Source{Name: "twilio", User: account}, Secret: understudy.NewSecret(token), Transport: s,
	}
	for _, c := range change {
		c(&o)
	}
	if o.Source.Spec == nil {
		o.Source.Spec = builtInSpec(t, "twilio")
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func target(t testing.TB, c *Client, uri string) *spec.Target {
	t.Helper()
	path, query, _ := strings.Cut(uri, "?")
	got, err := c.o.Source.Spec.Resolve(c.o.Source.Name, path, query)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// get fetches once, waiting, without patience.
func get(t testing.TB, c *Client, uri string) (*understudy.Page, error) {
	return c.Fetch(context.Background(), request.Fetch{Target: target(t, c, uri)})
}

func failure(t testing.TB, err error) *understudy.UpstreamError {
	t.Helper()
	var e *understudy.UpstreamError
	if !errors.As(err, &e) {
		t.Fatalf("%v is no UpstreamError", err)
	}
	if !errors.Is(err, understudy.ErrUnavailable) {
		t.Errorf("%v is not ErrUnavailable", err)
	}
	return e
}

// loud is a logger that a test can read.
func loud() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), &b
}
