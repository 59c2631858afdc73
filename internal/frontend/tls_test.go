// Ports with TLS, over real connections.

package frontend

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/config"
)

// certificates returns a configuration with a certificate.
func certificates() *tls.Config {
	with := httptest.NewTLSServer(nil)
	with.Close()
	return &tls.Config{Certificates: with.TLS.Certificates}
}

// serveTLS serves a handler with TLS until the test ends. known may be nil.
func serveTLS(t *testing.T, h http.Handler, known Known, limits config.Limits) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	limits.SetDefaults()
	s := NewServer("test", l, nil, &limits, PlainRefusal(), slog.New(slog.DiscardHandler))
	s.SetHandler(h, known, nil)
	if known != nil {
		s.SetExpress(1 << 20)
	}
	s.SetTLS(certificates())
	done := make(chan error, 1)
	go func() { done <- s.serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTime)
		defer cancel()
		checktest.NoError(t, s.stop(ctx), "stop")
		checktest.NoError(t, <-done, "serve")
	})
	return s
}

// dialTLS opens a TLS connection for HTTP/1.1.
func dialTLS(t *testing.T, s *Server) *tls.Conn {
	t.Helper()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: waitTime}, "tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	checktest.MustNoError(t, err, "dial")
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(waitTime))
	return c
}

// overTLS answers with what it was asked, and with a file at /file.
func overTLS(file string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			http.ServeFile(w, r, file)
			return
		}
		text := fmt.Sprintf("%s %s %v", r.Method, r.RequestURI, r.TLS != nil)
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(w, text)
	}
}

// Requests over HTTP/2 and over HTTP/1.1 are answered, files and pipelined requests too, by the lane from the second on.
func TestBothProtocolsOverTLS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("0123456789"), 10_000)
	checktest.MustNoError(t, os.WriteFile(file, content, 0o600), "write")
	for _, known := range []Known{nil, warmPaths{}} {
		s := serveTLS(t, overTLS(file), known, config.Limits{})
		checktest.Equal(t, s.URL(), "https://"+s.Addr().String(), "URL")
		for _, version := range []int{1, 2} {
			transport := &http.Transport{ForceAttemptHTTP2: version == 2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			client := http.Client{Transport: transport, Timeout: waitTime}
			for _, path := range []string{"/warm", "/warm", "/file", "/warm", "/other"} {
				resp, err := client.Get(s.URL() + path)
				checktest.MustNoError(t, err, "HTTP/%d %s", version, path)
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				checktest.NoError(t, err, "HTTP/%d %s", version, path)
				checktest.Equal(t, resp.ProtoMajor, version, "%s: version", path)
				want := "GET " + path + " true"
				if path == "/file" {
					want = string(content)
				}
				if string(body) != want {
					t.Errorf("HTTP/%d %s: %d bytes %.60q, want %.60q", version, path, len(body), body, want)
				}
			}
			checktest.Equal(t, s.Load().Now, 1, "HTTP/%d: connections", version)
			transport.CloseIdleConnections()
			for deadline := time.Now().Add(waitTime); s.Load().Now > 0 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			checktest.Equal(t, s.Load().Now, 0, "HTTP/%d: connections that are left", version)
		}
		c := dialTLS(t, s)
		_, err := io.WriteString(c, strings.Repeat("GET /warm HTTP/1.1\r\nHost: x\r\n\r\nGET /file HTTP/1.1\r\nHost: x\r\n\r\n", 4))
		checktest.MustNoError(t, err, "write")
		in := bufio.NewReader(c)
		for n := range 8 {
			resp, err := http.ReadResponse(in, nil)
			checktest.MustNoError(t, err, "answer %d", n)
			body, err := io.ReadAll(resp.Body)
			checktest.NoError(t, err, "answer %d", n)
			if want := []string{"GET /warm true", string(content)}[n%2]; string(body) != want {
				t.Errorf("answer %d: %d bytes %.60q", n, len(body), body)
			}
		}
		if n := s.Load().Express; (n > 0) != (known != nil) {
			t.Errorf("%d answers of the lane", n)
		}
	}
}

// A port without TLS serves HTTP/2 to clients that know it before.
func TestHTTP2WithoutTLS(t *testing.T) {
	l := newLanes(t)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: waitTime}
	for _, s := range []*Server{l.fast, l.plain} {
		for range 2 {
			resp, err := client.Get(s.URL() + "/warm")
			checktest.MustNoError(t, err, "get")
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			checktest.NoError(t, err, "read")
			checktest.Equal(t, resp.ProtoMajor, 2, "version")
		}
	}
}

// A client that begins no handshake is cut off after the time for a head, and does not delay the end of the server.
func TestHandshakeHasADeadline(t *testing.T) {
	limits := config.Limits{HeadTime: config.Duration(50 * time.Millisecond)}
	s := serveTLS(t, overTLS(""), nil, limits)
	c, err := net.Dial("tcp", s.Addr().String())
	checktest.MustNoError(t, err, "dial")
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(waitTime))
	n, err := c.Read(make([]byte, 1))
	checktest.Equal(t, n, 0, "bytes that were read")
	checktest.True(t, err != nil && !os.IsTimeout(err), "the read ends with %v, not with the end of the connection", err)

	s = serveTLS(t, overTLS(""), warmPaths{}, config.Limits{HeadTime: config.Duration(time.Hour)})
	silent, err := net.Dial("tcp", s.Addr().String())
	checktest.MustNoError(t, err, "dial")
	defer silent.Close()
	_, err = io.ReadAll(io.LimitReader(dialTLS(t, s), 0)) // its handshake comes after the first connection was accepted
	checktest.NoError(t, err, "read")
}

// A request without TLS gets a sentence that says what to do.
func TestRequestWithoutTLSIsTold(t *testing.T) {
	s := serveTLS(t, overTLS(""), warmPaths{}, config.Limits{})
	resp, err := http.Get("http://" + s.Addr().String() + "/")
	checktest.MustNoError(t, err, "get")
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	checktest.NoError(t, err, "read")
	checktest.Equal(t, resp.StatusCode, http.StatusBadRequest, "status")
	if !strings.Contains(string(body), "https only") {
		t.Errorf("it is told %q", body)
	}
}

// Beyond the limit of connections a client gets the refusal over TLS, and an idle connection makes room.
func TestRefusalOverTLS(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s := serveTLS(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-release }), nil,
		config.Limits{Connections: 1})
	c := dialTLS(t, s)
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	checktest.MustNoError(t, err, "write")
	<-inside
	refused := dialTLS(t, s)
	resp, err := http.ReadResponse(bufio.NewReader(refused), nil)
	checktest.MustNoError(t, err, "the refusal")
	checktest.Equal(t, resp.StatusCode, http.StatusServiceUnavailable, "status")
	close(release)
	resp, err = http.ReadResponse(bufio.NewReader(c), nil)
	checktest.MustNoError(t, err, "the answer")
	checktest.Equal(t, resp.StatusCode, http.StatusOK, "status")
}
