// Tests of the limits of a port, over real connections.

package frontend

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/kit/jsonhttp"
)

// port is a frontend that serves until the test ends. A request for /slow waits
// until release is closed.
type port struct {
	*Server
	inside  chan struct{}
	release chan struct{}
}

// waitTime bounds every wait of these tests.
const waitTime = 30 * time.Second

// onBoth runs a test over a port without the express lane and over one on which everything but
// /slow is answered there from the second time on.
func onBoth(t *testing.T, change func(*config.Limits), test func(*testing.T, *port)) {
	for _, lane := range []bool{false, true} {
		t.Run(fmt.Sprintf("lane %v", lane), func(t *testing.T) { test(t, openPort(t, lane, change)) })
	}
}

func openPort(t *testing.T, lane bool, change func(*config.Limits)) *port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var limits config.Limits
	change(&limits)
	limits.SetDefaults()
	p := &port{inside: make(chan struct{}, 100), release: make(chan struct{})}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			p.inside <- struct{}{}
			<-p.release
		}
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "whole")
	})
	p.Server = NewServer("test", l, nil, &limits, PlainRefusal(), slog.New(slog.DiscardHandler))
	if lane {
		p.SetExpress(1 << 20)
	}
	p.SetHandler(answer, allButSlow{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, []*Server{p.Server}, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := p.listener.count(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
	return p
}

// dial opens a connection that ends with the test.
func (p *port) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(waitTime)); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a request over a connection and reads its answer.
func (p *port) ask(c net.Conn, path string) (*http.Response, error) {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return resp, err
}

// rest waits until so many connections are open and idle: net/http says so after
// its answer is read.
func (p *port) rest(t *testing.T, open int) {
	t.Helper()
	eventually(t, "all are idle", func() bool {
		p.listener.mu.Lock()
		defer p.listener.mu.Unlock()
		for c := range p.listener.conns {
			if c.idle.Load() == 0 {
				return false
			}
		}
		return len(p.listener.conns) == open
	})
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(waitTime)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not after %v: %s", waitTime, what)
		}
	}
}

// When all connections are at work a new one is answered 503 at once; when one
// ends there is room again.
func TestConnectionsAreRefusedWhenAllWork(t *testing.T) {
	onBoth(t, func(l *config.Limits) { l.Connections = 2 }, func(t *testing.T, p *port) {
		answers := make(chan error, 2)
		for range 2 {
			c := p.dial(t)
			go func() { _, err := p.ask(c, "/slow"); answers <- err }()
			<-p.inside
		}
		for range 3 {
			resp, err := p.ask(p.dial(t), "/")
			checktest.MustNoError(t, err, "")
			checktest.MustEqual(t, resp.StatusCode, 503, "resp.StatusCode")
			checktest.MustEqual(t, resp.Header.Get("Retry-After"), "1", `resp.Header.Get("Retry-After")`)
			checktest.MustTrue(t, resp.Close, "resp.Close is false")
		}
		close(p.release)
		for range 2 {
			if err := <-answers; err != nil {
				t.Errorf("one at work was disturbed: %v", err)
			}
		}
		if n := p.listener.refused.Load(); n != 3 {
			t.Errorf("%d refused", n)
		}
		// A connection is idle a moment after its answer was read.
		eventually(t, "there is room", func() bool {
			resp, err := p.ask(p.dial(t), "/")
			return err == nil && resp.StatusCode == 200
		})
		if n := p.listener.count(); n > 2 {
			t.Errorf("%d open", n)
		}
	})
}

// Whoever is idle makes room, the longest idle first; so do those who open a
// connection and send nothing, or half a head.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	onBoth(t, func(l *config.Limits) { l.Connections = 3 }, func(t *testing.T, p *port) {
		silent, half, idle := p.dial(t), p.dial(t), p.dial(t)
		if _, err := io.WriteString(half, "GET / HTTP/1.1\r\nHo"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.ask(idle, "/"); err != nil {
			t.Fatal(err)
		}
		p.rest(t, 3)
		for i, gone := range []net.Conn{silent, half, idle} {
			if resp, err := p.ask(p.dial(t), "/"); err != nil || resp.StatusCode != 200 {
				t.Fatalf("new one %d: %v %v", i, resp, err)
			}
			p.rest(t, 3)
			{
				n, err := gone.Read(make([]byte, 1))
				checktest.Equal(t, n, 0, "the one idle longest (%d) is still open: n; %v", i, err)
				checktest.MustTrue(t, err != nil, "the one idle longest (%d) is still open: err is nil", i)
				checktest.True(t, !errors.Is(err, os.ErrDeadlineExceeded),
					"the one idle longest (%d) is still open: errors.Is(err, os.ErrDeadlineExceeded) is true", i)
			}
		}
		if b := p.listener; b.dropped.Load() != 3 || b.refused.Load() != 0 {
			t.Errorf("%d dropped, %d refused", b.dropped.Load(), b.refused.Load())
		}
	})
}

// A head that is too large, and one that does not come, are refused and counted.
func TestHeadsAreBounded(t *testing.T) {
	onBoth(t, func(l *config.Limits) { l.Headers, l.HeadTime = 8<<10, config.Duration(100*time.Millisecond) }, func(t *testing.T, p *port) {
		c := p.dial(t)
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", 20<<10)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 431 {
			t.Fatalf("%v %v", resp, err)
		}
		_ = resp.Body.Close()
		slow := p.dial(t)
		if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\nHo"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(slow); err != nil {
			t.Errorf("it was not closed: %v", err)
		}
		// A head may be slow on a connection that was answered before, too.
		for range 2 {
			slow = p.dial(t)
			for range 3 {
				if _, err := p.ask(slow, "/"); err != nil {
					t.Fatal(err)
				}
			}
			for _, b := range []byte("GET / HTTP/1.1\r\nHo") {
				if _, err := slow.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.ReadAll(slow); err != nil {
				t.Errorf("it was not closed: %v", err)
			}
		}
		// An idle connection and one that never sent anything are no attempt.
		for range 5 {
			if _, err := p.ask(p.dial(t), "/"); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = io.ReadAll(p.dial(t))
		eventually(t, "all are counted", func() bool { return p.listener.largeHeads.Load() == 1 && p.listener.slowRequests.Load() == 3 })
	})
}

// Errors that net/http answers by itself say that they are this server's own. What a handler
// writes is never changed, whatever it looks like.
func TestErrorsBeforeTheHandlerAreSigned(t *testing.T) {
	onBoth(t, func(*config.Limits) {}, func(t *testing.T, p *port) {
		for head, want := range map[string]string{
			"GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n":                "expectation failed",
			"GET / HTTP/1.1\r\n\r\n":                                          "bad request: missing required host header",
			"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: odd\r\n\r\n":     "not implemented",
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: minus\r\n\r\n\r\n": "bad request",
		} {
			c := p.dial(t)
			if _, err := p.ask(c, "/"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, head); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got := resp.Header.Get(jsonhttp.ErrorHeader); got != want {
				t.Errorf("%q is answered %d with %q, want %q", head, resp.StatusCode, got, want)
			}
		}
		const body = "HTTP/1.1 417 Expectation Failed\r\n\r\n"
		p.SetHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, body)
		}), nil, nil)
		resp, err := http.Get(p.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
			t.Errorf("a body becomes %q, %v", got, err)
		}
	})
}

// handshaken is a listener of TLS connections that have made their handshake.
type handshaken struct{ net.Listener }

func (l handshaken) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if err := c.(*tls.Conn).Handshake(); err != nil {
		return nil, err
	}
	return c, nil
}

// Errors of net/http in a TLS connection are signed, too, and neither HTTP/2 nor the TLS state is lost.
func TestErrorsInTLSAreSigned(t *testing.T) {
	with := httptest.NewTLSServer(nil)
	with.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: with.TLS.Certificates, NextProtos: []string{http2, "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	var limits config.Limits
	limits.SetDefaults()
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, "%s for %s", r.Proto, r.TLS.ServerName)
	}
	f := NewServer("test", handshaken{l}, http.HandlerFunc(answer), &limits, nil, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- f.serve() }()
	t.Cleanup(func() {
		if err := errors.Join(f.stop(context.Background()), <-done); err != nil {
			t.Error(err)
		}
	})
	for head, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n":                            "expectation failed",
		"GET / HTTP/1.1\r\n\r\n":                                                      "bad request: missing required host header",
		"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: odd\r\n\r\n":                 "not implemented",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 96<<10) + "\r\n\r\n": "request header fields too large",
	} {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, ServerName: "example.com"})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(waitTime))
		in := bufio.NewReader(c)
		for _, head := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", head} { // an error after an answer is signed, too
			_, _ = io.WriteString(c, head) // a head that is too large is not read to its end
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode == http.StatusNotFound && string(body) != "HTTP/1.1 for example.com" {
				t.Errorf("%.40q is answered %q", head, body)
			}
			if got := resp.Header.Get(jsonhttp.ErrorHeader); resp.StatusCode != http.StatusNotFound && got != want {
				t.Errorf("%.40q is answered %d with %q, want %q", head, resp.StatusCode, got, want)
			}
		}
		_ = c.Close()
	}
	if got := f.Load().LargeHeads; got != 1 {
		t.Errorf("%d heads are counted as too large", got)
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "example.com"}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "HTTP/2.0 for example.com" {
		t.Errorf("HTTP/2 is answered %q, %v", body, err)
	}
}

// Many connections come and go under a small limit; every request gets an
// answer, the books come out even.
func TestConnectionsComeAndGo(t *testing.T) {
	onBoth(t, func(l *config.Limits) { l.Connections = 8 }, func(t *testing.T, p *port) {
		errs := make(chan error, 64)
		for range 64 {
			c := p.dial(t)
			go func() {
				resp, err := p.ask(c, "/")
				if err == nil && resp.StatusCode != 200 && resp.StatusCode != 503 {
					err = fmt.Errorf("status %d", resp.StatusCode)
				}
				// One that was dropped before its request came sees a reset.
				errs <- err
				_ = c.Close()
			}()
		}
		lost := 0
		for range 64 {
			if err := <-errs; err != nil {
				lost++
			}
		}
		if b := p.listener; int64(lost) > b.dropped.Load() {
			t.Errorf("%d got no answer, %d were dropped", lost, b.dropped.Load())
		}
		eventually(t, "all are closed", func() bool { return p.listener.count() == 0 })
	})
}

// shortOfDescriptors is a listener whose second accept finds no descriptor.
type shortOfDescriptors struct {
	net.Listener
	accepts int
}

func (l *shortOfDescriptors) Accept() (net.Conn, error) {
	if l.accepts++; l.accepts == 2 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// TestADescriptorIsNotTakenFromWhoJustCame: its request is on its way.
func TestADescriptorIsNotTakenFromWhoJustCame(t *testing.T) {
	for age, drops := range map[time.Duration]int64{0: 0, minIdle / 2: 0, 2 * minIdle: 1} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		now := time.Now()
		b := newLimitListener(&shortOfDescriptors{Listener: l}, 10, nil)
		b.now = func() time.Time { return now }
		for range 2 { // the second waits until it is accepted
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		first, err := b.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		now = now.Add(age)
		second, err := b.Accept()
		if n := b.dropped.Load(); n != drops || (err == nil) != (drops == 1) {
			t.Errorf("after %v: %d were dropped, %v", age, n, err)
		}
		if second != nil {
			_ = second.Close()
		}
	}
}
