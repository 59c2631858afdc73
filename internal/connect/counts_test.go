// Tests of the counts.

package connect

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestTunnelsAreCounted(t *testing.T) {
	t.Parallel()
	at, accept := far(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := closed.Addr().String()
	_ = closed.Close()
	r := run(t, Options{Tunnel: []string{at, gone}, AllowPrivate: true, Tunnels: 1}, patience)
	is := func(when string, want Stats) {
		t.Helper()
		want.OtherLimit = 1
		tick, end := time.NewTicker(time.Millisecond), time.After(patience)
		defer tick.Stop()
		for got := r.Stats(); got != want; got = r.Stats() { // the other end is told by a goroutine of its own
			select {
			case <-tick.C:
			case <-end:
				t.Fatalf("%s: %+v, want %+v", when, got, want)
			}
		}
	}
	is("at first", Stats{})
	one, two := r.client(t, false), r.client(t, true)
	for _, c := range []*http.Client{one, two, two} { // HTTP/1.1 may not reuse a connection on a busy machine
		resp, err := c.Get("https://api.example.com/v1/x")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	is("two clients, three requests", Stats{Open: 2, Made: 2})
	one.CloseIdleConnections()
	is("one has left", Stats{Open: 1, Made: 2})
	near, _ := r.dial(t, at, "")
	there := accept()
	is("to another host", Stats{Open: 1, Made: 2, Other: 1, OtherMade: 1})
	for authority, status := range map[string]int{at: http.StatusServiceUnavailable, "x.example:443": http.StatusForbidden,
		"nothing": http.StatusBadRequest} {
		if _, resp := r.dial(t, authority, ""); resp.StatusCode != status {
			t.Errorf("%s: %s", authority, resp.Status)
		}
	}
	is("three refused", Stats{Open: 1, Made: 2, Other: 1, OtherMade: 1, Refused: 3})
	_, _ = near.Close(), there.Close()
	is("the other host's has ended", Stats{Open: 1, Made: 2, OtherMade: 1, Refused: 3})
	if _, resp := r.dial(t, gone, ""); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("nobody listens: %s", resp.Status)
	}
	is("one failed", Stats{Open: 1, Made: 2, OtherMade: 1, Refused: 3, Failed: 1})
	// What begins no TLS ends with the time for the handshake, or with its client.
	c, _ := r.dial(t, "api.example.com:443", "GET / HTTP/1.1\r\n\r\n")
	_ = c.Close()
	is("no TLS in it", Stats{Open: 1, Made: 3, OtherMade: 1, Refused: 3, Failed: 1})
}
