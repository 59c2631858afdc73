// The express lane beside net/http: what comes back is the same, byte streams of any kind
// included.

package frontend

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/textproto"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/sample"
)

// lanes are two servers with one handler; one of them never has anything ready.
type lanes struct {
	testing.TB
	fast, plain *Server
	asked       atomic.Int64
}

// ServeHTTP answers with what it was asked.
func (l *lanes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.asked.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "no body", http.StatusBadRequest)
		return
	}
	text := fmt.Sprintf("%s %s %s %v %q", r.Method, r.RequestURI, r.Host, r.Header, body)
	if n, err := strconv.Atoi(r.URL.Query().Get("long")); err == nil {
		text += strings.Repeat("x", min(n, 1<<20))
	}
	w.Header()["X-Of"] = []string{"this", "and\r\nthat: x"}
	w.Header().Set("X-Method", r.Method)
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if r.URL.Path == "/warm/304" {
		w.Header().Del("Content-Length")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, text)
}

// warmPaths knows the requests below /warm, which two fields trace.
type warmPaths struct{}

func (warmPaths) PrepareRepeat(r *http.Request) (context.Context, func() (any, bool)) {
	if strings.HasPrefix(r.URL.Path, "/warm") {
		return context.Background(), func() (any, bool) { return nil, true }
	}
	return nil, nil
}

func (warmPaths) CanIgnore(name string) bool { return name == "Traceparent" || name == "X-Request-Id" }

func newLanes(t testing.TB) *lanes {
	l := &lanes{TB: t}
	l.fast, l.plain = l.serve(warmPaths{}), l.serve(nil)
	return l
}

func (l *lanes) serve(known Known) *Server {
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	limits := config.Limits{}
	limits.SetDefaults()
	s := NewServer("test", nl, nil, &limits, PlainRefusal(), slog.New(slog.DiscardHandler))
	s.SetHandler(l, known, nil)
	if known != nil {
		s.SetExpress(1 << 20)
	}
	done := make(chan error, 1)
	go func() { done <- s.serve() }()
	l.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.stop(ctx); err != nil {
			l.Error(err)
		}
		if err := <-done; err != nil {
			l.Error(err)
		}
	})
	return s
}

// got is one answer.
type got struct {
	Status int
	Header http.Header
	Body   string
}

// ask sends bytes in pieces, then no more, and reads what comes back until the end.
func (l *lanes) ask(s *Server, pieces ...[]byte) (all []got, rest string) {
	l.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		l.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	sent := make(chan struct{})
	go func() {
		for _, p := range pieces {
			if _, err := c.Write(p); err != nil {
				break
			}
			runtime.Gosched() // so that it may come by itself
		}
		_ = c.(*net.TCPConn).CloseWrite()
		close(sent)
	}()
	in := textproto.NewReader(bufio.NewReader(c))
	for {
		line, err := in.ReadLine()
		if err != nil {
			<-sent
			if errors.Is(err, io.EOF) {
				return all, ""
			}
			return all, err.Error()
		}
		_, line, _ = strings.Cut(line, " ")
		status, _, _ := strings.Cut(line, " ")
		header, err := in.ReadMIMEHeader()
		if err != nil {
			return all, err.Error()
		}
		one := got{Header: http.Header(header)}
		one.Status, _ = strconv.Atoi(status)
		body := io.Reader(in.R)
		if n, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64); err == nil {
			body = io.LimitReader(body, n)
		}
		if header.Get("X-Method") != http.MethodHead && one.Status >= 200 && one.Status != http.StatusNotModified {
			text, err := io.ReadAll(body)
			if err != nil {
				return all, err.Error()
			}
			one.Body = string(text)
		}
		one.Header.Del("Date")
		all = append(all, one)
	}
}

// same asks both servers, and wants what the plain one says from the other.
func (l *lanes) same(pieces ...[]byte) []got {
	l.Helper()
	want, end := l.ask(l.plain, pieces...)
	have, ended := l.ask(l.fast, pieces...)
	if end != "" || ended != "" {
		// A connection that ends with bytes unread is reset, and what the client has not read is lost.
		n := min(len(have), len(want))
		end, ended, have, want = "", "", have[:n], want[:n]
	}
	if (len(have) > 0 || len(want) > 0) && !reflect.DeepEqual(have, want) || ended != end {
		l.Errorf("%q\nby the lane %+v %q\nby net/http %+v %q", pieces, have, ended, want, end)
	}
	return have
}

const host = " HTTP/1.1\r\nHost: x\r\n"

// TestExpressAnswersWhatItHasSeen: the second request with a head is answered by the lane,
// as net/http would have answered it.
func TestExpressAnswersWhatItHasSeen(t *testing.T) {
	l := newLanes(t)
	for _, one := range []struct {
		request string
		lane    bool
	}{
		{"GET /warm/a" + host + "\r\n", true},
		{"HEAD /warm/a" + host + "\r\n", true},
		{"GET /warm/a?b=%20" + host + "Accept: */*\r\nConnection: keep-alive\r\n\r\n", true},
		{"GET /warm/304" + host + "\r\n", true},
		{"GET /warm/a?long=200000" + host + "\r\n", true},
		{"GET /cold/a" + host + "\r\n", false},
		{"POST /warm/a" + host + "\r\n", false},
		{"POST /warm/a" + host + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", false},
		{"POST /warm/a" + host + "Content-Length: +2\r\n\r\nhi", false},
		{"POST /warm/a" + host + "Content-Length: 2, 2\r\n\r\nhi", false},
		{"POST /warm/a" + host + "Content-Length: 2\r\n\r\nhi", false},
		{"GET /warm/a" + host + "Content-Length: 0\r\n\r\n", false},
		{"GET /warm/a" + host + "Connection: close\r\n\r\n", false},
		{"GET /warm/a HTTP/1.0\r\nHost: x\r\n\r\n", false},
		{"GET http://x/warm/a" + host + "\r\n", false},
		{"GET /warm/a" + host + "Long: " + strings.Repeat("x", 5000) + "\r\n\r\n", false},
		{"GET /warm/a" + host + " folded\r\n\r\n", false},
		{"GET /warm/a" + host + "X: a\r\n folded: b\r\n\r\n", false},
		{"POST /x" + host + "X: a\r\n Content-Length: 3\r\n\r\n", false},
		{"GET /warm/a HTTP/1.1\nHost: x\n\n", false},
		{"GET /warm/a" + host + "X: a\x00b\r\n\r\n", false},
		{"GET /warm/a" + host + "X: a\rb\r\n\r\n", false},
		{"GET /warm/a HTTP/1.1\r\n\r\n", false},
		{"GET /warm/a" + host + "Host: y\r\n\r\n", false},
		{"GET /warm/a" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		{"GET /warm/a" + host + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", false},
		{"OPTIONS *" + host + "\r\n", false},
		{"GET /warm/a" + host + "Expect: 100-continue\r\n\r\n", false},
	} {
		l.same([]byte(one.request))
		before := l.fast.express.answered.Load()
		l.same([]byte(one.request))
		l.same([]byte(one.request + "GET /warm/after" + host + "\r\n"))
		if n := l.fast.express.answered.Load() - before; (n >= 2) != one.lane {
			t.Errorf("%q: %d by the lane, want it %v", one.request, n, one.lane)
		}
	}
}

// TestExpressKeepsTheOrder: requests that come together are answered in their order,
// whoever answers each; a connection that net/http has had comes back to the lane.
func TestExpressKeepsTheOrder(t *testing.T) {
	l := newLanes(t)
	warm, cold := "GET /warm/a"+host+"\r\n", "GET /cold/a"+host+"\r\n"
	l.same([]byte(warm))
	write := "POST /x" + host + "Content-Length: 3\r\n\r\nabc"
	all := []byte(warm + cold + warm + write + warm + cold + cold + warm)
	for range 20 {
		before := l.fast.express.answered.Load()
		l.same(all)
		if n := l.fast.express.answered.Load() - before; n != 5 {
			t.Errorf("%d by the lane, want the 4 warm ones, and one that was begun early", n)
		}
	}
	for cut := 1; cut < len(all); cut += 7 {
		l.same(all[:cut], all[cut:])
	}
}

// TestExpressOverRandomStreams: requests and half requests of many kinds, in pieces of any
// size: the answers are those of net/http alone.
func TestExpressOverRandomStreams(t *testing.T) {
	l := newLanes(t)
	rng := rand.New(rand.NewPCG(sample.Seed(t), 0))
	rounds := sample.Count(150, 10_000)
	parts := []string{
		"GET /warm/a" + host + "\r\n", "GET /warm/b" + host + "\r\n", "HEAD /warm/a" + host + "\r\n", "GET /cold" + host + "\r\n",
		"POST /x" + host + "Content-Length: 3\r\n\r\nabc", "POST /x" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		"GET /warm/a HTTP/1.1\nHost: x\n\n", "\r\n", "GET /warm/a" + host + "Connection: close\r\n\r\n", "GET /warm/a" + host, "\x00", "G",
		"GET /warm/a" + host + "X: \xff\r\n\r\n", "GET /warm/b?long=40000" + host + "\r\n",
		"GET /warm/a" + host + "Traceparent: 1\r\n\r\n", "GET /warm/a" + host + "TRACEPARENT:\t2 \r\nX-Request-Id: 1\r\ntraceparent:3\r\n\r\n",
		"GET /warm/a" + host + "Traceparent: a\rb\r\n\r\n", "GET /warm/a" + host + "Traceparent: a\r\n b\r\n\r\n",
	}
	for range rounds {
		var all []byte
		for range 1 + rng.IntN(8) {
			i := rng.IntN(len(parts))
			if rng.IntN(2) == 0 {
				i = rng.IntN(3)
			}
			// After a POST net/http overlooks an empty line. It has not seen what the lane answers.
			if parts[i] != "\r\n" || !bytes.Contains(all, []byte("POST")) {
				all = append(all, parts[i]...)
			}
		}
		var pieces [][]byte
		for rng.IntN(3) > 0 && len(all) > 1 {
			n := 1 + rng.IntN(len(all)-1)
			pieces, all = append(pieces, all[:n]), all[n:]
		}
		l.same(append(pieces, all)...)
	}
	if l.fast.express.answered.Load() == 0 {
		t.Error("the lane answered nothing")
	}
}

// FuzzExpress: any bytes, cut anywhere, are answered as by net/http alone.
func FuzzExpress(f *testing.F) {
	warm := "GET /warm/a" + host + "\r\n"
	for _, s := range []string{
		warm + warm, "HEAD /warm/a" + host + "\r\n" + warm, "PUT /x" + host + "Content-Length: 3\r\n\r\nabc" + warm,
		"PUT /x" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + warm,
		"GET /warm/a" + host + "Content-Length: 0\r\n\r\n" + warm,
		"GET http://x/warm/a" + host + "\r\n" + warm, "GET /warm/a" + host + "X: a\r\n folded: b\r\n\r\n" + warm, warm + "\r\n" + warm,
		"DELETE /x" + host + "Content-Length: 1\r\nTransfer-Encoding: identity\r\n\r\n" + warm,
		"GET /warm/a HTTP/1.0\r\n\r\n" + warm,
		"PATCH /x" + host + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx" + warm,
		warm + "GET /warm/b" + host + "Connection: close\r\n\r\n" + warm,
		warm + "GET /warm/a" + host + "Traceparent: 1\r\n\r\nGET /warm/a" + host + "traceparent: 2\r\nX-Request-Id:\r\n\r\n" + warm,
	} {
		f.Add([]byte(s), uint16(20))
	}
	l := newLanes(f)
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		if len(data) > 16<<10 || bytes.Contains(data, []byte("POST")) {
			return // after a POST net/http overlooks an empty line, and it has not seen what the lane answers
		}
		l.TB = t
		for range 2 { // the second time the lane knows some heads
			l.same(data[:min(int(cut), len(data))], data[min(int(cut), len(data)):])
		}
	})
}
