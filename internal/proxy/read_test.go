// Reads: what comes out, by whom and how it came.

package proxy

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

const (
	oneMessage = `{"sid":"SM1","body":"hi","to":"+14155551234"}`
	oneMasked  = `{"sid":"SM1","body":null,"to":"********1234"}`
)

func TestWarmAnswer(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", false, 200, oneMessage))
	w := b.ask("GET", root+"/Messages/SM1.json", demo)
	if w.Code != 200 || w.Body.String() != oneMessage {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json; charset=utf-8", "Content-Length": "45", "Age": "9",
		"Cache-Status": "understudy; hit; ttl=21", "Server-Timing": "store;dur=0",
		"Cache-Control": "private", "Vary": "Authorization, Accept-Encoding", "Content-Encoding": "",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	tag := w.Header().Get("Etag")
	checktest.MustEqual(t, len(tag), 24, "ETag: len(tag)")
	checktest.Equal(t, tag[0], '"', "ETag: tag[0]")
	checktest.True(t, !strings.HasPrefix(tag, "W/"), "ETag: tag is %q", tag)
	if w.Header().Get("X-Request-Id") == "" {
		t.Error("no request id")
	}
	{
		ask := b.script.asked[0]
		checktest.True(t, !ask.NoCache, "asked: ask.NoCache is true")
		checktest.MustTrue(t, ask.AgeLimit == nil, "asked: ask.AgeLimit is %v", ask.AgeLimit)
		checktest.Equal(t, ask.Target.ID, "SM1", "asked: ask.Target.ID")
	}
}

func TestMaskedAnswer(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", false, 200, oneMessage))
	whole := b.ask("GET", root+"/Messages/SM1.json", demo)
	w := b.ask("GET", root+"/Messages/SM1.json", masked)
	if w.Body.String() != oneMasked || w.Header().Get("Content-Length") != "45" {
		t.Errorf("%s, %v", w.Body, w.Header())
	}
	if w.Header().Get("Etag") == whole.Header().Get("Etag") {
		t.Error("the view has the page's ETag")
	}
	// A page that differs in hidden parts alone is the same view.
	b.answers(page("messages", false, 200, strings.Replace(oneMessage, "hi", "another text", 1)))
	other := b.ask("GET", root+"/Messages/SM1.json", masked)
	if other.Header().Get("Etag") != w.Header().Get("Etag") || other.Header().Get("Content-Length") != "45" {
		t.Error("the ETag or length tells that a hidden value changed")
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", false, 200, oneMessage))
	get, head := b.ask("GET", root+"/Messages/SM1.json", masked), b.ask("HEAD", root+"/Messages/SM1.json", masked)
	if head.Body.Len() != 0 || head.Code != 200 {
		t.Fatalf("%d %s", head.Code, head.Body)
	}
	for name := range get.Header() {
		if name != "X-Request-Id" && get.Header().Get(name) != head.Header().Get(name) {
			t.Errorf("%s: %q, %q", name, get.Header().Get(name), head.Header().Get(name))
		}
	}
	e := b.ask("HEAD", root+"/Messages/SM1.json", "wrong")
	checktest.Equal(t, e.Code, 401, "an error: e.Code")
	checktest.Equal(t, e.Body.Len(), 0, "an error: e.Body.Len()")
	checktest.True(t, e.Header().Get("Content-Length") != "0", `an error: e.Header().Get("Content-Length") is "0"`)
}

func TestNotModified(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", true, 200, long()))
	target := root + "/Messages.json"
	plain := b.ask("GET", target, demo).Header().Get("Etag")
	packed := b.ask("GET", target, demo, "Accept-Encoding", "gzip").Header().Get("Etag")
	if plain == packed {
		t.Errorf("both forms have the ETag %s", plain)
	}
	other := b.ask("GET", target, masked).Header().Get("Etag")
	for _, test := range []struct {
		match, secret string
		want          int
	}{
		{plain, demo, 304}, {packed, demo, 304}, {"W/" + plain, demo, 304}, {`"x", ` + plain, demo, 304}, {"*", demo, 304},
		{`"x"`, demo, 200}, {strings.Trim(plain, `"`), demo, 200}, {other, demo, 200}, {plain, masked, 200}, {other, masked, 304},
		{`"x", "y","z" ,W/` + plain + `, "u"`, demo, 304}, {`"a\", ` + plain, demo, 304}, {`"a,b", ` + plain, demo, 304},
		{"," + plain, demo, 304},
		{`W/"x", W/"y"`, demo, 200}, {`"", ` + plain, demo, 304}, {"w/" + plain, demo, 200}, {`"x" ` + plain, demo, 200},
		{`x, ` + plain, demo, 200}, {`"` + plain, demo, 200},
		{`"x", *`, demo, 200}, {" * ", demo, 304}, {strings.TrimSuffix(plain, `"`), demo, 200},
		{strings.TrimSuffix(plain, `"`) + `-zstd"`, demo, 304}, {strings.TrimSuffix(plain, `"`) + `-br"`, demo, 200},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			w := b.ask(method, target, test.secret, "If-None-Match", test.match)
			if w.Code != test.want {
				t.Errorf("%s %s as %s: %d, want %d", method, test.match, test.secret, w.Code, test.want)
			}
			if w.Code == 304 && (w.Body.Len() != 0 || w.Header().Get("Content-Length") != "" || w.Header().Get("Content-Type") != "" ||
				w.Header().Get("Etag") == "" || w.Header().Get("Cache-Status") == "" || w.Header().Get("Vary") == "") {
				t.Errorf("304 with %v", w.Header())
			}
		}
	}
	// The 304 names the form that would have been sent.
	if got := b.ask("GET", target, demo, "If-None-Match", plain, "Accept-Encoding", "gzip").Header().Get("Etag"); got != packed {
		t.Errorf("304 has ETag %s, want %s", got, packed)
	}
	// Errors have no ETag and are never 304.
	b.answers(page("messages", false, 404, `{"code":20404}`))
	if w := b.ask("GET", root+"/Messages/SM9.json", demo, "If-None-Match", "*"); w.Code != 404 || w.Header().Get("Etag") != "" {
		t.Errorf("%d, ETag %q", w.Code, w.Header().Get("Etag"))
	}
}

func TestGzip(t *testing.T) {
	b := newBed(t)
	a := b.answers(page("messages", true, 200, long()))
	target := root + "/Messages.json"
	mirrors := zip(t, long())
	for _, test := range []struct {
		name, secret string
		ready        []byte
		how          request.Outcome
		packed       bool
	}{
		{"cold and whole goes out plain", demo, nil, request.Cold, false},
		{"the mirror's when it has one", demo, mirrors, request.Warm, true},
		{"made here when it has none", demo, nil, request.Warm, true},
		{"a view never is the mirror's", masked, mirrors, request.Warm, true},
		{"a cold view", masked, nil, request.Cold, true},
	} {
		a.Gzip, a.Outcome = test.ready, test.how
		w := b.ask("GET", target, test.secret, "Accept-Encoding", "br, gzip")
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != test.packed {
			t.Errorf("%s: compressed is %v", test.name, got)
			continue
		}
		body := w.Body.String()
		if w.Header().Get("Content-Length") != itoa(len(body)) {
			t.Errorf("%s: length %s of %d bytes", test.name, w.Header().Get("Content-Length"), len(body))
		}
		if test.packed {
			body = unzip(t, []byte(body))
		}
		if whole := body == long(); whole != (test.secret == demo) {
			t.Errorf("%s: body is %.80s…", test.name, body)
		}
		if test.secret == masked && (strings.Contains(body, "hello there") || strings.Contains(body, "4155551234")) {
			t.Errorf("%s: hidden values came out", test.name)
		}
	}
	small := b.answers(page("messages", false, 200, oneMessage))
	small.Gzip = zip(t, oneMessage)
	if w := b.ask("GET", root+"/Messages/SM1.json", demo, "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a small body was compressed")
	}
}

func itoa(n int) string { return string(appendMillis(nil, time.Duration(n)*time.Millisecond)) }

func TestCacheStatusAndServerTiming(t *testing.T) {
	for _, test := range []struct {
		a      request.Response
		status string
		timing string
	}{
		{request.Response{TTL: 21900 * time.Millisecond}, "understudy; hit; ttl=21", "store;dur=0"},
		{request.Response{Outcome: request.Warm, StoreTime: 412 * time.Microsecond}, "understudy; hit; ttl=0", "store;dur=0.4"},
		{request.Response{Outcome: request.Cold, ForwardReason: "uri-miss", Stored: true, UpstreamTime: 812 * time.Millisecond,
			StoreTime: 1900 * time.Microsecond},
			"understudy; fwd=uri-miss; stored", "upstream;dur=812, store;dur=1.9"},
		{request.Response{Outcome: request.Cold, ForwardReason: "uri-miss", Stored: true, Joined: true}, "understudy; fwd=uri-miss; collapsed",
			"store;dur=0"},
		{request.Response{Outcome: request.Cold, ForwardReason: "request", Stored: true}, "understudy; fwd=request; stored", "store;dur=0"},
		{request.Response{Outcome: request.Cold, ForwardReason: "stale", Detail: "not stored: disk full"},
			`understudy; fwd=stale; detail="not stored: disk full"`, "store;dur=0"},
		{request.Response{Outcome: request.Cold, ForwardReason: "no; such=\"token"}, "understudy; fwd=uri-miss", "store;dur=0"},
		{request.Response{Outcome: request.Stale, TTL: -12 * time.Second, Detail: "stale: upstream 503"},
			`understudy; hit; ttl=-12; detail="stale: upstream 503"`, "store;dur=0"},
		{request.Response{Outcome: request.Stale, TTL: -300 * time.Millisecond}, "understudy; hit; ttl=-1", "store;dur=0"},
		{request.Response{Outcome: request.Composed, TTL: time.Second, Detail: "composed"}, `understudy; hit; detail="composed"`, "store;dur=0"},
		{request.Response{Outcome: request.Composed, Age: 22 * time.Minute, Newest: 5900 * time.Millisecond, Detail: "composed"},
			`understudy; hit; detail="composed"; newest=5; walked=1320`, "store;dur=0"},
		{request.Response{Outcome: request.Stale, Detail: "quote\" slash\\ umlaut ü line\nend"},
			`understudy; hit; ttl=0; detail="quote\" slash\\ umlaut ? line?end"`, "store;dur=0"},
	} {
		if got := string(appendCacheStatus(nil, &test.a)); got != test.status {
			t.Errorf("got  %s\nwant %s", got, test.status)
		}
		if got := string(appendServerTiming(nil, &test.a)); got != test.timing {
			t.Errorf("got  %s\nwant %s", got, test.timing)
		}
	}
}

func TestFreshnessWishes(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, `{"calls":[]}`))
	last := func() request.Request { return b.script.asked[len(b.script.asked)-1] }
	target := root + "/Calls.json"
	b.ask("GET", target, reader)
	{
		a := last()
		checktest.MustTrue(t, a.AgeLimit != nil, "the grant's: a.AgeLimit is nil")
		checktest.Equal(t, *a.AgeLimit, time.Minute, "the grant's: *a.AgeLimit")
		checktest.True(t, !a.NoCache, "the grant's: a.NoCache is true")
	}
	b.ask("GET", target, reader, "Cache-Control", "max-age=5, min-fresh=4, max-stale=3")
	{
		a := last()
		checktest.Equal(t, *a.AgeLimit, time.Minute, "*a.AgeLimit")
		checktest.Equal(t, *a.MaxAge, 5*time.Second, "*a.MaxAge")
		checktest.Equal(t, *a.MinFresh, 4*time.Second, "*a.MinFresh")
		checktest.Equal(t, *a.MaxStale, 3*time.Second, "*a.MaxStale")
		checktest.True(t, !a.NoCache, "a.NoCache is true")
		checktest.True(t, !a.OnlyIfCached, "a.OnlyIfCached is true")
	}
	b.ask("GET", target, demo, "Cache-Control", "max-stale, only-if-cached")
	{
		a := last()
		checktest.MustTrue(t, a.AgeLimit == nil, "a.AgeLimit is %v", a.AgeLimit)
		checktest.MustTrue(t, a.MaxAge == nil, "a.MaxAge is %v", a.MaxAge)
		checktest.MustTrue(t, a.MinFresh == nil, "a.MinFresh is %v", a.MinFresh)
		checktest.True(t, *a.MaxStale < 0, "*a.MaxStale is %v, want < 0", *a.MaxStale)
		checktest.True(t, a.OnlyIfCached, "a.OnlyIfCached is false")
	}
	b.ask("GET", target, demo, "Cache-Control", "no-store")
	if a := last(); !reflect.DeepEqual(a, request.Request{Target: a.Target, Flow: a.Flow, ResponseBuffer: a.ResponseBuffer}) {
		t.Errorf("no-store: %+v", a)
	}
}

// What makes upstream be asked is limited: once a second for each credential
// and key. Past that it joins what is under way.
func TestNoCacheIsLimited(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, `{"calls":[]}`))
	target := root + "/Calls.json"
	for _, test := range []struct {
		name, target, secret, header, value string
		later                               time.Duration
		noCache, joinOnly                   bool
	}{
		{"the first", target, reader, "Cache-Control", "no-cache", 0, true, false},
		{"a second at once", target, reader, "Cache-Control", "max-age=0", 0, true, true},
		{"one that forbids upstream is not counted", target, demo, "Cache-Control", "only-if-cached, no-cache", 0, true, false},
		{"another credential", target, demo, "Cache-Control", "no-cache", 0, true, false},
		{"another key", target + "?Status=busy", reader, "Cache-Control", "no-cache", 0, true, false},
		{"the same key written differently", target + "?PageSize=50", reader, "Cache-Control", "no-cache", 0, true, true},
		{"nearly a second later", target, reader, "Pragma", "no-cache", time.Second - 1, true, true},
		{"a second later", target, reader, "Pragma", "no-cache", 1, true, false},
		{"Pragma beside Cache-Control", target, demo, "Pragma", "no-cache", time.Hour, false, false},
	} {
		b.now = b.now.Add(test.later)
		headers := []string{test.header, test.value}
		if strings.HasPrefix(test.name, "Pragma") {
			headers = append(headers, "Cache-Control", "max-stale=1")
		}
		b.ask("GET", test.target, test.secret, headers...)
		if a := b.script.asked[len(b.script.asked)-1]; a.NoCache != test.noCache || a.JoinOnly != test.joinOnly {
			t.Errorf("%s: no-cache %v, joining only %v", test.name, a.NoCache, a.JoinOnly)
		}
	}
}

// What JSON has no use for changes nothing: ranges, dates, what the client
// would like to read.
func TestHeadersThatSayNothing(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", true, 200, long()))
	target := root + "/Messages.json"
	plain := b.ask("GET", target, demo)
	tag := plain.Header().Get("Etag")
	for _, headers := range [][]string{
		{"Range", "bytes=0-9"}, {"Range", "bytes=-1"}, {"Range", "bytes=99999999-"}, {"Range", "bytes=0-0,5-6"}, {"Range", "rows=1-2"},
		{"Range", "bytes=9-0"},
		{"Range", "bytes=0-9", "If-Range", tag}, {"Range", "bytes=0-9", "If-Range", `"other"`},
		{"Range", "bytes=0-9", "If-Range", "Sat, 01 Jan 2028 00:00:00 GMT"},
		{"If-Modified-Since", "Sat, 01 Jan 2028 00:00:00 GMT"}, {"If-Modified-Since", "nonsense"},
		{"If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"},
		{"Accept", "text/html"}, {"Accept", "application/json;q=0"}, {"Accept-Charset", "latin-1"}, {"Accept-Language", "de"},
		{"TE", "trailers, gzip"},
		{"If-None-Match", `"other"`, "If-Modified-Since", "Sat, 01 Jan 2028 00:00:00 GMT"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			w := b.ask(method, target, demo, headers...)
			checktest.Equal(t, w.Code, 200, "%s with %q: w.Code", method, headers)
			checktest.True(t, !(method == "GET" && w.Body.String() != long()),
				`%s with %q: method == "GET" && w.Body.String() != long(); method is %q`, method, headers, method)
			checktest.True(t, !(method == "HEAD" && w.Body.Len() != 0),
				`%s with %q: method == "HEAD" && w.Body.Len() != 0; method is %q`, method, headers, method)
			for name, values := range plain.Header() {
				if got := w.Header().Get(name); got != values[0] && name != "X-Request-Id" {
					t.Errorf("%s with %q: %s is %q, want %q", method, headers, name, got, values[0])
				}
			}
			if len(w.Header()) != len(plain.Header()) {
				t.Errorf("%s with %q: headers %v", method, headers, w.Header())
			}
		}
	}
	for _, name := range []string{"Accept-Ranges", "Content-Range", "Last-Modified"} {
		if got := plain.Header().Get(name); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	// 304 counts before a range, and needs no date.
	if w := b.ask("GET", target, demo, "Range", "bytes=0-9", "If-None-Match", tag, "If-Modified-Since",
		"Sat, 01 Jan 2000 00:00:00 GMT"); w.Code != 304 {
		t.Errorf("%d, want 304", w.Code)
	}
}

func TestPreferredWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.script.page = func(ctx context.Context, _ request.Request) (*request.Response, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Hour):
				return nil, understudy.ErrUnavailable
			}
		}
		begun := time.Now()
		w := b.ask("GET", root+"/Calls.json", demo, "Prefer", "respond-async, wait=2")
		took := time.Since(begun)
		checktest.Equal(t, took, 2*time.Second, "took")
		checktest.Equal(t, w.Code, 503, "w.Code")
		checktest.True(t, w.Header().Get("Retry-After") != "", `w.Header().Get("Retry-After") is empty`)
	})
}

func TestACallerWhoLeftIsLoggedAsSuch(t *testing.T) {
	b := newBed(t)
	b.script.page = func(ctx context.Context, _ request.Request) (*request.Response, error) { return nil, ctx.Err() }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", root+"/Calls.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RequestURI = root + "/Calls.json"
	b.send(r, demo)
	if !strings.Contains(b.text(t), "status=499") {
		t.Errorf("logged %s", b.text(t))
	}
}

func TestAccessLog(t *testing.T) {
	b := newBed(t)
	a := b.answers(page("calls", true, 200, `{"calls":[]}`))
	a.Outcome, a.UpstreamTime = request.Cold, 812*time.Millisecond
	w := b.ask("GET", root+"/Calls.json?To=%2B14155551234", demo, "X-Request-Id", "mine-1", "User-Agent", "reports/2 (linux)")
	if w.Header().Get("X-Request-Id") != "mine-1" {
		t.Error("the caller's id was not kept")
	}
	b.ask("GET", root+"/Calls.json", "", "X-Request-Id", "bad id\n")
	text := b.text(t)
	want := `id=mine-1 method=GET path="` + root + `/Calls.json?To=…" status=200 bytes=12 caller=demo how=cold ` +
		`dur=0.000ms upstream=812.000ms peer=192.0.2.1 host=example.com agent="reports/2 (linux)"` + "\n"
	checktest.Contains(t, text, want, "logged: text")
	checktest.Lacks(t, text, "4155551234", "logged: text")
	checktest.Lacks(t, text, "bad id", "logged: text")
	checktest.Equal(t, strings.Count(text, "\n"), 2, `logged: strings.Count(text, "\n")`)
	checktest.Contains(t, text, "status=401", "logged: text")
	checktest.Lacks(t, text, demo, "logged: text")
}

func TestTargetsAreRemembered(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, `{"calls":[]}`))
	b.ask("GET", root+"/Calls.json?PageSize=50", demo)
	b.ask("GET", root+"/Calls.json?PageSize=50", demo)
	b.ask("GET", root+"/Calls.json", demo)
	asked := b.script.asked
	if asked[0].Target != asked[1].Target {
		t.Error("the same request line was read twice")
	}
	if asked[0].Target.Key != asked[2].Target.Key {
		t.Errorf("keys %v and %v", asked[0].Target.Key, asked[2].Target.Key)
	}
}
