// The shared cache over real HTTP: what upstream is asked, and what callers get.

package shared_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/mirror/shared"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// bed is a cache before an upstream of one handler.
type bed struct {
	*memory
	t     testing.TB
	cache *shared.Cache
	spec  *spec.Spec
	mu    sync.Mutex
	at    time.Time
	asked []string // of upstream
}

func (b *bed) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bed) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

func newBed(t testing.TB, answer http.HandlerFunc) *bed {
	b := &bed{memory: &memory{pages: map[understudy.Key]*understudy.Page{}}, t: t, at: time.Now().Truncate(time.Second)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		line := r.Method + " " + r.RequestURI
		for _, name := range []string{"If-None-Match", "If-Modified-Since", "Range"} {
			if value := r.Header.Get(name); value != "" {
				line += " " + name
			}
		}
		b.asked = append(b.asked, line)
		w.Header().Set("Date", b.at.UTC().Format(http.TimeFormat))
		b.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	var err error
	if b.spec, err = spec.NewGeneric(server.URL, "none"); err != nil {
		t.Fatal(err)
	}
	c, err := upstream.New(upstream.Options{Source: &spec.Source{Name: "web", Spec: b.spec}, Base: server.URL, Rate: 1000, Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	b.cache = shared.New(shared.Options{Pages: b, Flights: b, MaxBody: 1 << 10, Now: b.now})
	b.cache.AddSource("web", c)
	return b
}

// memory is Pages in a map, and Flights that begin with every reader.
type memory struct {
	lock  sync.Mutex
	pages map[understudy.Key]*understudy.Page
	kept  error
	then  func() // once, when a page has been read
}

func (m *memory) Find(key understudy.Key) *understudy.Page {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.pages[key]
}

func (m *memory) Load(_ context.Context, key understudy.Key) (*understudy.Page, error) {
	p, then := m.Find(key), m.then
	if m.then = nil; then != nil {
		then()
	}
	if p != nil {
		return p, nil
	}
	return nil, understudy.ErrNotFound
}

func (m *memory) Keep(p *understudy.Page) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.kept == nil {
		m.pages[p.Key] = p
	}
	return m.kept
}

func (m *memory) Forget(_ context.Context, key understudy.Key) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.kept == nil {
		delete(m.pages, key)
	}
	return m.kept
}

func (m *memory) Join(ctx context.Context, _ *spec.Target, _ uint64, _ bool, f shared.Fetch) (*understudy.Page, bool, error) {
	flight, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	p, err := f(flight)
	return p, false, err
}

func (m *memory) FetchInBackground(_ *spec.Target, f shared.Fetch) { _, _ = f(context.Background()) }
func (m *memory) Enter(uint64) error                               { return nil }
func (m *memory) Exit(uint64)                                      {}

// do sends a request, as "GET /a" and lines of its header, and reads the answer: its status, its
// body and how it came.
func (b *bed) do(request string, lines ...string) string {
	b.t.Helper()
	got, err := b.try(request, lines...)
	if err != nil {
		b.t.Fatalf("%s: %v", request, err)
	}
	return got
}

func (b *bed) try(line string, lines ...string) (string, error) {
	b.t.Helper()
	method, uri, _ := strings.Cut(line, " ")
	target, err := b.spec.ResolveVerbatim("web", uri)
	if err != nil {
		return "", err
	}
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	a, err := b.cache.Answer(context.Background(), request.Exchange{Target: target, Method: method, Header: h})
	if err != nil {
		return "", err
	}
	defer a.Close()
	body := a.Response.Page.Body
	if a.Stream != nil {
		if body, err = io.ReadAll(a.Stream); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %s %s", a.Response.Page.Status, body, a.Response.Outcome, a.Response.Detail)), nil
}

func (b *bed) wantAsked(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.asked, want) {
		b.t.Errorf("upstream was asked %q, want %q", b.asked, want)
	}
	b.asked = nil
}

func (b *bed) want(want string, line string, lines ...string) {
	b.t.Helper()
	if got := b.do(line, lines...); got != want {
		b.t.Errorf("%s %v: %q, want %q", line, lines, got, want)
	}
}

func TestStoredAndRevalidated(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=10")
		w.Header().Set("Etag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(304)
			return
		}
		io.WriteString(w, "hello")
	})
	b.want("200 hello cold", "GET /a?b=1&a=2")
	b.want("200 hello warm", "GET /a?b=1&a=2")
	b.want("200 hello warm", "HEAD /a?b=1&a=2")
	b.want("200 hello cold", "GET /a?a=2&b=1")
	b.wantAsked("GET /a?b=1&a=2", "GET /a?a=2&b=1")
	b.pass(65 * time.Second)
	b.want("200 hello stale", "GET /a?b=1&a=2")
	b.want("200 hello warm", "GET /a?b=1&a=2") // it was renewed behind the answer
	b.wantAsked("GET /a?b=1&a=2 If-None-Match")
	b.pass(100 * time.Second)
	b.want("200 hello cold", "GET /a?b=1&a=2", `If-None-Match: "other"`, "Range: bytes=0-1")
	b.wantAsked("GET /a?b=1&a=2 If-None-Match")
	b.want("200 hello cold", "GET /a?b=1&a=2", "Cache-Control: no-cache")
	b.wantAsked("GET /a?b=1&a=2 If-None-Match")
	if _, err := b.try("GET /new", "Cache-Control: only-if-cached"); !errors.Is(err, understudy.ErrNoStoredAnswer) {
		t.Errorf("only-if-cached of what is not stored: %v", err)
	}
	b.wantAsked()
}

func TestWhatCameBeforeTheFlightIsNotAskedForAgain(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=10")
		w.Header()["Vary"] = r.URL.Query()["vary"]
		_, _ = io.WriteString(w, "answer")
	})
	for _, line := range []string{"GET /a", "GET /a?vary=Accept-Language"} {
		b.then = func() { b.want("200 answer cold", line) }
		b.want("200 answer warm", line)
		b.wantAsked(line)
		b.then = func() { b.want("200 answer cold", line, "Cache-Control: no-cache") }
		b.want("200 answer cold", line, "Cache-Control: no-cache")
		b.wantAsked(line, line)
	}
	b.pass(65 * time.Second) // what is past fresh is renewed once behind two at once
	b.then = func() { b.want("200 answer stale", "GET /a") }
	b.want("200 answer stale", "GET /a")
	b.wantAsked("GET /a")
}

func TestAConfirmationOfAnotherAnswerIsAskedAgain(t *testing.T) {
	asked := 0
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Etag", `"2"`)
		switch {
		case asked == 1:
			w.Header().Set("Etag", `"1"`)
			io.WriteString(w, "first")
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(304)
		default:
			io.WriteString(w, "second")
		}
	})
	b.want("200 first cold", "GET /a")
	b.wantAsked("GET /a")
	b.pass(65 * time.Second)
	b.want("200 second cold", "GET /a")
	b.wantAsked("GET /a If-None-Match", "GET /a")
	b.want("200 second warm", "GET /a")
}

func TestWhatIsNotStoredPasses(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/private":
			w.Header().Set("Cache-Control", "private, max-age=60")
		case "/long":
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, strings.Repeat("x", 2000))
			return
		case "/moved":
			w.Header().Set("Location", "http://elsewhere.example/")
			w.WriteHeader(302)
		}
		io.WriteString(w, r.Method)
	})
	for _, path := range []string{"/", "/private", "/moved"} {
		for range 2 {
			b.do("GET " + path)
		}
		b.wantAsked("GET "+path, "GET "+path)
	}
	for range 2 {
		if got := b.do("GET /long"); len(got) < 2000 {
			t.Errorf("a long answer came as %d bytes", len(got))
		}
	}
	b.wantAsked("GET /long", "GET /long")
	b.want("200 OPTIONS cold", "OPTIONS /a")
	b.want("200 PROPFIND cold", "PROPFIND /a")
	b.want("200 GET cold", "GET /a", "If-Match: \"1\"")
	if len(b.pages) > 0 {
		t.Errorf("%d pages are stored", len(b.pages))
	}
}

// An answer with more lines in its header than can be stored passes whole, and says why.
func TestLongHeaderPassesWhole(t *testing.T) {
	lines := 0
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range lines {
			name := "X-Line"
			if r.URL.Path == "/names" {
				name += strconv.Itoa(i)
			}
			w.Header().Add(name, "v")
		}
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"1"`)
	})
	ask := func(path string, n int) *request.ExchangeResponse {
		t.Helper()
		lines = n
		target, err := b.spec.ResolveVerbatim("web", path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.cache.Answer(t.Context(), request.Exchange{Target: target, Method: http.MethodGet, Header: http.Header{}})
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		count := 0
		for name, values := range got.Header {
			if strings.HasPrefix(name, "X-Line") {
				count += len(values)
			}
		}
		if count != n {
			t.Errorf("%s with %d lines: %d came", path, n, count)
		}
		return got
	}
	for _, path := range []string{"/lines", "/names"} {
		if got := ask(path, 200); got.Response.Detail != "not stored: its header has more than 100 lines" || got.Response.Stored {
			t.Errorf("%s with 200 lines: stored %v, %q", path, got.Response.Stored, got.Response.Detail)
		}
		if got := ask(path, 90); !got.Response.Stored {
			t.Errorf("%s with 90 lines is not stored: %q", path, got.Response.Detail)
		}
		b.pass(2 * time.Minute)
		if got := ask(path, 200); got.Response.Detail != "not stored: its header has more than 100 lines" {
			t.Errorf("%s, stored with 90 and now with 200: %q", path, got.Response.Detail)
		}
	}
}

func TestVariantsOfAnAnswer(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Accept-Language")
		io.WriteString(w, r.Header.Get("Accept-Language"))
	})
	for range 2 {
		for _, language := range []string{"de", "en"} {
			b.do("GET /a", "Accept-Language: "+language)
		}
	}
	b.want("200 de warm", "GET /a", "Accept-Language: de")
	b.wantAsked("GET /a", "GET /a")
	b.do("POST /a")
	b.pass(time.Nanosecond)
	b.want("200 de cold", "GET /a", "Accept-Language: de")
	b.want("200 en cold", "GET /a", "Accept-Language: en")
	b.want("200 en warm", "GET /a", "Accept-Language: en")
	b.wantAsked("POST /a", "GET /a", "GET /a")
}

// Answers that an index has listed do not come back with another index.
func TestVariantsBeforeAWriteStayInvalid(t *testing.T) {
	var vary atomic.Bool
	vary.Store(true)
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if vary.Load() {
			w.Header().Set("Vary", "Foo")
		}
		io.WriteString(w, r.Header.Get("Foo"))
	})
	b.do("GET /a", "Foo: 1")
	vary.Store(false)
	b.do("GET /a", "Foo: 2") // one answer for all takes the place of the index
	b.pass(time.Second)
	b.do("POST /a")
	vary.Store(true)
	b.pass(time.Second)
	b.want("200 3 cold", "GET /a", "Foo: 3")
	b.want("200 1 cold", "GET /a", "Foo: 1")
	b.want("200 1 warm", "GET /a", "Foo: 1")
	b.want("200 3 warm", "GET /a", "Foo: 3")
}

func TestStaleAnswersAreThoseThatMayBe(t *testing.T) {
	var status atomic.Int64
	status.Store(200)
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		if status.Load() == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Cache-Control", map[string]string{"/sie": "max-age=1, stale-if-error=60", "/must": "max-age=1, must-revalidate",
			"/plain": "max-age=1"}[r.URL.Path])
		w.WriteHeader(int(status.Load()))
	})
	for _, path := range []string{"/sie", "/must", "/plain"} {
		b.do("GET " + path)
	}
	b.pass(10 * time.Second)
	status.Store(503)
	b.want("200  stale stale: upstream 503", "GET /sie")
	b.want("200  stale stale: upstream 503", "HEAD /sie")
	b.want("503  cold", "HEAD /plain")
	status.Store(0)
	b.want("200  stale stale: upstream unreachable", "GET /sie")
	b.want("200  stale stale: upstream unreachable", "GET /plain")
	if _, err := b.try("GET /must"); !errors.Is(err, understudy.ErrUnavailable) {
		t.Errorf("must-revalidate in an outage: %v", err)
	}
}

func TestWhatCannotBeSavedIsAnsweredOnce(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "max-age=60") })
	b.kept = errors.New("disk full")
	b.want("200  cold not stored: it could not be saved", "GET /a")
	b.want("200  cold not stored: it could not be saved", "GET /a")
}

// Example serves one answer twice, and asks upstream once.
func Example() {
	b := newBed(&testing.B{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, "hello")
	})
	fmt.Println(b.do("GET /greeting"))
	fmt.Println(b.do("GET /greeting"))
	fmt.Println(b.asked)
	// Output:
	// 200 hello cold
	// 200 hello warm
	// [GET /greeting]
}

// What a visitor's cookie has made is for that visitor, and who brings one is not answered by
// a guess.
func TestPageOfOneVisitorIsNotShared(t *testing.T) {
	for _, name := range []string{"Cookie", "X-Api-Key", "Authorization", "Private-Token", "X-Tenant-Id"} {
		b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Last-Modified", time.Now().Add(-24*time.Hour).UTC().Format(http.TimeFormat))
			io.WriteString(w, "for "+r.Header.Get(name))
		})
		b.want("200 for ann cold", "GET /a", name+": ann")
		b.want("200 for bob cold", "GET /a", name+": bob")
		b.want("200 for  cold", "GET /a")
		b.want("200 for  warm", "GET /a")
		b.want("200 for ann cold", "GET /a", name+": ann")
	}
}

// A cookie that is set goes to nobody else, unless upstream says that it may.
func TestCookieOfOneVisitorIsNotShared(t *testing.T) {
	for directives, want := range map[string]string{"max-age=60": "2", "max-age=60, s-maxage=60": "2", "max-age=60, public": "1"} {
		var n atomic.Int64
		b := newBed(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", directives)
			w.Header().Set("Set-Cookie", "session=secret")
			fmt.Fprint(w, n.Add(1))
		})
		b.do("GET /a")
		if got := strings.Fields(b.do("GET /a"))[1]; got != want {
			t.Errorf("%s: the second visitor gets answer %s, want %s", directives, got, want)
		}
	}
}

// A field that the settings pass although it names another request is no part of the key, so
// that its answer is not stored, and it is not answered from what is stored.
func TestAnswerToAMisleadingRequestIsNotStored(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Location", r.RequestURI)
		io.WriteString(w, r.Header.Get("X-Host"))
	})
	b.spec.Headers.Pass = []string{"X-Host"}
	b.want("200 evil cold", "GET /a", "X-Host: evil")
	b.want("200 evil cold", "POST /a", "X-Host: evil")
	b.want("200  cold", "GET /a")
	b.want("200  warm", "GET /a")
	b.want("200 evil cold", "GET /a", "X-Host: evil")
}
