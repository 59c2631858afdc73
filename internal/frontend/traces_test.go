// Requests that differ in their traces alone.

package frontend

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

// allButSlow knows every request, and has the answers of all but one in memory.
type allButSlow struct{}

func (allButSlow) PrepareRepeat(r *http.Request) (context.Context, func() (any, bool)) {
	return context.Background(), func() (any, bool) { return nil, r.URL.Path != "/slow" }
}

func (allButSlow) CanIgnore(string) bool { return false }

// TestRequestsThatDifferInTracesAreOne: a client whose every request has another trace is answered by the
// lane, with its own fields, and takes the room of one request.
func TestRequestsThatDifferInTracesAreOne(t *testing.T) {
	l := newLanes(t)
	request := func(fields string) []byte { return []byte("GET /warm/a" + host + "Accept: */*\r\n" + fields + "\r\n") }
	l.same(request("Traceparent: 0\r\nX-Request-Id: r0\r\n"))
	weight := l.fast.express.known.Load().requests.Weight()
	for n := range 50 {
		before := l.fast.express.answered.Load()
		trace := fmt.Sprintf("traceparent:  %d\t\r\nX-Request-Id: r%d\r\nTraceparent: again\r\n", n, n)
		got := l.same(request(trace))
		if l.fast.express.answered.Load()-before != 1 {
			t.Errorf("request %d is not answered by the lane", n)
		}
		if len(got) != 1 || !strings.Contains(got[0].Body, fmt.Sprintf("X-Request-Id:[r%d]", n)) {
			t.Errorf("request %d is answered %+v", n, got)
		}
	}
	if now := l.fast.express.known.Load().requests.Weight(); now != weight {
		t.Errorf("what is remembered weighs %d, %d after one request", now, weight)
	}
	for what, fields := range map[string]string{
		"another field": "X-Other: 1\r\n", "a folded trace": "Traceparent: 1\r\n 2\r\n", "a byte that no field has": "Traceparent: 1\x002\r\n",
		"a bare CR": "Traceparent: 1\r2\r\n", "too many": strings.Repeat("Traceparent: 1\r\n", maxTraces+1),
		"a blank before the colon": "Traceparent : 1\r\n", "a long trace": "Traceparent: " + strings.Repeat("x", maxHead) + "\r\n",
	} {
		before := l.fast.express.answered.Load()
		l.same(request(fields))
		if l.fast.express.answered.Load() != before {
			t.Errorf("%s: answered by the lane", what)
		}
	}
}

// TestTracesThatComeAgainAreFoundAtOnce: a client that sends the same traces with each request is known by its whole head.
func TestTracesThatComeAgainAreFoundAtOnce(t *testing.T) {
	l := newLanes(t)
	head := []byte("GET /warm/a" + host + "X-Request-Id: always\r\n\r\n")
	l.same(head) // is read by net/http
	l.same(head) // and told by its traces
	s, traces := l.fast.express.find(head)
	checktest.MustTrue(t, s != nil, "found: s is nil")
	checktest.MustTrue(t, traces == nil, "found: traces is %v", traces)
	checktest.Equal(t, s.request.Header.Get("X-Request-Id"), "always", `found: s.request.Header.Get("X-Request-Id")`)
}

// BenchmarkFind finds a request by its whole head, and one by its head less its traces.
func BenchmarkFind(b *testing.B) {
	l := newLanes(b)
	plain := "GET /warm/a" + host + "Accept: application/json\r\nAccept-Encoding: gzip, deflate\r\nUser-Agent: python-requests/2.32\r\n" +
		"Authorization: Basic " + strings.Repeat("x", 80) + "\r\nConnection: keep-alive\r\n"
	l.same([]byte(plain + "Traceparent: 1\r\n\r\n"))
	l.same([]byte(plain + "\r\n"))
	for _, c := range []struct{ name, traces string }{{"whole", ""}, {"traced", "Traceparent: 2\r\nX-Request-Id: a\r\n"}} {
		b.Run(c.name, func(b *testing.B) {
			head := bytes.Clone([]byte(plain + c.traces + "\r\n"))
			b.ReportAllocs()
			for b.Loop() {
				if s, traces := l.fast.express.find(head); s == nil || withTraces(s.request.Header, traces) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
