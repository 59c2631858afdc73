// What a stored answer may answer, variants, and what a write makes invalid.

package httpcache

import (
	"slices"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// Section 4 (constructing responses), 4.2.4 (serving stale), 5.2.1 (request directives), and
// RFC 5861.
func TestDecisions(t *testing.T) {
	const answer, refresh, down, failure = "answer ", "refresh ", "down ", "error "
	for _, c := range []struct {
		name    string
		stored  string // Cache-Control
		request string
		age     time.Duration
		want    string
	}{
		{"fresh", "max-age=60", "", 59 * time.Second, answer + down},
		{"exactly as old", "max-age=60", "", time.Minute, down},
		{"past fresh", "max-age=60", "", time.Hour, down},
		{"no-cache", "max-age=60, no-cache", "", 0, ""},
		{"no-cache of a field", `max-age=60, no-cache="x"`, "", 0, answer + down},
		{"must-revalidate, fresh", "max-age=60, must-revalidate", "", 0, answer},
		{"must-revalidate, past fresh", "max-age=60, must-revalidate, stale-if-error=60", "", 61 * time.Second, ""},
		{"proxy-revalidate", "max-age=60, proxy-revalidate", "max-stale", 61 * time.Second, ""},
		{"s-maxage", "s-maxage=60, stale-while-revalidate=60", "", 61 * time.Second, ""},
		{"request: no-cache", "max-age=60", "no-cache", 0, ""},
		{"request: max-age", "max-age=60", "max-age=10", 11 * time.Second, down},
		{"request: max-age, as old", "max-age=60", "max-age=10", 10 * time.Second, answer + down},
		{"request: min-fresh", "max-age=60", "min-fresh=30", 31 * time.Second, down},
		{"request: min-fresh, enough", "max-age=60", "min-fresh=30", 30 * time.Second, answer + down},
		{"request: max-stale", "max-age=60", "max-stale=10", 70 * time.Second, answer + down},
		{"request: max-stale, too old", "max-age=60", "max-stale=10", 71 * time.Second, down},
		{"request: any max-stale", "max-age=60", "max-stale", time.Hour, answer + down},
		{"stale-while-revalidate", "max-age=60, stale-while-revalidate=10", "", 70 * time.Second, answer + refresh + down},
		{"after its window", "max-age=60, stale-while-revalidate=10", "", 71 * time.Second, down},
		{"not where the request wants less", "max-age=60, stale-while-revalidate=10", "max-age=65", 70 * time.Second, down},
		{"stale-if-error", "max-age=60, stale-if-error=10", "", 70 * time.Second, down + failure},
		{"after its window no outage either", "max-age=60, stale-if-error=10", "", 71 * time.Second, ""},
		{"request: stale-if-error", "max-age=60", "stale-if-error=10", 70 * time.Second, down + failure},
	} {
		q := &Request{Method: "GET", URI: "/", Header: fields()}
		if c.request != "" {
			q.Header.Set("Cache-Control", c.request)
		}
		d, got := Decide(q, received(200, "Cache-Control: "+c.stored), noon.Add(c.age)), ""
		for _, word := range []struct {
			is   bool
			text string
		}{{d.Answer, answer}, {d.Refresh, refresh}, {d.AnswerIfDown, down}, {d.AnswerIfError, failure}} {
			if word.is {
				got += word.text
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Section 5.4: Pragma, which counts without Cache-Control alone.
func TestPragma(t *testing.T) {
	r := received(200, "Cache-Control: max-age=60")
	if Decide(&Request{Header: fields("Pragma: no-cache")}, r, noon).Answer {
		t.Error("Pragma: no-cache is answered from what is stored")
	}
	if !Decide(&Request{Header: fields("Pragma: no-cache", "Cache-Control: x")}, r, noon).Answer {
		t.Error("Pragma counts beside Cache-Control")
	}
	q := &Request{Header: fields("Cache-Control: only-if-cached, max-age=0")}
	checktest.True(t, q.IsOnlyIfCached(), "only-if-cached or max-age=0 is not seen: q.IsOnlyIfCached() is false")
	checktest.True(t, q.MustAskUpstream(), "only-if-cached or max-age=0 is not seen: q.MustAskUpstream() is false")
	checktest.True(t, !(&Request{}).MustAskUpstream(),
		"only-if-cached or max-age=0 is not seen: (&Request{}).MustAskUpstream() is true")
}

// Section 4.1: calculating cache keys with the Vary header field.
func TestVariants(t *testing.T) {
	names, ok := received(200, "Vary: foo, ,BAR", "Vary: Foo").Vary()
	if !ok || !slices.Equal(names, []string{"Bar", "Foo"}) {
		t.Errorf("%v %t", names, ok)
	}
	for _, lines := range [][]string{{"Vary: *"}, {"Vary: , *"}, {"Vary: Foo", "Vary: *"}} {
		if _, ok := received(200, lines...).Vary(); ok {
			t.Errorf("%v: something matches", lines)
		}
	}
	for _, c := range []struct {
		a, b []string
		same bool
	}{
		{[]string{"Foo: 1"}, []string{"Foo: 1", "Other: 2"}, true},
		{[]string{"Foo: 1"}, []string{"Foo: 2"}, false},
		{[]string{"Foo: 1"}, nil, false},
		{[]string{"Foo: "}, nil, false},
		{nil, nil, true},
		{[]string{"Foo: 1, 2"}, []string{"Foo: 1", "Foo: 2"}, true},
		{[]string{"Foo: 1,2"}, []string{"Foo: 1 , 2"}, true},
		{[]string{"Foo: 1, 2"}, []string{"Foo: 2, 1"}, false},
		{[]string{"Foo: 1"}, []string{"Bar: 1"}, false},
		{[]string{"Accept-Language: en, de"}, []string{"Accept-Language: DE,en"}, true},
		{[]string{"Accept-Language: en; q=0.5"}, []string{"Accept-Language: en;q=0.5"}, true},
		{[]string{"Accept-Encoding: gzip"}, []string{"Accept-Encoding: br"}, false},
	} {
		by := []string{"Accept-Encoding", "Accept-Language", "Bar", "Foo"}
		if got := Variant(by, fields(c.a...)) == Variant(by, fields(c.b...)); got != c.same {
			t.Errorf("%v and %v: the same is %t", c.a, c.b, got)
		}
	}
	if Variant(nil, fields("Foo: 1")) != "" {
		t.Error("an answer that varies by nothing has a variant")
	}
}

// Section 4.4: invalidating stored responses.
func TestInvalidation(t *testing.T) {
	hosts := []string{"api.example", "127.0.0.1:8006"}
	for _, c := range []struct {
		method string
		status int
		lines  []string
		want   []string
	}{
		{"POST", 200, nil, []string{"/a/b?c=1"}},
		{"M-SEARCH", 204, nil, []string{"/a/b?c=1"}},
		{"PUT", 303, []string{"Location: /d"}, []string{"/a/b?c=1", "/d"}},
		{"DELETE", 200, []string{"Content-Location: d", "Location: http://API.example/e?f=2"}, []string{"/a/b?c=1", "/e?f=2", "/a/d"}},
		{"POST", 201, []string{"Location: http://other.example/e"}, []string{"/a/b?c=1"}},
		{"POST", 201, []string{"Location: http://127.0.0.1:8006/e"}, []string{"/a/b?c=1", "/e"}},
		{"POST", 500, []string{"Location: /d"}, nil},
		{"POST", 404, nil, nil},
		{"GET", 200, []string{"Location: /d"}, nil},
		{"OPTIONS", 200, nil, nil},
	} {
		got := InvalidatedURIs(&Request{Method: c.method, URI: "/a/b?c=1"}, received(c.status, c.lines...), hosts...)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %d %v: %v, want %v", c.method, c.status, c.lines, got, c.want)
		}
	}
}

func TestConditionsOfRequests(t *testing.T) {
	q := &Request{Method: "GET", Header: fields(`If-Match: "1"`, "Range: bytes=0-1", "X-Name: 1")}
	if !q.IsPartial() || !q.IsForOrigin() {
		t.Error("a condition or a range is not seen")
	}
	if h := RemoveConditions(q.Header); len(h) != 1 || len(q.Header) != 3 {
		t.Errorf("without conditions: %v, of %v", h, q.Header)
	}
}
