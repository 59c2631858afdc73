// Sockets: what a connection carries, byte by byte.

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/request"
)

// socket is a server whose connections count what it reads from them.
type socket struct {
	*bed
	server *httptest.Server
	read   atomic.Int64
}

func newSocket(t testing.TB, settings ...func(*http.Server)) *socket {
	t.Helper()
	s := &socket{bed: newBed(t)}
	s.Proxy.o.Now = time.Now
	s.script.write = func(context.Context, request.Write) (*request.Response, error) {
		return &request.Response{Page: page("messages", false, 201, oneMessage)}, nil
	}
	s.server = httptest.NewUnstartedServer(s.Proxy)
	s.server.Listener = counting{s.server.Listener, &s.read}
	for _, set := range settings {
		set(s.server.Config)
	}
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

type counting struct {
	net.Listener
	read *atomic.Int64
}

func (l counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{conn.(*net.TCPConn), l.read}, nil
}

type countingConn struct {
	*net.TCPConn
	read *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// client is one raw connection.
type client struct {
	*testing.T
	net.Conn
	in *bufio.Reader
}

func (s *socket) dial(t *testing.T) *client {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(format string, args ...any) {
	c.Helper()
	if _, err := fmt.Fprintf(c.Conn, format, args...); err != nil {
		c.Fatal(err)
	}
}

// answer reads one answer, interim ones too.
func (c *client) answer(method string) (status int, body string, h http.Header) {
	c.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.Fatalf("no answer: %q %v", line, err)
	}
	if strings.HasPrefix(line, "HTTP/1.1 100 ") {
		if _, err := c.in.ReadString('\n'); err != nil {
			c.Fatal(err)
		}
		return 100, "", nil
	}
	r, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(line), c.in)), &http.Request{Method: method})
	if err != nil {
		c.Fatalf("%q: %v", line, err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		c.Fatal(err)
	}
	if r.Close { // ReadResponse has taken the header out
		r.Header.Set("Connection", "close")
	}
	return r.StatusCode, string(text), r.Header
}

// ended reports whether the server has closed the connection.
func (c *client) ended() bool {
	c.Helper()
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		c.Fatal(err)
	}
	_, err := c.in.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func basic(secret string) string {
	r := httptest.NewRequest("GET", "/", nil)
	r.SetBasicAuth(account, secret)
	return r.Header.Get("Authorization")
}

// The refusal of a client that waits for an invitation comes at once. No byte of the
// body is read, and the connection ends: what follows on it would be body.
func TestRefusedBeforeTheBody(t *testing.T) {
	for _, test := range []struct {
		name, method, path, secret, header string
		length                             string
		want                               int
	}{
		{"unknown caller", "POST", root + "/Messages.json", "wrong", "", "Content-Length: 104857600", 401},
		{"not allowed", "POST", root + "/Messages.json", reader, "", "Content-Length: 104857600", 403},
		{"over the limit", "POST", root + "/Messages.json", demo, "", "Content-Length: 104857600", 413},
		{"one byte over the limit", "POST", root + "/Messages.json", demo, "", "Content-Length: 1025", 413},
		{"unknown path", "POST", root + "/Nothing.json", demo, "", "Content-Length: 104857600", 403},
		{"misspelt path", "POST", root + "/Messages.json/", demo, "", "Content-Length: 104857600", 404},
		{"dots", "POST", root + "/x/../Messages.json", demo, "", "Content-Length: 104857600", 404},
		{"wrong method", "FROB", root + "/Messages.json", demo, "", "Content-Length: 104857600", 405},
		{"method not allowed here", "PUT", root + "/Messages.json", demo, "", "Content-Length: 104857600", 403},
		{"our own path", "POST", "/-/health", demo, "", "Content-Length: 104857600", 405},
		{"a second expectation", "POST", root + "/Messages.json", demo, "Expect: tea\r\n", "Content-Length: 10", 417},
		{"chunked", "POST", root + "/Messages.json", reader, "", "Transfer-Encoding: chunked", 403},
		{"a read", "GET", root + "/Messages.json", demo, "", "Content-Length: 104857600", 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSocket(t)
			s.answers(page("messages", true, 200, `{"messages":[]}`))
			c := s.dial(t)
			begun := time.Now()
			c.send("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nExpect: 100-continue\r\n%s%s\r\n\r\n", test.method, test.path,
				basic(test.secret), test.header, test.length)
			sent := s.read.Load()
			status, body, h := c.answer(test.method)
			took := time.Since(begun)
			if status != test.want || h.Get("Connection") != "close" {
				t.Fatalf("%d, Connection %q: %s", status, h.Get("Connection"), body)
			}
			if status >= 400 {
				wantShape(t, []byte(body), status, map[int]int{401: 20003, 403: 20003, 404: 20404, 405: 20405, 413: 20001, 417: 20001}[status], "")
			}
			if !c.ended() {
				t.Error("the connection goes on")
			}
			if len(s.script.writes()) != 0 {
				t.Error("passed on")
			}
			t.Logf("%d after %v, %d bytes read of it", status, took, s.read.Load())
			if s.read.Load() > 4<<10 || sent > 4<<10 {
				t.Errorf("%d bytes read", s.read.Load())
			}
		})
	}
}

// A client that sends 100 MB without waiting is answered too, and little is read.
func TestRefusedWhileItSends(t *testing.T) {
	for name, header := range map[string]string{"waiting announced": "Expect: 100-continue\r\n", "not announced": ""} {
		t.Run(name, func(t *testing.T) {
			s := newSocket(t)
			c := s.dial(t)
			c.send("POST %s/Messages.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n%sContent-Length: 104857600\r\n\r\n", root, basic(demo),
				header)
			go func() {
				block := bytes.Repeat([]byte("x"), 1<<20)
				for range 100 {
					if _, err := c.Write(block); err != nil {
						return
					}
				}
			}()
			status, _, h := c.answer("POST")
			if status != 413 || h.Get("Connection") != "close" {
				t.Errorf("%d, Connection %q", status, h.Get("Connection"))
			}
			if !c.ended() {
				t.Error("the connection goes on")
			}
			t.Logf("%d bytes read of 100 MB", s.read.Load())
			if s.read.Load() > 64<<10 {
				t.Errorf("%d bytes read", s.read.Load())
			}
		})
	}
}

// A client that may send is invited before the request goes upstream.
func TestInvitedBeforeUpstreamIsAsked(t *testing.T) {
	s := newSocket(t)
	var asked atomic.Bool
	s.script.write = func(_ context.Context, w request.Write) (*request.Response, error) {
		asked.Store(true)
		return &request.Response{Page: page("messages", false, 201, oneMessage)}, nil
	}
	c := s.dial(t)
	begun := time.Now()
	c.send("POST %s/Messages.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nExpect: 100-Continue\r\nContent-Length: 9\r\n\r\n", root,
		basic(demo))
	if status, _, _ := c.answer("POST"); status != 100 || asked.Load() {
		t.Fatalf("%d, upstream asked %v", status, asked.Load())
	}
	invited := time.Since(begun)
	c.send("To=1&x=yz")
	status, body, h := c.answer("POST")
	checktest.Equal(t, status, 201, "status; body %s", body)
	checktest.Equal(t, body, oneMessage, "body")
	checktest.Equal(t, h.Get("Connection"), "", `h.Get("Connection"); body %s`, body)
	t.Logf("invited after %v, answered after %v", invited, time.Since(begun))
	if got := string(s.script.writes()[0].Body); got != "To=1&x=yz" {
		t.Errorf("passed on %q", got)
	}
	// The connection goes on.
	s.answers(page("messages", false, 200, oneMessage))
	c.send("GET %s/Messages/SM1.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", root, basic(demo))
	if status, _, _ := c.answer("GET"); status != 200 {
		t.Errorf("after it: %d", status)
	}
}

// An unknown expectation is 417 (RFC 9110, 10.1.1); HTTP/1.0 has none.
func TestUnknownExpectations(t *testing.T) {
	for header, want := range map[string]int{
		"Expect: tea": 417, "Expect: 100-continue, tea": 417, "Expect: 100-continue\r\nExpect: tea": 417,
		"Expect: tea\r\nExpect: 100-continue": 417,
		"Expect: 100-continue":                200, "Expect: 100-CONTINUE": 200, "Expect:": 200,
	} {
		s := newSocket(t)
		s.answers(page("messages", false, 200, oneMessage))
		c := s.dial(t)
		c.send("GET %s/Messages/SM1.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n%s\r\n\r\n", root, basic(demo), header)
		if status, body, _ := c.answer("GET"); status != want {
			t.Errorf("%q: %d %s, want %d", header, status, body, want)
		}
	}
}

// After an error the connection goes on when what was not read is short, and
// what follows is the next request.
func TestConnectionsAfterErrors(t *testing.T) {
	for _, test := range []struct {
		name, request string
		want          int
		goesOn        bool
	}{
		{"a refused read", "GET " + root + "/Nothing.json HTTP/1.1\r\nHost: x\r\n\r\n", 403, true},
		{"a short refused write", "POST " + root + "/Calls.json HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nGET / ", 403, true},
		{"a longer one", "POST " + root + "/Calls.json HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n" + strings.Repeat("x", 65536), 403,
			true},
		{"a long one", "POST " + root + "/Calls.json HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n" + strings.Repeat("x", 65537), 403,
			false},
		{"too long for upstream", "POST " + root + "/Messages.json HTTP/1.1\r\nHost: x\r\nContent-Length: 1025\r\n\r\n" +
			strings.Repeat("x", 1025), 413, true},
		{"chunked and too long", "POST " + root + "/Messages.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" +
			strings.Repeat("x", 2048) + "\r\n0\r\n\r\n", 413, false},
		{"chunked", "POST " + root + "/Messages.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nTo=1\r\n0\r\n\r\n", 201,
			false},
		{"malformed chunks", "POST " + root + "/Messages.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nTo=1\r\n0\r\n\r\n",
			400, false},
		{"a read with a body", "GET " + root + "/Messages/SM1.json HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /", 200, true},
		{"an unknown method", "FROB " + root + "/Messages.json HTTP/1.1\r\nHost: x\r\n\r\n", 405, false},
		{"HTTP/1.0", "GET " + root + "/Messages/SM1.json HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSocket(t)
			s.answers(page("messages", false, 200, oneMessage))
			c := s.dial(t)
			line, rest, _ := strings.Cut(test.request, "\r\n")
			c.send("%s\r\nAuthorization: %s\r\n%s", line, basic(demo), rest)
			status, body, h := c.answer("GET")
			if status != test.want {
				t.Fatalf("%d %s", status, body)
			}
			if (h.Get("Connection") != "close") != test.goesOn {
				t.Errorf("Connection %q", h.Get("Connection"))
			}
			if !test.goesOn {
				if !c.ended() {
					t.Error("the connection goes on")
				}
				return
			}
			c.send("GET %s/Messages/SM1.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", root, basic(masked))
			if status, body, _ := c.answer("GET"); status != 200 || body != oneMasked {
				t.Errorf("the next request: %d %s", status, body)
			}
		})
	}
}

// A body that does not come holds up neither the answer nor the connection for
// longer than a moment.
func TestASlowBodyThatNobodyReads(t *testing.T) {
	s := newSocket(t)
	c := s.dial(t)
	begun := time.Now()
	c.send("POST %s/Calls.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 100\r\n\r\nTo=", root, basic(demo))
	status, _, h := c.answer("POST")
	checktest.Equal(t, status, 403, "status")
	checktest.Equal(t, h.Get("Connection"), "close", `h.Get("Connection")`)
	checktest.True(t, c.ended(), "c.ended() is false")
	if took := time.Since(begun); took > 5*drainTime {
		t.Errorf("took %v", took)
	}
}

// A body that stops is 408.
func TestABodyThatStops(t *testing.T) {
	s := newSocket(t, func(server *http.Server) { server.ReadTimeout = 300 * time.Millisecond })
	c := s.dial(t)
	c.send("POST %s/Messages.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 100\r\n\r\nTo=", root, basic(demo))
	status, body, h := c.answer("POST")
	wantShape(t, []byte(body), 408, 20001, "in time")
	checktest.Equal(t, status, 408, "status")
	checktest.Equal(t, h.Get("Connection"), "close", `h.Get("Connection")`)
	checktest.Equal(t, len(s.script.writes()), 0, "len(s.script.writes())")
}

// Writes have slots; without a free one the refusal comes before the body is read.
func TestTooManyWrites(t *testing.T) {
	s := newSocket(t)
	s.Proxy.writes.SetLimits(3, 2)
	release := make(chan struct{})
	s.script.write = func(context.Context, request.Write) (*request.Response, error) {
		<-release
		return &request.Response{Page: page("messages", false, 201, oneMessage)}, nil
	}
	begin := func(secret string) *client {
		c := s.dial(t)
		c.send("POST %s/Messages.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", root,
			basic(secret))
		return c
	}
	var running []*client
	for i, secret := range []string{demo, demo, masked} {
		c := begin(secret)
		if status, _, _ := c.answer("POST"); status != 100 {
			t.Fatalf("write %d: %d", i, status)
		}
		c.send("To=1")
		running = append(running, c)
		if i == 1 { // one credential has half of them
			status, body, h := begin(demo).answer("POST")
			wantShape(t, []byte(body), 429, 20429, "not sent")
			if status != 429 || h.Get("Retry-After") == "" {
				t.Errorf("%d %v", status, h)
			}
		}
	}
	if status, _, _ := begin(masked).answer("POST"); status != 429 {
		t.Errorf("beyond all places: %d", status)
	}
	close(release)
	for _, c := range running {
		if status, _, _ := c.answer("POST"); status != 201 {
			t.Errorf("%d", status)
		}
	}
	if status, _, _ := begin(demo).answer("POST"); status != 100 {
		t.Errorf("after them: %d", status)
	}
}

// curl waits a second for an invitation that does not come.
func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Log("curl is not installed; the raw sockets of the other tests stand for it")
		return
	}
	s := newSocket(t)
	s.Proxy.o.MaxBody = 4 << 20
	upload := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(upload, bytes.Repeat([]byte("x"), 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ secret, want string }{{demo, "201"}, {reader, "403"}} {
		s.read.Store(0)
		before := len(s.script.writes())
		out, err := exec.CommandContext(t.Context(), curl, "--silent", "--show-error", "--output", os.DevNull, "--http1.1", "--user",
			account+":"+test.secret, "--data-binary", "@"+upload,
			"--header", "Expect: 100-continue", "--expect100-timeout", "60", "--write-out", "%{http_code} %{time_total} %{size_upload}",
			s.server.URL+root+"/Messages.json").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("as %s: status, seconds, bytes sent: %s; bytes read by the server: %d", test.secret, out, s.read.Load())
		status, rest, _ := strings.Cut(string(out), " ")
		seconds, _, _ := strings.Cut(rest, " ")
		{
			took, err := strconv.ParseFloat(seconds, 64)
			checktest.Equal(t, status, test.want, "as %s: status; out %s", test.secret, out)
			checktest.MustNoError(t, err, "as %s; out %s", test.secret, out)
			checktest.True(t, took <= 30, "as %s: took is %v, want <= 30; out %s", test.secret, took, out)
		}
		if test.want == "201" && (len(s.script.writes()) != before+1 || len(s.script.writes()[before].Body) != 2<<20) {
			t.Error("the upload did not arrive whole")
		}
		if test.want == "403" && (s.read.Load() > 64<<10 || len(s.script.writes()) != before) {
			t.Errorf("%d bytes read of a refused upload", s.read.Load())
		}
	}
}
