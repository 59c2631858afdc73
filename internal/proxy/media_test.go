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
	files        *contents.Files
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
	h.files, err = contents.Open(contents.Options{Dir: filepath.Join(t.TempDir(), "media"), Now: h.now})
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
	if err := json.Unmarshal([]byte(body), &e); err != nil || resp.StatusCode != status || e.Status != status || e.Code == 0 ||
		e.Message == "" {
		h.Errorf("%d %s, want %d in upstream's shape (%v)", resp.StatusCode, body, status, err)
	}
	if resp.Header.Get("Cache-Control") != "private" || resp.Header.Get("Content-Disposition") != "" || resp.Header.Get("Etag") != "" {
		h.Errorf("%v", resp.Header)
	}
}

func TestMedia(t *testing.T) {
	h := newHall(t, "recordings", "media")
	path := h.completed() + ".wav"
	h.answer(nil)
	resp, whole, err := h.ask("GET", path, demo)
	check(t, err)
	if resp.StatusCode != 200 || len(whole) < 1000 || !strings.HasPrefix(whole, "RIFF") ||
		resp.Header.Get("Cache-Status") != "understudy; fwd=uri-miss; stored" {
		t.Fatalf("%d %d bytes %v", resp.StatusCode, len(whole), resp.Header)
	}
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
		if err != nil || resp.StatusCode != test.status || body != test.body || resp.Header.Get("Etag") != tag && test.status != 416 {
			t.Errorf("%s: %d, %d bytes, %v", test.name, resp.StatusCode, len(body), err)
		}
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
	if err != nil || resp.StatusCode != 200 || body != "" || resp.ContentLength != int64(len(whole)) {
		t.Errorf("HEAD: %d %v %v", resp.StatusCode, resp.Header, err)
	}
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
	if resp, body, err = h.ask("GET", path+".mp3", played); err != nil || resp.StatusCode != 200 ||
		resp.Header.Get("Content-Type") != "audio/mpeg" {
		t.Errorf("%v %.60q %v", resp, body, err)
	}
}

func TestMediaInAnOutage(t *testing.T) {
	h := newHall(t, "recordings")
	path := h.completed() + ".wav"
	_, whole, err := h.ask("GET", path, demo)
	check(t, err)
	h.answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	resp, body, err := h.ask("GET", path, demo, "Range", "bytes=0-3")
	if err != nil || resp.StatusCode != 206 || body != whole[:4] {
		t.Errorf("%d %q %v", resp.StatusCode, body, err)
	}
	h.ahead.Add(int64(25 * time.Hour))
	resp, body, err = h.ask("GET", path, demo, "Cache-Control", "no-cache")
	if status := resp.Header.Get("Cache-Status"); err != nil || body != whole || !strings.HasPrefix(status, "understudy; hit; ttl=-36") ||
		!strings.HasSuffix(status, `; detail="stale: upstream 503"`) {
		t.Errorf("%d, %d bytes, %q, %v", resp.StatusCode, len(body), status, err)
	}
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
	if err != nil || resp.StatusCode != 206 || body != "RIFF" || resp.Header.Get("Content-Range") != fmt.Sprintf("bytes 0-3/%d", len(sound)) {
		t.Errorf("%v %q %v", resp, body, err)
	}
	for name, want := range map[string]string{
		"Etag": `"cdn"`, "Cache-Control": "private", "Set-Cookie": "", "X-Amz-Id-2": "", "Server": "", "Via": "", "Location": "",
		"Content-Disposition": "", "Access-Control-Allow-Origin": "", "Cache-Status": "understudy; fwd=uri-miss",
	} {
		if got := strings.Join(resp.Header.Values(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if strings.Contains(fmt.Sprint(resp.Header), "secret") || auth.Load() != "" || cookie.Load() != "" {
		t.Errorf("%v; the other was shown %q and %q", resp.Header, auth.Load(), cookie.Load())
	}
	if resp, body, err = h.ask("GET", path, demo, "If-None-Match", `"cdn"`); err != nil || resp.StatusCode != 304 || body != "" ||
		resp.Header.Get("Etag") != `"cdn"` {
		t.Errorf("%v %q %v", resp, body, err)
	}
	resp, body, err = h.ask("GET", path, demo, "Range", "bytes=99-")
	check(t, err)
	h.shaped(resp, body, 416)
	if resp, body, err = h.ask("HEAD", path, demo); err != nil || resp.StatusCode != 200 || body != "" ||
		resp.ContentLength != int64(len(sound)) {
		t.Errorf("%v %q %v", resp, body, err)
	}
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
	if err != nil || body != "<script>" || resp.Header.Get("Content-Disposition") != "attachment" ||
		!strings.Contains(resp.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%v %q %v", resp, body, err)
	}
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
		if err == nil || resp != nil && resp.StatusCode != 200 || !strings.HasPrefix("RIFF half", body) {
			t.Errorf("%s: %v %q %v", name, resp, body, err)
		}
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

func TestMediaOfADeletedRecording(t *testing.T) {
	h := newHall(t, "recordings")
	path := h.completed()
	if resp, _, err := h.ask("GET", path+".wav", demo); err != nil || resp.StatusCode != 200 || h.files.Stats().Files != 1 {
		t.Fatal(resp, err)
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

// A media path and nothing else is asked as one: whatever path comes, the role
// that may have no content gets none, and no request goes where the gate was
// not asked.
func FuzzMediaPath(f *testing.F) {
	for _, s := range []string{
		"Recordings/RE1.wav", "Recordings/RE1.mp3", "Recordings/RE1", "Recordings/RE1.json", "Messages/MM1/Media/ME1", "Recordings/RE1.wav.json",
		"Recordings/RE1%2ewav", "Recordings/RE1.wav/", "Recordings//RE1.wav", "Recordings/../Recordings/RE1.wav", "Recordings/RE1.wav?x=1",
		"Recordings/RE1.WAV", "Recordings/.wav", "Recordings/RE1.wav%00",
	} {
		f.Add(s)
	}
	sp := spectest.BuiltIn(f, "twilio")
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, access.Roles{"support": {"twilio": {"*": "see", "body": "hide"}}})
	if err != nil {
		f.Fatal(err)
	}
	caller := understudy.Caller{Name: "masked", Source: "twilio", Grant: &understudy.Grant{Role: "support"}}
	f.Fuzz(func(t *testing.T, path string) {
		path, query, _ := strings.Cut(root+"/"+path, "?")
		at, err := sp.Resolve("twilio", path, query)
		if err != nil {
			return
		}
		if at.Media != nil {
			if at.Kind == nil || at.List != nil || at.Instance != nil || at.ID == "" || strings.ContainsAny(at.ID, "./") {
				t.Fatalf("%q: %+v", path, at)
			}
			if gate.CheckRead(caller, at) == nil || gate.CheckMedia(caller, at) == nil || gate.CheckWrite(caller, at, "GET") == nil {
				t.Fatalf("%q is given out", path)
			}
			again, err := sp.Resolve("twilio", at.Key.Path(), at.Key.Query())
			if err != nil || again.Media != at.Media || again.ID != at.ID || again.Key != at.Key {
				t.Fatalf("%q means something else once it is a key: %+v %v", path, again, err)
			}
		}
	})
}
