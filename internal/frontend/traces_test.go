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

// TestTracesAreReadLikeThoseOfTheLastHead: the traces of a connection are read without a copy of the head, and only if nothing
// else in the head differs.
func TestTracesAreReadLikeThoseOfTheLastHead(t *testing.T) {
	l := newLanes(t)
	head := func(fields string) []byte { return []byte("GET /warm/a" + host + "Accept: */*\r\n" + fields + "\r\n") }
	l.same(head("X-Request-Id: 1\r\nAccept-Language: en\r\nTraceparent: 1\r\n")) // is read by net/http
	f := finder{express: l.fast.express}
	for n := range 3 {
		text := fmt.Sprintf("X-Request-Id: \t%d\r\nAccept-Language: en\r\nTraceparent: %s\r\n", n, strings.Repeat("a", n+1))
		_, fields, _ := bytes.Cut(head(text), headEnd[:2])
		checktest.Equal(t, f.fields != nil && f.readTraces(fields), n > 0, "read like the last head")
		s, traces := f.find(head(text))
		checktest.MustTrue(t, s != nil, "request %d is not found", n)
		checktest.Equal(t, new(tracedHeader).set(s.fields, traces).Get("X-Request-Id"), fmt.Sprint(n), "X-Request-Id")
		checktest.Equal(t, new(tracedHeader).set(s.fields, traces).Get("Traceparent"), strings.Repeat("a", n+1), "Traceparent")
	}
	for what, fields := range map[string]string{
		"another language": "X-Request-Id: \t1\r\nAccept-Language: eo\r\nTraceparent: 1\r\n",
		"a further field":  "X-Request-Id: \t1\r\nAccept-Language: en\r\nTraceparent: 1\r\nAccept: a/b\r\n",
		"a field less":     "X-Request-Id: \t1\r\nTraceparent: 1\r\n",
		"a folded trace":   "X-Request-Id: \t1\r\nAccept-Language: en\r\nTraceparent: 1\r\n 2\r\n",
		"a bare LF":        "X-Request-Id: \t1\r\nAccept-Language: en\r\nTraceparent: 1\n2\r\n",
		"a byte of DEL":    "X-Request-Id: \t1\r\nAccept-Language: en\r\nTraceparent: 1\x7f\r\n",
	} {
		s, _ := f.find(head(fields))
		checktest.True(t, s == nil, "%s: found", what)
	}
	checktest.True(t, f.fields != nil, "the last header is forgotten")
}

// TestTracesAreNamedByTheCurrentHandler: a field that the next handler does not ignore is part of the head at once.
func TestTracesAreNamedByTheCurrentHandler(t *testing.T) {
	l := newLanes(t)
	plain, traced := []byte("GET /warm/a"+host+"\r\n"), []byte("GET /warm/a"+host+"Traceparent: 1\r\n\r\n")
	l.same(plain)
	f := finder{express: l.fast.express}
	s, _ := f.find(traced)
	checktest.MustTrue(t, s != nil, "not found")
	l.fast.SetHandler(l.fast.handler.now.Load().Handler, allButSlow{}, nil)
	l.same(plain)
	s, _ = f.find(plain)
	checktest.MustTrue(t, s != nil, "the next handler has not stored the request")
	s, _ = f.find(traced)
	checktest.True(t, s == nil, "the field is ignored")
}

// TestTracedHeader: a header that is used again has the traces of each request, and only these.
func TestTracedHeader(t *testing.T) {
	one, other := &fields{header: http.Header{"Accept": {"a"}}}, &fields{header: http.Header{"Accept": {"b"}}}
	var h tracedHeader
	for _, c := range []struct {
		base   *fields
		traces []trace
	}{
		{one, []trace{{name: "A", value: "1"}, {name: "B", value: "2"}}}, {one, []trace{{name: "A", value: "3"}, {name: "B", value: "4"}}},
		{one, []trace{{name: "A", value: "5"}, {name: "A", value: "6"}}}, {one, []trace{{name: "A", value: "7"}, {name: "B", value: "8"}}},
		{other, []trace{{name: "A", value: "9"}, {name: "B", value: "10"}}}, {other, nil}, {other, []trace{{name: "B", value: "11"}}},
	} {
		got, want := h.set(c.base, c.traces), c.base.header.Clone()
		for _, one := range c.traces {
			want[one.name] = append(want[one.name], one.value)
		}
		checktest.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "the header with %v", c.traces)
	}
	checktest.Equal(t, len(one.header)+len(other.header), 2, "the number of fields without traces")
}

// FuzzTraces reads the same traces like those of the last head as without it.
func FuzzTraces(f *testing.F) {
	isTrace := func(name string) bool { return name == "A" || name == "B" }
	f.Add("A: 1\r\nC: x\r\nB:2\r\n\r\n", "A: 12\r\nC: x\r\nB:3\r\n\r\n")
	f.Add("A: 1\r\nA: 2\r\n\r\n", "A: 1\r\nA: 2 \r\n\r\n")
	f.Add("a:1\r\n\r\n", "a:1\r\n 2\r\n\r\n")
	f.Fuzz(func(t *testing.T, first, next string) {
		if !strings.HasSuffix(first, "\r\n\r\n") {
			return
		}
		rest, traces := splitTraces([]byte(first), isTrace)
		var of finder
		of.setTraces(first, traces)
		if !of.readTraces([]byte(next)) {
			return
		}
		again, want := splitTraces([]byte(next), isTrace)
		checktest.Equal(t, string(again), string(rest), "the rest of %q", next)
		none := &fields{header: http.Header{}}
		got := new(tracedHeader).set(none, of.traces)
		checktest.Equal(t, fmt.Sprint(got), fmt.Sprint(new(tracedHeader).set(none, want)), "the traces of %q", next)
	})
}

// BenchmarkFind finds a request by its whole head, and one by its head less its traces.
func BenchmarkFind(b *testing.B) {
	l := newLanes(b)
	plain := "GET /warm/a" + host + "Accept: application/json\r\nAccept-Encoding: gzip, deflate\r\nUser-Agent: python-requests/2.32\r\n" +
		"Authorization: Basic " + strings.Repeat("x", 80) + "\r\nConnection: keep-alive\r\n"
	l.same([]byte(plain + "Traceparent: 1\r\n\r\n"))
	l.same([]byte(plain + "\r\n"))
	const trace = "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333%d-00\r\n"
	for _, c := range []struct{ name, traces string }{{"whole", ""}, {"traced", trace}, {"traced twice", trace + "X-Request-Id: a\r\n"}} {
		b.Run(c.name, func(b *testing.B) {
			f, header := finder{express: l.fast.express}, tracedHeader{}
			var heads [2][]byte
			for i := range heads {
				heads[i] = []byte(plain + strings.ReplaceAll(c.traces, "%d", fmt.Sprint(i)) + "\r\n")
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if s, traces := f.find(heads[n%2]); s == nil || header.set(s.fields, traces) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
