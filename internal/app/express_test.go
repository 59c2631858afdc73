// Express: what a warm answer costs on the express lane, through every package.

package app

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// warmClient asks for a held page with gzip, again and again on one connection. It allocates
// nothing.
type warmClient struct {
	testing.TB
	h    *App
	conn net.Conn
	ask  []byte
	buf  [1 << 20]byte
}

func openWarmClient(t testing.TB) *warmClient {
	t.Helper()
	e := openExporting(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- e.h.Serve(ctx, nil, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(e.h.Address("twilio"), "http://"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := e.request("reports", "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json?PageSize=1000")
	c := &warmClient{TB: t, h: e.h, conn: conn}
	c.ask = []byte("GET " + r.URL.RequestURI() + " HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n" +
		"Authorization: " + r.Header.Get("Authorization") + "\r\n\r\n")
	for from := c.express(); c.express() < from+10; { // until the page is compressed and the request known
		c.one()
	}
	return c
}

// trace adds the trace of a request that is not sampled to what the client sends.
func (c *warmClient) trace() {
	c.ask = append(bytes.TrimSuffix(c.ask, []byte("\r\n")), "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n\r\n"...)
	for from := c.express(); c.express() < from+10; {
		c.one()
	}
}

// one asks once.
func (c *warmClient) one() {
	if _, err := c.conn.Write(c.ask); err != nil {
		c.Fatal(err)
	}
	for have, want := 0, -1; want < 0 || have < want; {
		n, err := c.conn.Read(c.buf[have:])
		if err != nil {
			c.Fatal(err)
		}
		have += n
		if end := bytes.Index(c.buf[:have], []byte("\r\n\r\n")); want < 0 && end > 0 {
			_, rest, _ := bytes.Cut(c.buf[:end], []byte("Content-Length: "))
			digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
			length, err := strconv.Atoi(string(digits))
			if err != nil {
				c.Fatalf("%s", c.buf[:end])
			}
			want = end + 4 + length
		}
	}
}

// express is how many answers came from the express lane.
func (c *warmClient) express() int64 { return c.h.ports.servers[1].Load().Express }

// BenchmarkExpress is a warm answer: 0 allocations.
func BenchmarkExpress(b *testing.B) { openWarmClient(b).measure(b) }

// BenchmarkExpressTraced is a warm answer to a client that sends a trace.
func BenchmarkExpressTraced(b *testing.B) {
	c := openWarmClient(b)
	c.trace()
	c.measure(b)
}

// measure measures warm answers.
func (c *warmClient) measure(b *testing.B) {
	from := c.express()
	b.ReportAllocs()
	for b.Loop() {
		c.one()
	}
	if n := c.express() - from; n < int64(b.N) {
		b.Errorf("%d of %d answers came from the express lane", n, b.N)
	}
}
