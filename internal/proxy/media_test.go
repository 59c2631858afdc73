// Contents through every real part: what programs get, and what they do not.

package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

// mediaProduct is a running product with contents.
type mediaProduct struct {
	*testing.T
	slow, server *httptest.Server
	files        contents.Store
	ahead        atomic.Int64 // nanoseconds our clocks are ahead

	mu      sync.Mutex
	seen    []*http.Request
	instead http.HandlerFunc // of slowapi; nil: slowapi
}

func (h *mediaProduct) now() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }

// answer lets a handler answer in slowapi's stead; nil ends that.
func (h *mediaProduct) answer(f http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.instead, h.seen = f, nil
}

// asked are the requests upstream got since the last answer.
func (h *mediaProduct) asked() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*http.Request(nil), h.seen...)
}

func (h *mediaProduct) ServeHTTP(w http.ResponseWriter, r *http.Request, world http.Handler) {
	h.mu.Lock()
	h.seen = append(h.seen, r.Clone(context.Background()))
	f := h.instead
	h.mu.Unlock()
	if f != nil {
		f(w, r)
		return
	}
	world.ServeHTTP(w, r)
}

const played = "understudyplayertoken"

func newHall(t *testing.T, kept ...string) *mediaProduct {
	t.Helper()
	world, err := slowapi.New(slowapi.Options{Records: 200})
	check(t, err)
	h := &mediaProduct{T: t}
	h.slow = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r, world) }))
	t.Cleanup(func() { h.slow.Close(); check(t, world.Close()) })
	sp := spectest.BuiltIn(t, "twilio")
	src := &spec.Source{Name: "twilio", Spec: sp, User: account, Polls: []string{}, MediaKinds: kept}
	specs := map[string]*spec.Spec{"twilio": sp}
	db := storetest.Open(t, store.Options{Specs: specs, Now: h.now})
	o := contents.Options{Dir: filepath.Join(t.TempDir(), "media"), Now: h.now}
	if strings.Contains(t.Name(), "/bucket") {
		o.S3 = newBucket(t)
	}
	h.files, err = contents.OpenStore(o)
	check(t, err)
	client, err := upstream.New(upstream.Options{Source: src, Base: h.slow.URL, Secret: understudy.NewSecret(api), Rate: 1000, Now: h.now})
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	m, err := mirror.New(mirror.Options{Sources: []mirror.Source{{Source: src, Upstream: client}}, Store: db, Files: h.files, Now: h.now})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() { cancel(); check(t, <-ended) })
	gate, err := access.New(specs, access.Roles{
		"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
		"player":  {"twilio": {"*": "see", "body": "hide", "recordings.audio": "play"}},
	})
	check(t, err)
	grant := func(name, secret, role string) callers.Credential {
		return callers.Credential{Name: name, Source: "twilio", User: account, Secret: understudy.NewSecret(secret), Grant: understudy.Grant{
			Role: role, Allow: []understudy.Allow{{Method: "DELETE", Path: "/2010-04-01/Accounts/*/Recordings/*"}},
		}}
	}
	book, err := callers.New(callers.Options{Sources: []*spec.Source{src}, Credentials: []callers.Credential{
		grant("demo", demo, "all"), grant("masked", masked, "support"), grant("player", played, "player"),
	}})
	check(t, err)
	p, err := proxy.New(proxy.Options{Source: src, Mirror: m, Media: m, Gate: gate, Callers: book, Now: h.now})
	check(t, err)
	h.server = httptest.NewServer(p)
	t.Cleanup(h.server.Close)
	return h
}

// ask sends one request; headers are pairs. The body's error is part of the
// answer.
func (h *mediaProduct) ask(method, path, token string, headers ...string) (*http.Response, string, error) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), method, h.server.URL+path, nil)
	check(h.T, err)
	r.SetBasicAuth(account, token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// completed is the path, less its ending, of a recording that can be played.
func (h *mediaProduct) completed() string {
	h.Helper()
	_, body, err := h.ask("GET", root+"/Recordings.json?PageSize=50", demo)
	check(h.T, err)
	var list struct {
		Recordings []struct{ Sid, Status string }
	}
	check(h.T, json.Unmarshal([]byte(body), &list))
	for _, r := range list.Recordings {
		if r.Status == "completed" {
			return root + "/Recordings/" + r.Sid
		}
	}
	h.Fatal("no recording is complete")
	return ""
}

// shaped checks an error in upstream's shape.
func (h *mediaProduct) shaped(resp *http.Response, body string, status int) {
	h.Helper()
	var e struct {
		Code, Status int
		Message      string
	}
	err := json.Unmarshal([]byte(body), &e)
	checktest.MustNoError(h, err, "body %s", body)
	checktest.Equal(h, resp.StatusCode, status, "resp.StatusCode; body %s", body)
	checktest.Equal(h, e.Status, status, "e.Status; body %s", body)
	checktest.True(h, e.Code != 0, "e.Code is 0; body %s", body)
	checktest.True(h, e.Message != "", "e.Message is empty; body %s", body)
	checktest.Equal(h, resp.Header.Get("Cache-Control"), "private", `resp.Header.Get("Cache-Control")`)
	checktest.Equal(h, resp.Header.Get("Content-Disposition"), "", `resp.Header.Get("Content-Disposition")`)
	checktest.Equal(h, resp.Header.Get("Etag"), "", `resp.Header.Get("Etag")`)
}

func TestMedia(t *testing.T) { inEveryStore(t, testMedia) }

func testMedia(t *testing.T) {
	h := newHall(t, "recordings", "media")
	path := h.completed() + ".wav"
	h.answer(nil)
	resp, whole, err := h.ask("GET", path, demo)
	check(t, err)
	checktest.MustEqual(t, resp.StatusCode, 200, "resp.StatusCode")
	checktest.MustTrue(t, len(whole) >= 1000, "len(whole) is %v, want >= 1000", len(whole))
	checktest.MustTrue(t, strings.HasPrefix(whole, "RIFF"), "whole is %q", whole)
	checktest.MustEqual(t, resp.Header.Get("Cache-Status"), "understudy; fwd=uri-miss; stored",
		`resp.Header.Get("Cache-Status")`)
	tag := resp.Header.Get("Etag")
	for name, want := range map[string]string{
		"Cache-Control": "private", "Vary": "Authorization", "X-Content-Type-Options": "nosniff", "Content-Type": "audio/x-wav",
		"Content-Disposition": "", "Accept-Ranges": "bytes",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, test := range []struct {
		name    string
		headers []string
		status  int
		body    string
	}{
		{"again", nil, 200, whole},
		{"a part", []string{"Range", "bytes=4-7"}, 206, whole[4:8]},
		{"the same version's", []string{"Range", "bytes=4-7", "If-Range", tag}, 206, whole[4:8]},
		{"another version's", []string{"Range", "bytes=4-7", "If-Range", `"other"`}, 200, whole},
		{"two conditions", []string{"Range", "bytes=4-7", "If-Range", tag, "If-Range", tag}, 200, whole},
		{"several parts", []string{"Range", "bytes=0-1,4-5"}, 200, whole},
		{"of what is held", []string{"Cache-Control", "only-if-cached"}, 200, whole},
		{"nonsense", []string{"Range", "bytes=tail"}, 200, whole},
		{"held by the caller", []string{"If-None-Match", tag}, 304, ""},
	} {
		resp, body, err := h.ask("GET", path, demo, test.headers...)
		checktest.MustNoError(t, err, "%s", test.name)
		checktest.Equal(t, resp.StatusCode, test.status, "%s: resp.StatusCode", test.name)
		checktest.Equal(t, body, test.body, "%s: body", test.name)
		checktest.True(t, !(resp.Header.Get("Etag") != tag && test.status != 416),
			`%s: resp.Header.Get("Etag") != tag && test.status != 416; resp.Header.Get("Etag") is %q, tag is %q`,
			test.name, resp.Header.Get("Etag"), tag)
		if !strings.HasPrefix(resp.Header.Get("Cache-Status"), "understudy; hit; ttl=") {
			t.Errorf("%s: %v", test.name, resp.Header)
		}
	}
	resp, body, err := h.ask("GET", strings.TrimSuffix(path, ".wav"), demo, "Cache-Control", "only-if-cached")
	check(t, err)
	h.shaped(resp, body, 504)
	resp, body, err = h.ask("GET", path, demo, "Range", "bytes=99999999-")
	check(t, err)
	h.shaped(resp, body, 416)
	if resp.Header.Get("Understudy-Error") == "" {
		t.Error("416 is not signed")
	}
	if resp.Header.Get("Content-Range") != fmt.Sprintf("bytes */%d", len(whole)) {
		t.Errorf("%v", resp.Header)
	}
	resp, body, err = h.ask("HEAD", path, demo)
	checktest.MustNoError(t, err, "HEAD")
	checktest.Equal(t, resp.StatusCode, 200, "HEAD: resp.StatusCode")
	checktest.Equal(t, body, "", "HEAD: body")
	checktest.Equal(t, resp.ContentLength, int64(len(whole)), "HEAD: resp.ContentLength")
	if n := len(h.asked()); n != 1 {
		t.Errorf("upstream was asked %d times", n)
	}
	if r := h.asked()[0]; r.Header.Get("Range") != "" || r.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("%v", r.Header)
	}
}

func TestMediaGate(t *testing.T) {
	h := newHall(t, "recordings")
	path := h.completed()
	h.answer(nil)
	for _, target := range []string{path + ".wav", path + ".mp3", path, root + "/Recordings/REnone.wav", root + "/Messages/MM1/Media/ME1"} {
		for _, method := range []string{"GET", "HEAD"} {
			resp, body, err := h.ask(method, target, masked)
			check(t, err)
			if resp.StatusCode != 403 || strings.Contains(body, "RIFF") {
				t.Errorf("masked %s %s: %d %.60q", method, target, resp.StatusCode, body)
			}
		}
		resp, _, err := h.ask("GET", target, "wrong")
		if err != nil || resp.StatusCode != 401 {
			t.Errorf("%s: %v %v", target, resp, err)
		}
		resp, _, err = h.ask("POST", target, masked)
		if err != nil || resp.StatusCode != 403 {
			t.Errorf("%s: %v %v", target, resp, err)
		}
	}
	resp, body, err := h.ask("GET", root+"/Messages/MM1/Media/ME1", played)
	check(t, err)
	h.shaped(resp, body, 403)
	resp, body, err = h.ask("GET", path+".wav?RequestedChannels=2", played)
	check(t, err)
	h.shaped(resp, body, 403)
	if n := len(h.asked()); n != 0 {
		t.Errorf("refusals cost %d requests", n)
	}
	resp, body, err = h.ask("GET", path+".mp3", played)
	checktest.MustNoError(t, err, "body %.60q", body)
	checktest.Equal(t, resp.StatusCode, 200, "resp.StatusCode; body %.60q", body)
	checktest.Equal(t, resp.Header.Get("Content-Type"), "audio/mpeg", `resp.Header.Get("Content-Type"); body %.60q`,
		body)
}

func TestMediaInAnOutage(t *testing.T) { inEveryStore(t, testMediaInAnOutage) }

func testMediaInAnOutage(t *testing.T) {
	h := newHall(t, "recordings")
	path := h.completed() + ".wav"
	_, whole, err := h.ask("GET", path, demo)
	check(t, err)
	h.answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	resp, body, err := h.ask("GET", path, demo, "Range", "bytes=0-3")
	checktest.MustNoError(t, err, "body %q", body)
	checktest.Equal(t, resp.StatusCode, 206, "resp.StatusCode; body %q", body)
	checktest.Equal(t, body, whole[:4], "body")
	h.ahead.Add(int64(25 * time.Hour))
	resp, body, err = h.ask("GET", path, demo, "Cache-Control", "no-cache")
	status := resp.Header.Get("Cache-Status")
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, body, whole, "body")
	checktest.True(t, strings.HasPrefix(status, "understudy; hit; ttl=-36"), "status is %q", status)
	checktest.True(t, strings.HasSuffix(status, `; detail="stale: upstream 503"`), "status is %q", status)
	resp, body, err = h.ask("GET", root+"/Recordings/REnone.wav", demo)
	check(t, err)
	h.shaped(resp, body, 503)
	if resp.Header.Get("Retry-After") == "" {
		t.Errorf("%v", resp.Header)
	}
}

// What is not kept is passed on from wherever upstream sends us, and nothing of
// that place reaches the caller.
func TestMediaFromElsewhere(t *testing.T) {
	h := newHall(t)
	const sound = "RIFF from elsewhere"
	var auth, cookie atomic.Value
	cdn := func(w http.ResponseWriter, r *http.Request) {
		auth.Store(r.Header.Get("Authorization"))
		cookie.Store(r.Header.Get("Cookie"))
		for name, value := range map[string]string{
			"Content-Type": "audio/x-wav", "Etag": `"cdn"`, "Set-Cookie": "a=b", "X-Amz-Id-2": "secret", "Server": "AmazonS3", "Via": "1.1 cdn",
			"Location":            "/nowhere",
			"Content-Disposition": `inline; filename="secret.wav"`, "Cache-Control": "public, max-age=999", "Access-Control-Allow-Origin": "*",
		} {
			w.Header().Set(name, value)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(sound))
	}
	h.answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/signed" { // the API's own port, as no other of this machine may be asked
			cdn(w, r)
			return
		}
		http.Redirect(w, r, "/signed?Signature=secret", http.StatusTemporaryRedirect)
	})
	path := root + "/Recordings/RE1.wav"
	resp, body, err := h.ask("GET", path, demo, "Range", "bytes=0-3", "If-Range", `"cdn"`, "Cookie", "viewer=secret")
	checktest.MustNoError(t, err, "body %q", body)
	checktest.Equal(t, resp.StatusCode, 206, "resp.StatusCode; body %q", body)
	checktest.Equal(t, body, "RIFF", "body")
	checktest.Equal(t, resp.Header.Get("Content-Range"), fmt.Sprintf("bytes 0-3/%d", len(sound)),
		`resp.Header.Get("Content-Range"); body %q`, body)
	for name, want := range map[string]string{
		"Etag": `"cdn"`, "Cache-Control": "private", "Set-Cookie": "", "X-Amz-Id-2": "", "Server": "", "Via": "", "Location": "",
		"Content-Disposition": "", "Access-Control-Allow-Origin": "", "Cache-Status": "understudy; fwd=uri-miss",
	} {
		if got := strings.Join(resp.Header.Values(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	checktest.Lacks(t, fmt.Sprint(resp.Header), "secret", "fmt.Sprint(resp.Header)")
	checktest.Equal(t, auth.Load(), "", "auth.Load()")
	checktest.Equal(t, cookie.Load(), "", "cookie.Load()")
	resp, body, err = h.ask("GET", path, demo, "If-None-Match", `"cdn"`)
	checktest.MustNoError(t, err, "body %q", body)
	checktest.Equal(t, resp.StatusCode, 304, "resp.StatusCode; body %q", body)
	checktest.Equal(t, body, "", "body")
	checktest.Equal(t, resp.Header.Get("Etag"), `"cdn"`, `resp.Header.Get("Etag"); body %q`, body)
	resp, body, err = h.ask("GET", path, demo, "Range", "bytes=99-")
	check(t, err)
	h.shaped(resp, body, 416)
	resp, body, err = h.ask("HEAD", path, demo)
	checktest.MustNoError(t, err, "body %q", body)
	checktest.Equal(t, resp.StatusCode, 200, "resp.StatusCode; body %q", body)
	checktest.Equal(t, body, "", "body")
	checktest.Equal(t, resp.ContentLength, int64(len(sound)), "resp.ContentLength; body %q", body)
}

func TestMediaErrors(t *testing.T) {
	h := newHall(t, "recordings")
	n := 0
	for _, test := range []struct{ status, want int }{{404, 404}, {410, 410}, {401, 503}, {403, 503}, {429, 503}, {500, 503}, {204, 503},
		{400, 503}} {
		h.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(test.status)
			if test.status != 204 {
				fmt.Fprint(w, `{"message":"secret text","code":1}`)
			}
		})
		n++
		resp, body, err := h.ask("GET", fmt.Sprintf("%s/Recordings/RE%d.wav", root, n), demo)
		check(t, err)
		h.shaped(resp, body, test.want)
		if strings.Contains(body, "secret") {
			t.Errorf("%d: %s", test.status, body)
		}
		h.ahead.Add(int64(2 * time.Minute)) // past any back-off
	}
	// A type that the spec does not name is for saving, not for showing.
	h.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-shockwave-flash")
		fmt.Fprint(w, "<script>")
	})
	resp, body, err := h.ask("GET", root+"/Recordings/REtype.wav", demo)
	checktest.MustNoError(t, err, "body %q", body)
	checktest.Equal(t, body, "<script>", "body")
	checktest.Equal(t, resp.Header.Get("Content-Disposition"), "attachment",
		`resp.Header.Get("Content-Disposition"); body %q`, body)
	checktest.Contains(t, resp.Header.Get("Content-Security-Policy"), "sandbox",
		`resp.Header.Get("Content-Security-Policy"); body %q`, body)
	// JSON from the API itself is no content: it may name what a role must not see.
	h.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"auth_token":"secret"}`)
	})
	resp, body, err = h.ask("GET", root+"/Recordings/REjson.wav", demo)
	check(t, err)
	h.shaped(resp, body, 503)
}

// A content that breaks off never looks whole.
func TestMediaCut(t *testing.T) {
	h := newHall(t) // nothing is kept: the caller sees what comes
	for name, length := range map[string]string{"of known size": "1000", "of unknown size": ""} {
		h.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "audio/x-wav")
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			fmt.Fprint(w, "RIFF half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		resp, body, err := h.ask("GET", root+"/Recordings/RE1.wav", demo)
		checktest.MustTrue(t, err != nil, "%s: err is nil; body %q", name, body)
		checktest.True(t, !(resp != nil && resp.StatusCode != 200),
			"%s: resp != nil && resp.StatusCode != 200; resp is %v; body %q; %v", name, resp, body, err)
		checktest.True(t, strings.HasPrefix("RIFF half", body), `%s: "RIFF half" is %q; %v`, name, "RIFF half", err)
	}
}

// When the caller leaves, upstream need not go on.
func TestMediaCallerLeaves(t *testing.T) {
	h := newHall(t)
	left := make(chan struct{})
	h.answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "audio/x-wav")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "RIFF")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", h.server.URL+root+"/Recordings/RE1.wav", nil)
	check(t, err)
	r.SetBasicAuth(account, demo)
	resp, err := http.DefaultTransport.RoundTrip(r)
	check(t, err)
	if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("upstream is still sending")
	}
}

func TestMediaOfADeletedRecording(t *testing.T) { inEveryStore(t, testMediaOfADeletedRecording) }

func testMediaOfADeletedRecording(t *testing.T) {
	h := newHall(t, "recordings")
	path := h.completed()
	{
		resp, _, err := h.ask("GET", path+".wav", demo)
		checktest.MustNoError(t, err, "")
		checktest.MustEqual(t, resp.StatusCode, 200, "resp.StatusCode")
		checktest.MustEqual(t, h.files.Stats().Files, 1, "h.files.Stats().Files")
	}
	if resp, _, err := h.ask("DELETE", path+".json", demo); err != nil || resp.StatusCode != 204 {
		t.Fatal(resp, err)
	}
	if h.files.Stats().Files != 0 {
		t.Errorf("%+v", h.files.Stats())
	}
	resp, body, err := h.ask("GET", path+".wav", demo)
	check(t, err)
	h.shaped(resp, body, 404)
}
