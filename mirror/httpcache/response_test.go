// What may be stored, how old it is and how long it is fresh: a table a section of RFC 9111.

package httpcache

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// noon is when answers of these tests come.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// fields are the lines of a header, as "Name: value".
func fields(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// date writes a time as a header does, so long after noon.
func date(after time.Duration) string { return noon.Add(after).Format(http.TimeFormat) }

func received(status int, lines ...string) *Response {
	r := NewResponse(status, fields(lines...), noon, noon)
	return &r
}

// Section 3: storing responses in caches.
func TestStoring(t *testing.T) {
	const tag, changed = `Etag: "1"`, "Last-Modified: Wed, 25 Nov 2026 00:00:00 GMT"
	for _, c := range []struct {
		name    string
		request Request
		status  int
		lines   []string
		want    bool
	}{
		{name: "fresh", lines: []string{"Cache-Control: max-age=60"}, want: true},
		{name: "neither freshness nor validator", lines: []string{"Content-Type: text/plain"}},
		{name: "a validator", lines: []string{tag}, want: true},
		{name: "a validator, of a status that is not stored by itself", status: 201, lines: []string{tag}},
		{name: "such a status, fresh", status: 201, lines: []string{"Cache-Control: max-age=60"}, want: true},
		{name: "such a status, public", status: 599, lines: []string{tag, "Cache-Control: public"}, want: true},
		{name: "a redirect", status: 302, lines: []string{"Expires: " + date(time.Hour)}, want: true},
		{name: "no-store", lines: []string{"Cache-Control: max-age=60, No-Store"}},
		{name: "private", lines: []string{"Cache-Control: max-age=60, private"}},
		{name: "private of one field", lines: []string{`Cache-Control: max-age=60, private="X-Name"`}, want: true},
		{name: "no-cache, with a validator", lines: []string{"Cache-Control: no-cache", tag}, want: true},
		{name: "no-cache, without", lines: []string{"Cache-Control: no-cache, max-age=60"}},
		{name: "past fresh for ever", lines: []string{"Cache-Control: max-age=0"}},
		{name: "past fresh, with a use on errors", lines: []string{"Cache-Control: max-age=0, stale-if-error=60"}, want: true},
		{name: "a part", status: 206, lines: []string{"Cache-Control: max-age=60"}},
		{name: "not modified", status: 304, lines: []string{"Cache-Control: max-age=60"}},
		{name: "must-understand, a known status", lines: []string{"Cache-Control: no-store, must-understand, max-age=60"}, want: true},
		{name: "must-understand, an unknown one", status: 599, lines: []string{"Cache-Control: must-understand, max-age=60"}},
		{name: "vary by all", lines: []string{"Cache-Control: max-age=60", "Vary: Foo, *"}},
		{name: "the request says no-store", request: Request{Header: fields("Cache-Control: no-store")},
			lines: []string{"Cache-Control: max-age=60"}},
		{name: "a HEAD", request: Request{Method: "HEAD"}, lines: []string{"Cache-Control: max-age=60"}},
		{name: "a POST", request: Request{Method: "POST", URI: "/a"}, lines: []string{"Cache-Control: max-age=60"}},
		{name: "a POST that is what a GET gets", request: Request{Method: "POST", URI: "/a"},
			lines: []string{"Cache-Control: max-age=60", "Content-Location: /a"}, want: true},
		{name: "a POST about another URI", request: Request{Method: "POST", URI: "/a"},
			lines: []string{"Cache-Control: max-age=60", "Content-Location: /b"}},
		// 3.5: requests with Authorization, and with a Cookie that is answered by one.
		{name: "authorization", request: Request{Header: fields("Authorization: Basic x")}, lines: []string{"Cache-Control: max-age=60"}},
		{name: "authorization, public", request: Request{Header: fields("Authorization: Basic x")},
			lines: []string{"Cache-Control: max-age=60, public"}, want: true},
		{name: "authorization, must-revalidate", request: Request{Header: fields("Authorization: Basic x")},
			lines: []string{"Cache-Control: max-age=60, must-revalidate"}, want: true},
		{name: "authorization, s-maxage", request: Request{Header: fields("Authorization: Basic x")},
			lines: []string{"Cache-Control: s-maxage=60"}, want: true},
		{name: "a cookie", request: Request{Header: fields("Cookie: a=b")}, lines: []string{"Cache-Control: max-age=60"}, want: true},
		{name: "a cookie that is set anew", request: Request{Header: fields("Cookie: a=b")},
			lines: []string{"Cache-Control: max-age=60", "Set-Cookie: a=c"}},
		{name: "a cookie is set, fresh", lines: []string{"Cache-Control: max-age=60", "Set-Cookie: a=c"}},
		{name: "a cookie is set, public", lines: []string{"Cache-Control: public, max-age=60", "Set-Cookie: a=c"}, want: true},
		{name: "a cookie is set, and not kept",
			lines: []string{`Cache-Control: max-age=60, no-cache="set-cookie"`, "Set-Cookie: a=c"}, want: true},
		{name: "a cookie, without freshness", request: Request{Header: fields("Cookie: a=b")}, lines: []string{changed}},
		{name: "a cookie, with a tag alone", request: Request{Header: fields("Cookie: a=b")}, lines: []string{tag}},
		{name: "a key of an API, without freshness", request: Request{Header: fields("X-Api-Key: a")}, lines: []string{changed}},
		{name: "a token, without freshness", request: Request{Header: fields("Private-Token: a")}, lines: []string{changed}},
		{name: "a token, with freshness", request: Request{Header: fields("Private-Token: a")},
			lines: []string{"Cache-Control: max-age=60"}, want: true},
		{name: "no credential, without freshness", request: Request{Header: fields("User-Agent: a", "Sec-Fetch-User: ?1")},
			lines: []string{changed}, want: true},
		{name: "a cookie, public", request: Request{Header: fields("Cookie: a=b")},
			lines: []string{"Cache-Control: public", changed}, want: true},
		{name: "a cookie is set, without freshness", lines: []string{tag, "Set-Cookie: a=c"}},
		// RFC 9213: what is for caches like this one counts in place of Cache-Control.
		{name: "targeted no-store", lines: []string{"Cache-Control: max-age=60", "CDN-Cache-Control: no-store"}},
		{name: "targeted freshness", lines: []string{"Cache-Control: no-store", "CDN-Cache-Control: max-age=60"}, want: true},
		{name: "a targeted field that cannot be read", lines: []string{"Cache-Control: max-age=60", "CDN-Cache-Control: No Store"}, want: true},
	} {
		if c.request.Method == "" {
			c.request.Method = "GET"
		}
		if c.status == 0 {
			c.status = 200
		}
		if got := received(c.status, c.lines...).CanStore(&c.request); got != c.want {
			t.Errorf("%s: stored is %t", c.name, got)
		}
	}
}

// Section 3.1: storing header and trailer fields.
func TestFieldsThatAreStored(t *testing.T) {
	r := received(200, "Connection: close, X-Hop", "X-Hop: 1", "Keep-Alive: 5", "Te: trailers", "Upgrade: h2c", "Transfer-Encoding: chunked",
		"Proxy-Authenticate: Basic", "Proxy-Authentication-Info: x", "Proxy-Connection: close", "Trailer: X", "Age: 5", "X-End: 2",
		`Cache-Control: no-cache="X-Mine, x-other", private=X-Third, max-age=60`, "X-Mine: 1", "X-Other: 1", "X-Third: 1", "Set-Cookie: a=b")
	var names []string
	for name := range r.StoredHeader() {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "Cache-Control Date Set-Cookie X-End" {
		t.Errorf("stored are %s", got)
	}
}

// Section 3.2: updating stored header fields. Section 4.3.4 and 4.3.5 freshen by it.
func TestUpdate(t *testing.T) {
	old := received(200, "Cache-Control: max-age=1", "X-Kept: 1", "Content-Length: 5", `Etag: "1"`, "Content-Encoding: gzip",
		"Content-Type: a/b")
	by := NewResponse(304, fields("Cache-Control: max-age=60", "Content-Length: 0", `Etag: "2"`, "Content-Encoding: br", "Content-Type: c/d",
		"Age: 7"), noon, noon.Add(time.Minute))
	now := old.Update(&by)
	for name, want := range map[string]string{"Cache-Control": "max-age=60", "X-Kept": "1", "Content-Length": "5", "Etag": `"1"`,
		"Content-Encoding": "gzip", "Content-Type": "c/d", "Age": ""} {
		if got := now.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	checktest.Equal(t, now.Status, 200, "now.Status")
	checktest.Equal(t, now.Age(noon.Add(time.Minute)), 67*time.Second, "now.Age(noon.Add(time.Minute))")
	checktest.Equal(t, old.Header.Get("Cache-Control"), "max-age=1", `old.Header.Get("Cache-Control")`)
	for _, c := range []struct {
		lines       []string
		same, known bool
	}{
		{nil, true, false}, {[]string{`Etag: "1"`, "Content-Length: 5"}, true, true}, {[]string{`Etag: "2"`}, false, false},
		{[]string{"Content-Length: 6"}, false, false},
	} {
		if same, known := old.MatchHead(received(200, c.lines...), "5"); same != c.same || same && known != c.known {
			t.Errorf("the answer %v to a HEAD: same is %t, known %t", c.lines, same, known)
		}
	}
}

// Section 4.2.1: calculating freshness lifetime; 4.2.2: heuristic freshness.
func TestLifetime(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		lines  []string
		want   time.Duration
		says   bool
	}{
		{"max-age", 200, []string{"Cache-Control: MaX-aGe=60"}, time.Minute, true},
		{"quoted", 200, []string{`Cache-Control: max-age="60"`}, time.Minute, true},
		{"too much", 200, []string{"Cache-Control: max-age=99999999999"}, 1 << 31 * time.Second, true},
		{"negative", 200, []string{"Cache-Control: max-age=-60"}, 0, true},
		{"no number", 200, []string{"Cache-Control: max-age='60'"}, 0, true},
		{"the first counts", 200, []string{"Cache-Control: max-age=60", "Cache-Control: max-age=90"}, time.Minute, true},
		{"in quotes of another", 200, []string{`Cache-Control: x="max-age=3600", max-age=1`}, time.Second, true},
		{"s-maxage before max-age", 200, []string{"Cache-Control: max-age=60, s-maxage=10"}, 10 * time.Second, true},
		{"max-age before Expires", 200, []string{"Cache-Control: max-age=60", "Expires: 0"}, time.Minute, true},
		{"Expires", 200, []string{"Expires: " + date(time.Minute), "Date: " + date(0)}, time.Minute, true},
		{"Expires in the past", 200, []string{"Expires: " + date(-time.Minute)}, 0, true},
		{"Expires that is no date", 200, []string{"Expires: 0"}, 0, true},
		{"a Date that is none", 200, []string{"Expires: " + date(time.Minute), "Date: x"}, time.Minute, true},
		{"a tenth since the last change", 200, []string{"Last-Modified: " + date(-10*time.Hour)}, time.Hour, false},
		{"at most a day", 200, []string{"Last-Modified: " + date(-1000*time.Hour)}, 24 * time.Hour, false},
		{"not of each status", 403, []string{"Last-Modified: " + date(-10*time.Hour)}, 0, false},
		{"but if it is public", 403, []string{"Last-Modified: " + date(-10*time.Hour), "Cache-Control: public"}, time.Hour, false},
		{"nothing is said", 200, nil, 0, false},
		{"targeted", 200, []string{"CDN-Cache-Control: max-age=60, x=?0", "Cache-Control: max-age=1", "Expires: 0"}, time.Minute, true},
		{"targeted, of another type", 200, []string{"CDN-Cache-Control: max-age=6.5, public", "Cache-Control: max-age=1"}, 0, false},
	} {
		if got, says := received(c.status, c.lines...).Lifetime(); got != c.want || says != c.says {
			t.Errorf("%s: %v, explicit %t, want %v", c.name, got, says, c.want)
		}
	}
}

// Sections 4.2.3 and 5.1: calculating age. Of several the first counts; what is no whole number
// says nothing.
func TestAge(t *testing.T) {
	for _, c := range []struct {
		lines []string
		delay time.Duration
		want  time.Duration
	}{
		{nil, 0, 10 * time.Second},
		{nil, 3500 * time.Millisecond, 13 * time.Second},
		{[]string{"Age: 5"}, 0, 15 * time.Second},
		{[]string{"Age: 5"}, 3 * time.Second, 18 * time.Second},
		{[]string{"Date: " + date(-time.Minute)}, 0, 70 * time.Second},
		{[]string{"Date: " + date(time.Minute)}, 0, 10 * time.Second},
		{[]string{"Age: 5", "Age: 7"}, 0, 15 * time.Second},
		{[]string{"Age: 5, 7"}, 0, 15 * time.Second},
		{[]string{"Age: 99999999999"}, 0, 1<<31*time.Second + 10*time.Second},
		{[]string{"Age: 5;a=1"}, 0, 15 * time.Second},
		{[]string{"Age: -5"}, 0, 10 * time.Second},
		{[]string{"Age: 5.0"}, 0, 10 * time.Second},
		{[]string{"Age: old, 5"}, 0, 10 * time.Second},
		{[]string{`Age: "5"`}, 0, 10 * time.Second},
	} {
		r := NewResponse(200, fields(c.lines...), noon.Add(-c.delay), noon)
		if got := r.Age(noon.Add(10 * time.Second)); got != c.want {
			t.Errorf("%v: %v, want %v", c.lines, got, c.want)
		}
	}
	if r := received(200); r.Header.Get("Date") != date(0) {
		t.Errorf("without a Date the stored answer has %q", r.Header.Get("Date"))
	}
}

// Section 4.3.1: sending a validation request.
func TestConditions(t *testing.T) {
	c := received(200, `Etag: W/"1"`, "Last-Modified: "+date(0)).Conditions()
	if c.Get("If-None-Match") != `W/"1"` || c.Get("If-Modified-Since") != date(0) {
		t.Errorf("%v", c)
	}
	if c := received(200, "Last-Modified: yesterday").Conditions(); c != nil {
		t.Errorf("without a validator: %v", c)
	}
}

func FuzzReceived(f *testing.F) {
	f.Add("max-age=1", `"x"`, "5", "Foo, *")
	f.Add(`no-cache="a,b", s-maxage="7"`, "", "7;x", "")
	f.Fuzz(func(t *testing.T, control, targeted, age, vary string) {
		h := http.Header{"Cache-Control": {control}, "Cdn-Cache-Control": {targeted}, "Age": {age}, "Vary": {vary}, "Etag": {`"1"`}}
		r := NewResponse(200, h, noon, noon)
		life, _ := r.Lifetime()
		if life < 0 || r.Age(noon) < 0 {
			t.Errorf("fresh for %v, %v old", life, r.Age(noon))
		}
		q := &Request{Method: "GET", URI: "/", Header: h}
		d := Decide(q, &r, noon)
		lower := strings.ToLower(control)
		if r.CanStore(q) && targeted == "" && (lower == "private" || lower == "no-store") {
			t.Errorf("%q is stored", control)
		}
		if d.Answer && life <= r.Age(noon) && !strings.Contains(lower, "stale") {
			t.Errorf("past fresh, and answered: %+v", d)
		}
	})
}

func TestConfirmationWithAnotherValidatorSelectsNothing(t *testing.T) {
	t.Parallel()
	const first, second = "Mon, 23 Nov 2026 12:00:00 GMT", "Tue, 24 Nov 2026 12:00:00 GMT"
	old := received(200, `Etag: "1"`, "Last-Modified: "+first)
	for name, c := range map[string]struct {
		lines []string
		want  bool
	}{
		"no validator":                {nil, true},
		"its date":                    {[]string{"Last-Modified: " + first}, true},
		"another date":                {[]string{"Last-Modified: " + second}, false},
		"another tag":                 {[]string{`Etag: "2"`}, false},
		"its tag weak":                {[]string{`Etag: W/"1"`}, true},
		"its tag beside another date": {[]string{`Etag: "1"`, "Last-Modified: " + second}, true},
	} {
		by := received(304, c.lines...)
		if got := old.IsSelectedBy(by); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
