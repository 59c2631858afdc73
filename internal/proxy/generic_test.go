// Tests of generic sources with all parts real: an HTTP server upstream, upstream's client, the
// mirror and its store.

package proxy_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/checktest"
	"understudy/internal/proxy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/spec"
	"understudy/upstream"
)

// site is a server of which nothing is known, and a proxy in front of it.
type site struct {
	*testing.T
	up, server *httptest.Server
	down       atomic.Bool
	mu         sync.Mutex
	asked      []*http.Request // less their bodies
	version    atomic.Int64    // of /page
	hold       chan struct{}   // what /slow and /endless wait for
	left       chan struct{}   // a request to /endless has ended upstream
	ahead      atomic.Int64    // added to the clock
}

const (
	siteSecret = "siteprogramsecret"
	siteBody   = 64 << 10
)

// openSite starts both. The program may do anything but DELETE.
func openSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, hold: make(chan struct{}), left: make(chan struct{}, 1)}
	s.up = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Clone(context.Background()))
		s.mu.Unlock()
		if s.down.Load() {
			panic(http.ErrAbortHandler)
		}
		s.answer(w, r)
	}))
	t.Cleanup(s.up.Close)
	now := s.now
	sp, err := spec.NewGeneric(s.up.URL, "none")
	check(t, err)
	src := &spec.Source{Name: "site", Spec: sp}
	db, err := store.Open(t.Context(), store.Options{Path: storetest.File(t), Specs: map[string]*spec.Spec{"site": sp}, Now: now})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	client, err := upstream.New(upstream.Options{Source: src, Base: s.up.URL, Rate: 1000, Concurrency: 100, Now: now})
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	m, err := mirror.New(mirror.Options{Sources: []mirror.Source{{Source: src, Upstream: client}}, Store: db, Now: now})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() { cancel(); check(t, <-ended) })
	gate, err := access.NewWith(access.Options{Specs: map[string]*spec.Spec{"site": sp}, Now: now})
	check(t, err)
	var allow []understudy.Allow
	for _, method := range []string{"POST", "PUT", "PATCH", "M-SEARCH"} {
		allow = append(allow, understudy.Allow{Method: method, Path: "/**"})
	}
	book, err := callers.New(callers.Options{Sources: []*spec.Source{src}, Credentials: []callers.Credential{{Name: "program", Source: "site",
		User: "program", Secret: understudy.NewSecret(siteSecret), Grant: understudy.Grant{Role: "all", Allow: allow}}}})
	check(t, err)
	px, err := proxy.New(proxy.Options{Source: src, Mirror: m, Exchanger: m, Gate: gate, Callers: book, MaxBody: siteBody, Now: now})
	check(t, err)
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Test-Writer") == "sends all at the end" {
			w = struct{ http.ResponseWriter }{w}
		}
		px.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	return s
}

// now is a clock that the test may put ahead, here and upstream.
func (s *site) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Date", s.now().UTC().Format(http.TimeFormat))
	switch r.URL.Path {
	case "/page": // a write makes another version of it
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.version.Add(1)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		n := s.version.Load()
		h.Set("Cache-Control", "max-age=60, stale-if-error=600")
		h.Set("Etag", fmt.Sprintf(`"%d"`, n))
		if r.Header.Get("If-None-Match") == h.Get("Etag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprintf(w, "version %d of the page", n)
	case "/mine": // the cookie is for who asked
		h["Cache-Control"], h["Set-Cookie"] = []string{`max-age=60, no-cache="set-cookie"`}, []string{"for=one"}
		h.Set("Etag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
		}
	case "/unchanged": // whatever it is asked
		w.WriteHeader(http.StatusNotModified)
	case "/signed": // as another Understudy answers
		h.Set("Understudy-Error", "of upstream")
		w.WriteHeader(http.StatusNotFound)
	case "/slow":
		h["Cache-Control"], h["Set-Cookie"] = []string{`max-age=60, no-cache="set-cookie"`}, []string{"for=one"}
		select {
		case <-s.hold:
			_, _ = io.WriteString(w, "for all")
		case <-r.Context().Done(): // a test that fails ends
		}
	case "/large": // larger than what is stored, and no two parts alike
		h.Set("Cache-Control", "max-age=60")
		for i := range 12 << 10 {
			_, _ = fmt.Fprintf(w, "%01023d\n", i)
		}
	case "/endless":
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.hold:
			_, _ = io.WriteString(w, "second\n")
		case <-r.Context().Done():
			s.left <- struct{}{}
		}
	case "/early":
		h["Link"], h["X-Hint"], h["Set-Cookie"] = []string{"</style.css>; rel=preload"}, []string{"1"}, []string{"a=1", "__Host-understudy=2"}
		w.WriteHeader(http.StatusProcessing)
		w.WriteHeader(http.StatusEarlyHints)
		clear(h)
		_, _ = io.WriteString(w, "late")
	case "/links": // before the answer, in it and behind it
		lines := http.Header{"Link": {"<" + s.up.URL + "/a>; rel=next"}, "Location": {s.up.URL + "/a"}, "Content-Location": {s.up.URL + "/a"}}
		maps.Copy(h, lines)
		w.WriteHeader(http.StatusEarlyHints)
		h.Set("Cache-Control", "no-store")
		h["Trailer"] = []string{"Link"}
		_, _ = io.WriteString(w, "all")
		h.Set(http.TrailerPrefix+"Understudy-Error", "of upstream")
		for name, values := range lines {
			h[http.TrailerPrefix+name] = values
		}
	default:
		body, _ := io.ReadAll(r.Body)
		h.Set("X-Echo-Authorization", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "%s %s %x", r.Method, r.RequestURI, sha256.Sum256(body))
	}
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// request is one of the program.
func (s *site) request(ctx context.Context, method, path string, body io.Reader, headers ...string) *http.Request {
	s.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.server.URL+path, body)
	check(s.T, err)
	r.SetBasicAuth("program", siteSecret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do is the answer to one.
func (s *site) do(method, path, body string, headers ...string) (*http.Response, string) {
	s.Helper()
	resp, err := http.DefaultClient.Do(s.request(s.Context(), method, path, strings.NewReader(body), headers...))
	check(s.T, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	check(s.T, err)
	return resp, string(got)
}

func TestErrorOfUpstreamIsNotSignedAsOurs(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	if resp, _ := s.do("GET", "/signed", ""); resp.StatusCode != http.StatusNotFound || resp.Header.Get("Understudy-Error") != "" {
		t.Errorf("%s, signed %q", resp.Status, resp.Header.Get("Understudy-Error"))
	}
}

// A field that names another method is refused, and one that names another address goes no
// further, so that what is asked upstream is what was permitted and what the answer is stored
// under.
func TestGenericRequestIsTheOneThatUpstreamGets(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_METHOD_OVERRIDE",
		"Method-Override", "Http-Method-Override", "X-Tunneled-Method"} {
		before := s.count()
		resp, _ := s.do("POST", "/echo", "", name, "DELETE")
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s, want 400", name, resp.Status)
		}
		if s.count() != before {
			t.Errorf("%s: upstream was asked", name)
		}
	}
	for _, name := range []string{"X-Original-URL", "X-Rewrite-URL", "X-Host", "X-Forwarded-Host",
		"X-Forwarded-For", "Forwarded", "X_Original_URL", "Proxy", "Remote-User", "X-Real-Host",
		"X-Matched-Path", "X-Base-URL", "X-Backend-Server", "X-MS-Client-Principal-Name", "SSL_CLIENT_S_DN"} {
		resp, _ := s.do("GET", "/page", "", name, "/admin", "Cache-Control", "no-cache")
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, resp.Status)
		}
		s.mu.Lock()
		got := s.asked[len(s.asked)-1].Header
		s.mu.Unlock()
		if values := got[http.CanonicalHeaderKey(name)]; values != nil {
			t.Errorf("%s went upstream: %q", name, values)
		}
	}
}

func TestGenericMethodsAndBodies(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	most := strings.Repeat("x", siteBody)
	for _, one := range []struct {
		method, body string
		status       int
	}{
		{"GET", "", 200}, {"HEAD", "", 200}, {"OPTIONS", "", 200}, {"POST", "", 200}, {"POST", "a\x00b", 200}, {"PUT", most, 200},
		{"PUT", most + "x", 413}, {"PATCH", "p", 200}, {"M-SEARCH", "m", 200}, {"GET", "of a GET", 200}, {"DELETE", "", 403},
		{"TRACE", "", 405}, {"PURGE", "", 403},
	} {
		before := s.count()
		resp, got := s.do(one.method, "/echo?b=2&a=%2F&a", one.body)
		want := fmt.Sprintf("%s /echo?b=2&a=%%2F&a %x", one.method, sha256.Sum256([]byte(one.body)))
		passed := one.status == http.StatusOK
		switch {
		case resp.StatusCode != one.status, passed && one.method != "HEAD" && got != want, one.method == "HEAD" && got != "":
			t.Errorf("%s of %d bytes: %s %.200s, want %d %s", one.method, len(one.body), resp.Status, got, one.status, want)
		case (s.count() > before) != passed:
			t.Errorf("%s: upstream was asked %d times", one.method, s.count()-before)
		case resp.Header.Get("X-Echo-Authorization") != "":
			t.Errorf("%s: upstream got our credential", one.method)
		}
	}
	// A body whose length nobody says is bounded, too.
	endless := io.MultiReader(strings.NewReader(most), strings.NewReader("x"))
	resp, err := http.DefaultClient.Do(s.request(t.Context(), "POST", "/echo", endless))
	check(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body in chunks: %s", resp.Status)
	}
	// One that says its length is not invited.
	r := s.request(t.Context(), "POST", "/echo", nil)
	c, err := net.Dial("tcp", r.URL.Host)
	check(t, err)
	defer c.Close()
	fmt.Fprintf(c, "POST /echo HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
		r.Header.Get("Authorization"), siteBody+1)
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 413 ") {
		t.Errorf("a body that waits to be invited: %q, %v", line, err)
	}
}

// A pipelined request may be begun before its turn, by a writer that sends nothing until then.
func TestGenericEarlyHintsGoOutBeforeTheAnswerOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	for writer, want := range map[string]int{"": 2, "sends all at the end": 0} {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
			hints++
			return nil
		}})
		resp, err := http.DefaultClient.Do(s.request(ctx, "GET", "/early", nil, "Test-Writer", writer))
		check(t, err)
		got, err := io.ReadAll(resp.Body)
		check(t, err)
		_ = resp.Body.Close()
		checktest.Equal(t, hints, want, "%q: hints; got %q", writer, got)
		checktest.Equal(t, resp.StatusCode, http.StatusOK, "%q: resp.StatusCode; got %q", writer, got)
		checktest.Equal(t, string(got), "late", "%q: string(got)", writer)
	}
}

func TestGenericPartsAndConditions(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	for _, one := range []struct { // the first is cold: upstream knows no ranges, and its whole answer is stored
		headers []string
		status  int
		body    string
	}{
		{[]string{"Range", "bytes=0-6"}, 206, "version"},
		{[]string{"Range", "bytes=-4"}, 206, "page"},
		{[]string{"Range", "bytes=8-8", "If-Range", `"0"`}, 206, "0"},
		{[]string{"Range", "bytes=8-8", "If-Range", `"other"`}, 200, "version 0 of the page"},
		{[]string{"Range", "bytes=900-"}, 416, ""},
		{[]string{"Range", "bytes=-0"}, 416, ""},
		{[]string{"Range", "bytes=8-99999999999999999999"}, 206, "0 of the page"},
		{[]string{"Range", "items=0-1"}, 200, "version 0 of the page"},
		{[]string{"Range", "bytes=2-1"}, 200, "version 0 of the page"},
		{[]string{"If-None-Match", `"0"`}, 304, ""},
		{[]string{"If-None-Match", `W/"0", "x"`}, 304, ""},
		{[]string{"If-None-Match", `"1"`}, 200, "version 0 of the page"},
	} {
		if resp, got := s.do("GET", "/page", "", one.headers...); resp.StatusCode != one.status || one.status < 300 && got != one.body {
			t.Errorf("%v: %s %q, want %d %q", one.headers, resp.Status, got, one.status, one.body)
		} else if own := resp.Header.Get("Understudy-Error") != ""; own != (one.status == 416) {
			t.Errorf("%v: %s is signed: %t", one.headers, resp.Status, own)
		}
	}
	if n := s.count(); n != 1 {
		t.Errorf("upstream was asked %d times", n)
	}
	for range 2 { // the second is stored
		if resp, _ := s.do("GET", "/mine", "", "Range", "bytes=-5"); resp.StatusCode != 200 || resp.Header.Get("Content-Range") != "" {
			t.Errorf("a part of nothing: %s %v", resp.Status, resp.Header)
		}
	}
}

func TestGenericWritesInvalidateAndOutagesDoNot(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	is := func(when, want string, asks int) {
		t.Helper()
		before := s.count()
		if resp, got := s.do("GET", "/page", ""); got != want || s.count()-before != asks {
			t.Errorf("%s: %q (%s), asked %d times; want %q, %d", when, got, resp.Header.Get("Cache-Status"), s.count()-before, want, asks)
		}
	}
	is("cold", "version 0 of the page", 1)
	is("held", "version 0 of the page", 0)
	if resp, _ := s.do("PUT", "/page", "x"); resp.StatusCode != http.StatusNoContent {
		t.Error(resp.Status)
	}
	is("after a write", "version 1 of the page", 1)
	is("held again", "version 1 of the page", 0)
	s.ahead.Store(int64(61 * time.Second))
	is("past fresh", "version 1 of the page", 1) // a 304
	is("confirmed", "version 1 of the page", 0)
	s.ahead.Store(int64(3 * time.Minute))
	s.down.Store(true)
	if resp, got := s.do("GET", "/page", ""); got != "version 1 of the page" || !strings.Contains(resp.Header.Get("Cache-Status"), "stale") {
		t.Errorf("in an outage: %s %q %s", resp.Status, got, resp.Header.Get("Cache-Status"))
	}
	if resp, _ := s.do("PUT", "/page", "x"); resp.StatusCode < 500 {
		t.Errorf("a write in an outage: %s", resp.Status)
	}
	s.ahead.Store(int64(time.Hour))
	if resp, got := s.do("GET", "/page", ""); resp.StatusCode < 500 {
		t.Errorf("past stale-if-error, and after a write of which nobody knows: %s %q", resp.Status, got)
	}
}
