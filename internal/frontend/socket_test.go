// The socket of the lane: clients that read slowly, that are reset, and that wait.

package frontend

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// dial opens a connection, and has the lane know a request.
func (l *lanes) dial(request string) *net.TCPConn {
	l.Helper()
	l.ask(l.fast, []byte(request))
	nc, err := net.Dial("tcp", l.fast.Addr().String())
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = nc.Close() })
	c := nc.(*net.TCPConn)
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// TestSlowReadersGetAll: answers that do not fit the connection go out whole and in order.
func TestSlowReadersGetAll(t *testing.T) {
	l := newLanes(t)
	const request, times = "GET /warm/slow?long=700000 HTTP/1.1\r\nHost: x\r\n\r\n", 32 // more than the system holds for them
	c := l.dial(request)
	before := l.fast.Load().Express
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, strings.Repeat(request, times))
		sent <- err
	}()
	in := bufio.NewReaderSize(c, 1<<10)
	var first string
	for n := range times {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", n, err)
		}
		body, err := io.ReadAll(resp.Body)
		if first == "" {
			first = string(body)
		}
		checktest.MustNoError(t, err, "answer %d", n)
		checktest.MustTrue(t, len(body) >= 700_000, "answer %d: len(body) is %v, want >= 700_000", n, len(body))
		checktest.MustEqual(t, string(body), first, "answer %d: string(body)", n)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if n := l.fast.Load().Express - before; n != times {
		t.Errorf("the lane gave %d of %d answers", n, times)
	}
}

// TestClientsAreReset: a client is gone while the lane waits for a request, for the rest of one,
// and while it writes. Others are answered.
func TestClientsAreReset(t *testing.T) {
	l := newLanes(t)
	const request = "GET /warm/slow?long=700000 HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, send := range []string{"", request[:20], request, strings.Repeat(request, 4)} {
		c := l.dial(request)
		if _, err := io.WriteString(c, send); err != nil {
			t.Fatal(err)
		}
		if len(send) >= len(request) { // the answer has begun
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	for end := time.Now().Add(20 * time.Second); l.fast.Load().Now > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are still open", l.fast.Load().Now)
		}
	}
	all, rest := l.ask(l.fast, []byte(request))
	checktest.MustEqual(t, len(all), 1, "len(all)")
	checktest.Equal(t, all[0].Status, http.StatusOK, "all[0].Status")
	checktest.Equal(t, rest, "", "rest")
}

// TestWaitingConnectionsHaveNoBuffer: a connection that waits for a request gives its buffer back,
// one that waits for the rest of a request keeps what has come.
func TestWaitingConnectionsHaveNoBuffer(t *testing.T) {
	own := &lane{}
	if own.makeRoom(); len(own.makeRoom()) != firstRead {
		t.Errorf("room for %d bytes, want %d", len(own.makeRoom()), firstRead)
	}
	if own.releaseRoom(); own.incoming.buf != nil {
		t.Error("it waits with a buffer")
	}
	own.incoming.buf = append(own.incoming.buf, "GET"...)
	if own.releaseRoom(); string(own.incoming.buf) != "GET" {
		t.Error("what has come is lost")
	}
}
