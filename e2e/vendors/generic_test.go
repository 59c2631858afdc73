// Generic: what passes to and from a server without a spec, who may ask, and what a restart
// keeps.

package vendors

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// origin is a server of which nothing is known. It notes what it is asked.
type origin struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
	next  chan struct{} // the rest of a stream
}

func newOrigin(t *testing.T) *origin {
	o := newUnstartedOrigin()
	o.Start()
	t.Cleanup(o.Close)
	return o
}

// newUnstartedOrigin is one that is still to be started, and closed.
func newUnstartedOrigin() *origin {
	o := &origin{next: make(chan struct{})}
	o.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked = append(o.asked, r.Clone(r.Context()))
		o.mu.Unlock()
		o.answer(w, r)
	}))
	return o
}

func (o *origin) answer(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	switch r.URL.Path {
	case "/kept":
		h.Set("Cache-Control", "max-age=3600")
		h.Set("Content-Type", "application/octet-stream")
		h.Set("X-Own", "as it is")
		io.WriteString(w, "0123456789\x01\x00\xff")
	case "/early":
		w.WriteHeader(http.StatusProcessing)
		h.Set("Link", "</style.css>; rel=preload")
		h.Set("X-Hint", "1")
		h.Set("Connection", "X-Own")
		h.Set("X-Own", "of the connection")
		w.WriteHeader(http.StatusEarlyHints)
		clear(h)
		io.WriteString(w, "late")
	case "/trailer":
		h.Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		h.Set("X-Sum", "42")
	case "/moved":
		h.Set("Location", "http://elsewhere.example/there")
		w.WriteHeader(http.StatusFound)
	case "/stream":
		io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-o.next:
		case <-r.Context().Done():
		}
		io.WriteString(w, "second\n")
	case "/echo":
		for name, values := range r.Header {
			h["X-Echo-"+name] = values
		}
		h.Add("Set-Cookie", "__Host-understudy=stolen")
		h.Add("Set-Cookie", "theirs=1")
		w.WriteHeader(http.StatusEarlyHints)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Method, body)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// last is the newest request, and how many there were.
func (o *origin) last() (*http.Request, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) == 0 {
		return nil, 0
	}
	return o.asked[len(o.asked)-1], len(o.asked)
}

func TestGenericPassesWhatComes(t *testing.T) {
	t.Parallel()
	o, dir := newOrigin(t), t.TempDir()
	serve := []string{"serve", "--generic", o.URL, "--drop-in", "generic=127.0.0.1:0", "--viewer", "127.0.0.1:0"}
	s := rig.Start(t, dir, serve...)
	at := s.URL("generic")
	t.Run("early hints", func(t *testing.T) {
		hints := ""
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			hints += fmt.Sprint(status, h)
			return nil
		}})
		req, _ := http.NewRequestWithContext(ctx, "GET", at+"/early", nil)
		resp, err := rig.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		want := "102 map[]103 map[Link:[</style.css>; rel=preload] X-Hint:[1]]"
		checktest.Equal(t, hints, want, "hints")
		checktest.Equal(t, resp.Header.Get("Link"), "", `resp.Header.Get("Link")`)
		checktest.Equal(t, resp.StatusCode, 200, "resp.StatusCode")
	})
	t.Run("trailer", func(t *testing.T) {
		resp, err := rig.Client.Get(at + "/trailer")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		checktest.MustNoError(t, err, "body %q", body)
		checktest.Equal(t, string(body), "body", "string(body)")
		checktest.Equal(t, resp.Trailer.Get("X-Sum"), "42", `resp.Trailer.Get("X-Sum"); body %q`, body)
	})
	t.Run("redirect", func(t *testing.T) {
		if r := rig.Get(t, "", at+"/moved"); r.Status != 302 || r.Header.Get("Location") != "http://elsewhere.example/there" {
			t.Errorf("%d %v", r.Status, r.Header)
		}
	})
	t.Run("stream", func(t *testing.T) {
		resp, err := rig.Client.Get(at + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		if first, err := lines.ReadString('\n'); first != "first\n" {
			t.Errorf("%q %v", first, err)
		}
		close(o.next) // it began before it ended
		if second, err := lines.ReadString('\n'); second != "second\n" {
			t.Errorf("%q %v", second, err)
		}
	})
	t.Run("any method, and what is not ours", func(t *testing.T) {
		r, err := rig.Ask("M-SEARCH", "them:their secret", at+"/echo?b=2&a=1&a", "x=1", "Cookie", "a=b; __Host-understudy=s; understudy_zone=z; c=d",
			"Connection", "X-Hop", "X-Hop", "1", "X-End", "2", "Proxy-Authorization", "Basic x")
		if err != nil {
			t.Fatal(err)
		}
		sent, _ := o.last()
		checktest.Equal(t, string(r.Body), "M-SEARCH x=1", "string(r.Body)")
		checktest.Equal(t, sent.RequestURI, "/echo?b=2&a=1&a", "sent.RequestURI")
		checktest.Equal(t, sent.Host, strings.TrimPrefix(o.URL, "http://"), "sent.Host")
		for name, want := range map[string]string{
			"X-End": "2", "X-Hop": "", "Proxy-Authorization": "", "Cookie": "a=b; c=d", "Via": "1.1 understudy",
		} {
			if got := sent.Header.Get(name); got != want {
				t.Errorf("upstream got %s: %q, want %q", name, got, want)
			}
		}
		if user, _, _ := sent.BasicAuth(); user != "them" {
			t.Errorf("upstream got the credential of %q", user)
		}
		if got := r.Header["Set-Cookie"]; !slices.Equal(got, []string{"theirs=1"}) {
			t.Errorf("cookies are %q", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		_, before := o.last()
		for name, headers := range map[string][]string{
			"by a proxy": {"X-Forwarded-For", "10.0.0.1"}, "through ourselves": {"Via", "1.1 understudy"},
		} {
			if r := rig.Get(t, "", at+"/kept", headers...); r.Status != 401 {
				t.Errorf("%s: %d", name, r.Status)
			}
		}
		req, _ := http.NewRequest("GET", at+"/kept", nil)
		req.Host = "evil.example"
		if resp, err := rig.Client.Do(req); err != nil || resp.StatusCode != 401 {
			t.Errorf("under another name: %v %v", resp, err)
		}
		if r, err := rig.Ask("TRACE", "", at+"/echo", ""); err != nil || r.Status != 405 {
			t.Errorf("TRACE: %d %v", r.Status, err)
		}
		if _, after := o.last(); after != before {
			t.Errorf("upstream was asked %d times", after-before)
		}
	})
	want := rig.Get(t, "", at+"/kept")
	for range 20 { // on the express lane from the second on
		r := rig.Get(t, "", at+"/kept")
		same := string(r.Body) == "0123456789\x01\x00\xff" && r.Header.Get("X-Own") == "as it is" &&
			r.Header.Get("Date") == want.Header.Get("Date")
		checktest.MustTrue(t, same, "same is false")
		checktest.MustTrue(t, strings.HasPrefix(r.Header.Get("Cache-Status"), "understudy; hit; ttl="),
			`r.Header.Get("Cache-Status") is %q`, r.Header.Get("Cache-Status"))
		checktest.MustEqual(t, r.Header.Get("Content-Security-Policy"), "",
			`r.Header.Get("Content-Security-Policy")`)
	}
	r := rig.Get(t, "", at+"/kept", "Range", "bytes=2-4")
	checktest.Equal(t, r.Status, 206, "a range: r.Status")
	checktest.Equal(t, string(r.Body), "234", "a range: string(r.Body)")
	checktest.Equal(t, r.Header.Get("Content-Range"), "bytes 2-4/13", `a range: r.Header.Get("Content-Range")`)
	var stats struct {
		Faces map[string]struct{ Express int64 } `json:"faces"`
	}
	if err := json.Unmarshal(rig.Get(t, "", s.URL("viewer")+"/-/stats").Body, &stats); err == nil && stats.Faces["generic"].Express == 0 {
		t.Errorf("the express lane answered nothing: %+v", stats)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	_, before := o.last()
	s = rig.Start(t, dir, serve...)
	r = rig.Get(t, "", s.URL("generic")+"/kept")
	if string(r.Body) != string(want.Body) || !strings.Contains(r.Header.Get("Cache-Status"), "hit") {
		t.Errorf("after a restart: %q %v", r.Body, r.Header)
	}
	if _, after := o.last(); after != before {
		t.Error("after a restart upstream is asked again")
	}
}

func TestGenericCredentials(t *testing.T) {
	t.Parallel()
	o, dir := newOrigin(t), t.TempDir()
	files := map[string]string{
		"shop.secret": "shopsecret12345678", "plain.secret": "plainsecret12345678", "few.secret": "fewsecret123456789", "upstream.token": "tokenofupstream1234",
		"understudy.yml": fmt.Sprintf(`sources:
  web: {generic: %q, secret: "file:upstream.token", listen: "127.0.0.1:0"}
  plain: {generic: %[1]q, listen: "127.0.0.1:0"}
credentials:
  - {name: shop, source: web, user: shop, secret: "file:shop.secret", role: all, allow: ["* /echo/**", "POST /echo"]}
  - {name: plain, source: plain, user: plain, secret: "file:plain.secret", role: all}
  - {name: few, source: web, user: few, secret: "file:few.secret", role: few}
roles:
  few: {web: {"*": see}}
viewer: {listen: "127.0.0.1:0"}
`, o.URL)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := rig.Start(t, dir, "serve")
	at := s.URL("web")
	for _, c := range []struct {
		method, user, path string
		status             int
	}{
		{"GET", "", "/kept", 401},
		{"GET", "shop:wrong", "/kept", 401},
		{"GET", "few:fewsecret123456789", "/kept", 403},
		{"GET", "shop:shopsecret12345678", "/kept", 200},
		{"OPTIONS", "shop:shopsecret12345678", "/echo", 200},
		{"POST", "shop:shopsecret12345678", "/echo", 200},
		{"PUT", "shop:shopsecret12345678", "/echo", 403},
		{"PURGE", "shop:shopsecret12345678", "/echo/any/thing", 404},
		{"PUT", "shop:shopsecret12345678", "/echo/../kept", 403},
		{"PUT", "shop:shopsecret12345678", "/echo/%2e%2e/kept", 403},
	} {
		_, before := o.last()
		r, err := rig.Ask(c.method, c.user, at+c.path, "")
		if err != nil || r.Status != c.status {
			t.Errorf("%s %s as %q: %d %v, want %d", c.method, c.path, c.user, r.Status, err, c.status)
		}
		if _, after := o.last(); after != before && (c.status == 401 || c.status == 403) {
			t.Errorf("%s %s as %q reached upstream", c.method, c.path, c.user)
		}
	}
	// Our credential is not upstream's: what comes to it may be stored, and upstream never sees it.
	for range 3 {
		if r := rig.Get(t, "shop:shopsecret12345678", at+"/kept"); !strings.HasPrefix(r.Header.Get("Cache-Status"), "understudy; hit; ttl=") {
			t.Errorf("with our credential: %s", r.Header.Get("Cache-Status"))
		}
	}
	if r := rig.Get(t, "plain:plainsecret12345678", s.URL("plain")+"/echo"); r.Status != 200 || r.Header.Get("X-Echo-Authorization") != "" {
		t.Errorf("a source without a credential of its own gets ours: %d %v", r.Status, r.Header)
	}
	early := http.Header{}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		early = http.Header(h)
		return nil
	}})
	req, _ := http.NewRequestWithContext(ctx, "GET", at+"/echo", nil)
	req.SetBasicAuth("shop", "shopsecret12345678")
	resp, err := rig.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	sent, _ := o.last()
	if got := sent.Header.Get("Authorization"); got != "Bearer tokenofupstream1234" {
		t.Errorf("upstream got %q", got)
	}
	for _, h := range []http.Header{resp.Header, early} {
		{
			text := fmt.Sprint(h)
			checktest.MustEqual(t, len(h["Set-Cookie"]), 1, `len(h["Set-Cookie"]); text %v`, text)
			checktest.Lacks(t, text, "tokenofupstream", "text")
			checktest.Lacks(t, text, "shopsecret", "text")
		}
	}
}
