// A server hands its connections over to the next one.

package frontend

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/internal/sample"
)

// succession is a row of servers on one port, of which one runs at a time.
type succession struct {
	*testing.T
	lane    bool
	tls     *tls.Config // nil without TLS
	clock   func() time.Time
	handler http.Handler
	now     *Server
	end     context.CancelCauseFunc
	ended   chan error
	count   int // how many servers have begun
}

// start starts the next server with the sockets of the former one.
func (s *succession) start(value string) {
	s.Helper()
	in, err := OpenInherited(func(name string) (string, bool) { return value, name == SocketsVariable && value != "" })
	checktest.MustNoError(s, err, "inherit")
	l, conns := in.Take("test", "x")
	if l == nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		checktest.MustNoError(s, err, "listen")
	}
	checktest.MustNoError(s, in.Close(), "close the sockets that are left")
	var limits config.Limits
	limits.SetDefaults()
	s.now = NewServer("test", l, nil, &limits, PlainRefusal(), slog.New(slog.DiscardHandler))
	s.now.Use("x", conns)
	if s.clock != nil {
		s.now.listener.now = s.clock
	}
	if s.lane {
		s.now.SetExpress(1 << 20)
	}
	if s.tls != nil {
		s.now.SetTLS(s.tls)
	}
	s.now.SetHandler(s.handler, warmPaths{}, nil)
	ctx, end := context.WithCancelCause(context.Background())
	s.end, s.ended = end, make(chan error, 1)
	s.count++
	go func(f *Server, ended chan error) { ended <- Run(ctx, []*Server{f}, nil) }(s.now, s.ended)
}

// restart replaces the server by the next one.
func (s *succession) restart() {
	s.Helper()
	s.end(ErrRestart)
	s.startNext()
}

// startNext starts the next server when the former one has ended.
func (s *succession) startNext() {
	s.Helper()
	checktest.MustNoError(s, <-s.ended, "end of server %d", s.count)
	s.start(DescribeSockets([]*Server{s.now}))
}

// newSuccession starts the first server.
func newSuccession(t *testing.T, lane bool, h http.Handler) *succession {
	return (&succession{T: t, lane: lane, handler: h}).begin()
}

func (s *succession) begin() *succession {
	s.Helper()
	s.start("")
	s.Cleanup(func() {
		s.end(nil)
		checktest.NoError(s, <-s.ended, "end of the last server")
	})
	return s
}

// client is one connection, which is never opened again.
type client struct {
	net.Conn
	in *bufio.Reader
}

func (s *succession) dial() client {
	s.Helper()
	c, err := net.Dial("tcp", s.now.Addr().String())
	checktest.MustNoError(s, err, "dial")
	s.Cleanup(func() { _ = c.Close() })
	checktest.MustNoError(s, c.SetDeadline(time.Now().Add(waitTime)), "deadline")
	return client{c, bufio.NewReader(c)}
}

// ask sends a request in several pieces and returns the body of the answer.
func (c client) ask(pieces ...string) (string, error) {
	for _, piece := range pieces {
		if _, err := io.WriteString(c, piece); err != nil {
			return "", err
		}
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func head(method, path string) string { return method + " " + path + " HTTP/1.1\r\nHost: x\r\n" }

// TestRestartLosesNoRequest: clients with one connection each ask without a pause while servers follow one another.
func TestRestartLosesNoRequest(t *testing.T) {
	t.Parallel()
	for _, lane := range []bool{false, true} {
		t.Run(fmt.Sprintf("lane %v", lane), func(t *testing.T) {
			t.Parallel()
			s := newSuccession(t, lane, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, _ = fmt.Fprint(w, r.Method, " ", r.URL.Path, " ", string(body))
			}))
			var clients sync.WaitGroup
			var done atomic.Bool
			var asked atomic.Int64
			for n := range 6 {
				c := s.dial()
				clients.Go(func() {
					for i := 0; !done.Load(); i++ {
						path := fmt.Sprintf("/warm/%d", n)
						want, pieces := "GET "+path+" ", []string{head("GET", path) + "\r\n"}
						switch i % 4 {
						case 1: // a path that the lane does not know
							path = fmt.Sprintf("/cold/%d/%d", n, i)
							want, pieces = "GET "+path+" ", []string{head("GET", path), "\r\n"}
						case 2:
							want, pieces = "POST /write text", []string{head("POST", "/write") + "Content-Length: 4\r\n\r\nte", "xt"}
						case 3: // net/http reads the rest of this connection
							want = "POST /chunks text"
							pieces = []string{head("POST", "/chunks") + "Transfer-Encoding: chunked\r\n\r\n", "4\r\ntext\r\n0\r\n\r\n"}
						}
						if got, err := c.ask(pieces...); err != nil || got != want {
							t.Errorf("client %d, request %d: %q, %v, want %q", n, i, got, err, want)
							return
						}
						asked.Add(1)
					}
				})
			}
			idle := s.dial()
			for range sample.Count(10, 200) {
				before := asked.Load()
				s.restart()
				for asked.Load() < before+20 && !t.Failed() {
					_, err := idle.ask(head("GET", "/warm") + "\r\n")
					checktest.MustNoError(t, err, "a request on a connection that waited")
				}
			}
			done.Store(true)
			clients.Wait()
			t.Logf("%d servers answered %d requests on 6 connections", s.count, asked.Load())
		})
	}
}

// TestRestartWaitsForAnswers: the answer that is on its way is finished. A request that has arrived in part is answered by either server.
// New connections wait for the next server.
func TestRestartWaitsForAnswers(t *testing.T) {
	t.Parallel()
	for _, lane := range []bool{false, true} {
		t.Run(fmt.Sprintf("lane %v", lane), func(t *testing.T) {
			t.Parallel()
			inside, release := make(chan struct{}), make(chan struct{})
			s := newSuccession(t, lane, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					close(inside)
					<-release
				}
				_, _ = io.WriteString(w, "whole")
			}))
			slow, late := s.dial(), s.dial()
			answers, rest := make(chan error, 1), make(chan error, 1)
			await := func(answer chan<- error, c client, text string) {
				body, err := c.ask(text)
				if err == nil && body != "whole" {
					err = fmt.Errorf("answer %q", body)
				}
				answer <- err
			}
			go await(answers, slow, head("GET", "/slow")+"\r\n")
			<-inside
			_, err := late.ask(head("GET", "/warm") + "\r\n")
			checktest.MustNoError(t, err, "first request")
			_, err = io.WriteString(late, head("GET", "/warm"))
			checktest.MustNoError(t, err, "first half of a request")
			s.end(ErrRestart)
			for !s.now.listener.restarts.Load() {
				time.Sleep(time.Millisecond)
			}
			newcomer := s.dial()
			_, err = io.WriteString(newcomer, head("GET", "/new")+"\r\n")
			checktest.MustNoError(t, err, "a request on a new connection")
			go await(rest, late, "\r\n")
			select {
			case <-s.ended:
				t.Error("the server has ended before its answer")
			default:
			}
			close(release)
			checktest.NoError(t, <-answers, "the answer that was on its way")
			s.startNext()
			checktest.NoError(t, <-rest, "the answer to the request that had arrived in part")
			for name, c := range map[string]client{"slow": slow, "late": late} {
				_, err := c.ask(head("GET", "/again") + "\r\n")
				checktest.NoError(t, err, "%s connection at the next server", name)
			}
			body, err := newcomer.ask()
			checktest.NoError(t, err, "answer to the new connection")
			checktest.Equal(t, body, "whole", "answer to the new connection")
		})
	}
}

// TestRestartTellsHTTP2Clients: a client of HTTP/2 is told to open another connection, and none of its requests fails.
func TestRestartTellsHTTP2Clients(t *testing.T) {
	t.Parallel()
	for _, lane := range []bool{false, true} {
		t.Run(fmt.Sprintf("lane %v", lane), func(t *testing.T) {
			t.Parallel()
			s := newSuccession(t, lane, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
			var protocols http.Protocols
			protocols.SetUnencryptedHTTP2(true)
			c := http.Client{Transport: &http.Transport{Protocols: &protocols}, Timeout: waitTime}
			t.Cleanup(c.CloseIdleConnections)
			url := s.now.URL()
			var done atomic.Bool
			var asked atomic.Int64
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for !done.Load() {
					resp, err := c.Get(url)
					checktest.NoError(t, err, "request %d", asked.Load())
					if err != nil {
						return
					}
					checktest.Equal(t, resp.Proto, "HTTP/2.0", "protocol")
					_ = resp.Body.Close()
					asked.Add(1)
				}
			}()
			for range sample.Count(3, 50) {
				for before := asked.Load(); asked.Load() < before+20 && !t.Failed(); time.Sleep(time.Millisecond) {
				}
				s.restart()
			}
			done.Store(true)
			<-ended
			t.Logf("%d servers answered %d requests", s.count, asked.Load())
		})
	}
}

// TestRestartAnswersNewConnectionsWithTLS: clients do not repeat a request that fails on a new connection. So a connection whose handshake
// begins after the restart has begun is answered, by either server. A connection that was used before is closed while it is idle.
func TestRestartAnswersNewConnectionsWithTLS(t *testing.T) {
	t.Parallel()
	for _, lane := range []bool{false, true} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("lane %v, HTTP/%d", lane, version), func(t *testing.T) {
				t.Parallel()
				began := time.Now() // the clock stands still: the server waits for as long as the client needs
				s := (&succession{T: t, lane: lane, tls: certificates(), clock: func() time.Time { return began },
					handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}).begin()
				kept := dialTLS(t, s.now)
				used := client{kept, bufio.NewReader(kept)}
				_, err := used.ask(head("GET", "/warm") + "\r\n")
				checktest.MustNoError(t, err, "a request before the restart")
				accepted := make(chan net.Conn, 1)
				accepted <- s.dial()
				for s.now.Load().Now < 2 {
					time.Sleep(time.Millisecond)
				}
				s.end(ErrRestart)
				_, err = used.in.ReadByte()
				checktest.Equal(t, err, io.EOF, "end of the connection that was used")
				c := http.Client{Timeout: waitTime, Transport: &http.Transport{
					ForceAttemptHTTP2: version == 2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
					DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
						select {
						case c := <-accepted:
							return c, nil
						default: // HTTP/2 may have said that the request is to be repeated
							return new(net.Dialer).DialContext(ctx, network, address)
						}
					},
				}}
				t.Cleanup(c.CloseIdleConnections)
				answer := make(chan error, 1)
				url := s.now.URL()
				go func() {
					resp, err := c.Get(url)
					if err == nil {
						err = resp.Body.Close()
						checktest.Equal(t, resp.ProtoMajor, version, "version")
					}
					answer <- err
				}()
				s.startNext()
				checktest.NoError(t, <-answer, "the request on a new connection")
			})
		}
	}
}

func TestWrongSocketsAreRefused(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"test=x a": "invalid syntax", "test=x 99999": "bad file descriptor"} {
		_, err := OpenInherited(func(name string) (string, bool) { return value, name == SocketsVariable })
		checktest.True(t, err != nil && strings.Contains(err.Error(), want), "error of %q is %v, want %q", value, err, want)
	}
}
