//go:build unix

// A crowd: many subscribers at once, and one among them that takes nothing.

package feed

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/request"
)

// crowd are subscribers on raw connections, so that reading costs little
// beside what is measured.
type crowd struct {
	conns []net.Conn
	heard chan time.Duration
	sent  sync.Map // when a change was made, by its number
	done  sync.WaitGroup
}

func (r *rig) gather(t testing.TB, n int, query string) *crowd {
	t.Helper()
	c := &crowd{heard: make(chan time.Duration, 1<<16)}
	address := strings.TrimPrefix(r.server.URL, "http://")
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.conns = append(c.conns, conn)
		fmt.Fprintf(conn, "GET /-/feed?%s HTTP/1.1\r\nHost: feed\r\nAuthorization: Basic YWxsOg==\r\n\r\n", query)
	}
	for _, conn := range c.conns {
		in := bufio.NewReaderSize(conn, 4<<10)
		for { // the place comes first
			line, err := in.ReadSlice('\n')
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(line, []byte("id: ")) {
				break
			}
		}
		c.done.Go(func() { c.read(in) })
	}
	return c
}

func (c *crowd) read(in *bufio.Reader) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			if at, ok := c.sent.Load(place(string(bytes.TrimSpace(id)))); ok {
				c.heard <- time.Since(at.(time.Time))
			}
		}
	}
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.done.Wait()
}

// BenchmarkCrowd is one change to 1,000 subscribers: ns/op is until the last
// has it, p99-ms and max-ms are over all of them.
func BenchmarkCrowd(b *testing.B) {
	r := open(b, newTable(), Options{Limits: Limits{MaxEach: 1000}})
	const n = 1000
	c := r.gather(b, n, "after=now")
	defer c.leave()
	var all []time.Duration
	number := 0
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		number++
		c.sent.Store(fmt.Sprint(number), time.Now())
		r.make(came("calls", "CA0123456789abcdef0123456789abcdef"))
		for range n {
			all = append(all, <-c.heard)
		}
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(len(all)), "cpu-µs/event")
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "max-ms")
}

// cpu is what the process has used of processors so far, readers included.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Slow subscribers are dropped, and delay no other.
func TestSlowSubscribers(t *testing.T) {
	t.Parallel()
	r := open(t, newTable(), Options{Limits: Limits{MaxBuffered: 16, Stall: 2 * time.Second}})
	var slow []net.Conn
	for range 8 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(1 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /-/feed?after=0 HTTP/1.1\r\nHost: feed\r\nAuthorization: Basic YWxsOg==\r\n\r\n")
		slow = append(slow, conn)
	}
	for now := 0; now < len(slow); now = r.feed.limiter.Load().InUse {
	}
	quick := r.listen(t, "support", "after=now")
	const filled = 20_000        // events that fill the buffers of those who take nothing
	text := func(n int) string { // of an event
		if n > filled {
			return fmt.Sprint(n)
		}
		return fmt.Sprint(n, strings.Repeat("x", 4<<10))
	}
	put, began := 0, time.Now()
	for s := (request.Load{}); s.Dropped < int64(len(slow)); s = r.feed.Load() {
		for range 20 {
			put++
			r.make(came("calls", text(put)))
		}
		for i := range 20 {
			_, m := quick.event(t)
			if want := text(put - 19 + i); m["id"] != want {
				t.Fatalf("the quick one hears %.20s, want %.20s", m["id"], want)
			}
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("those who take nothing are still there after %d events: %+v", put, s)
		}
	}
	for now := 9; now > 1; now = r.feed.limiter.Load().InUse {
	}
	// One of them comes back and gets all of it, from the store.
	resp, body := r.get(t, "all", "/-/feed?after=0&wait=0s")
	if resp.StatusCode != http.StatusOK || strings.Count(body, "data: ") != put {
		t.Errorf("coming back shows %d of %d", strings.Count(body, "data: "), put)
	}
}
