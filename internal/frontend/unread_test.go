// Unread: answers that nobody reads are cut off, the oldest first, and others are not.

package frontend

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// TestUnreadAnswersAreCutOff: of three answers that nobody reads there is room for two. The oldest is cut off, by
// net/http and by the express lane, and a client that reads is answered whole.
func TestUnreadAnswersAreCutOff(t *testing.T) {
	const long = 24 << 20 // more than sockets hold
	body := bytes.Repeat([]byte("x"), long)
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(long))
		_, _ = w.Write(body)
	})
	for _, path := range []string{"/cold", "/warm"} {
		l := newLanes(t)
		l.fast.unread = NewUnread(3*long - 1)
		l.fast.SetHandler(answer, l.fast.handler.now.Load().known, nil)
		ask := func() *http.Response {
			c, err := net.Dial("tcp", l.fast.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(time.Now().Add(waitTime))
			_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if _, err := io.Copy(io.Discard, ask().Body); err != nil { // what is asked for again is on the lane
			t.Fatal(err)
		}
		eventually(t, "nothing is counted", func() bool {
			_, now, _ := l.fast.unread.Load()
			return now == 0
		})
		asked := []*http.Response{ask(), ask(), ask()}
		if _, now, dropped := l.fast.unread.Load(); now > 2*long+1<<20 || dropped != 1 {
			t.Errorf("%s: %d bytes are counted, %d answers cut off", path, now, dropped)
		}
		for i, r := range asked {
			n, err := io.Copy(io.Discard, r.Body)
			if whole := err == nil && n == long; whole != (i > 0) {
				t.Errorf("%s: answer %d: %d bytes, %v", path, i, n, err)
			}
		}
		eventually(t, "nothing is counted", func() bool {
			_, now, _ := l.fast.unread.Load()
			return now == 0
		})
	}
}

// TestUnreadStreamsAreCutOff does the same with the streams of one HTTP/2 connection.
func TestUnreadStreamsAreCutOff(t *testing.T) {
	const long = 8 << 20
	unread, body := NewUnread(3*long-1), bytes.Repeat([]byte("x"), long)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = (&countedWriter{w, unread}).Write(body)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	asked := []*http.Response{}
	for range 3 {
		r, err := client.Get(s.URL)
		if err != nil || r.ProtoMajor != 2 {
			t.Fatalf("%v", err)
		}
		defer r.Body.Close()
		asked = append(asked, r)
	}
	for i, r := range asked {
		n, err := io.Copy(io.Discard, r.Body)
		if whole := err == nil && n == long; whole != (i > 0) {
			t.Errorf("answer %d: %d bytes, %v", i, n, err)
		}
	}
}

// TestFewBeginAheadWhereMemoryIsShort: of sixteen requests that came together few are worked on before their turn
// while half of the bound is taken, and all are answered in order.
func TestFewBeginAheadWhereMemoryIsShort(t *testing.T) {
	l := newLanes(t)
	l.fast.unread = NewUnread(4 * maxReply)
	var begun, ahead atomic.Int64
	most := int64(0)
	first, release := make(chan struct{}), make(chan struct{})
	l.fast.SetHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if begun.Add(1); r.URL.Path == "/0" {
			close(first)
			<-release
			ahead.Store(begun.Load() - 1)
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}), nil, nil)
	c, err := net.Dial("tcp", l.fast.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(waitTime))
	var all bytes.Buffer
	for n := range maxAhead + 1 {
		fmt.Fprintf(&all, "GET /%d%s\r\n", n, host)
	}
	if _, err := all.WriteTo(c); err != nil {
		t.Fatal(err)
	}
	<-first
	eventually(t, "those that may have begun", func() bool { return begun.Load() >= 4 })
	close(release)
	in := bufio.NewReader(c)
	for n := range maxAhead + 1 {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", n, err)
		}
		if body, _ := io.ReadAll(r.Body); string(body) != fmt.Sprintf("/%d", n) {
			t.Errorf("answer %d is %q", n, body)
		}
		most = max(most, ahead.Load())
	}
	if most > 3 {
		t.Errorf("%d were worked on before their turn", most)
	}
}
