// Benchmarks: a warm page of 100 KB through the proxy and from a bare handler.

package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/request"
)

// benchPage is a list of 50 calls, 100 KB.
func benchPage() *understudy.Page {
	row := `{"sid": "CA00000000000000000000000000000001", "from": "+13051416799", "to": "+13051416798", "status": "completed", "uri": "` +
		strings.Repeat("/2010-04-01/Accounts/AC1/Calls/CA1.json", 48) + `"}`
	return page("calls", true, 200, `{"calls": [`+strings.Repeat(row+", ", 49)+row+`],"page":0}`)
}

func benchBed(b *testing.B) *bed {
	p := newBed(b)
	p.answers(benchPage())
	p.Proxy.o.Now = time.Now
	p.o.Log = accesslog.New(io.Discard)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.o.Log.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	// The script remembers what it is asked; a benchmark must not.
	p.Proxy.o.Mirror = still{p.script.page}
	return p
}

// still answers every read alike.
type still struct {
	page func(context.Context, request.Request) (*request.Response, error)
}

func (s still) Answer(ctx context.Context, a request.Request) (*request.Response, error) {
	return s.page(ctx, a)
}

func (s still) Write(context.Context, request.Write) (*request.Response, error) {
	return nil, understudy.ErrUnavailable
}

// sink is a response that is not read.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

func benchmarkHandler(b *testing.B, secret string) {
	p := benchBed(b)
	r := httptest.NewRequest("GET", root+"/Calls.json?PageSize=50", nil)
	r.SetBasicAuth(account, secret)
	b.ReportAllocs()
	for b.Loop() {
		p.ServeHTTP(&sink{http.Header{}}, r)
	}
}

func BenchmarkHandlerWhole(b *testing.B) { benchmarkHandler(b, demo) }

func BenchmarkHandlerMasked(b *testing.B) { benchmarkHandler(b, masked) }

// over measures a handler over a kept-alive loopback connection, with a client
// as lean as can be.
func over(b *testing.B, h http.Handler) {
	server := httptest.NewServer(h)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	r := httptest.NewRequest("GET", "/", nil)
	r.SetBasicAuth(account, demo)
	req := []byte("GET " + root + "/Calls.json?PageSize=50 HTTP/1.1\r\nHost: x\r\nAuthorization: " + r.Header.Get("Authorization") +
		"\r\n\r\n")
	buf := make([]byte, 256<<10)
	for b.Loop() {
		if _, err := conn.Write(req); err != nil {
			b.Fatal(err)
		}
		have, want := 0, -1
		for want < 0 || have < want {
			n, err := conn.Read(buf[have:])
			if err != nil {
				b.Fatal(err)
			}
			have += n
			if end := bytes.Index(buf[:have], []byte("\r\n\r\n")); want < 0 && end > 0 {
				_, rest, _ := bytes.Cut(buf[:end], []byte("Content-Length: "))
				digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
				length, err := strconv.Atoi(string(digits))
				if err != nil {
					b.Fatalf("%s", buf[:end])
				}
				want = end + 4 + length
			}
		}
	}
}

func BenchmarkLoopbackProxy(b *testing.B) { over(b, benchBed(b).Proxy) }

// BenchmarkLoopbackBare is net/http alone with the same bytes.
func BenchmarkLoopbackBare(b *testing.B) {
	body := benchPage().Body
	length := strconv.Itoa(len(body))
	over(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(body)
	}))
}
