// Media addresses: one session, one caller, half an hour, and the gate again.

package viewer_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
	"understudy/spec"
)

// player opens made-up contents.
type player struct {
	mu     sync.Mutex
	asked  []request.MediaRequest
	medium func() (*request.MediaResponse, error)
}

const tune = "RIFF la la la"

func (p *player) Open(_ context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, a)
	if p.medium != nil {
		return p.medium()
	}
	return &request.MediaResponse{
		ReadCloser: io.NopCloser(strings.NewReader("")), File: strings.NewReader(tune), Status: 200,
		Size: int64(len(tune)), ContentType: "audio/x-wav", ETag: `"tune"`, Outcome: request.Warm,
	}, nil
}

// stereo is a viewer with contents and a clock.
type stereo struct {
	*viewertest.Fixture
	*player
	now time.Time
}

func withMedia(t *testing.T, set ...func(*page.Options)) *stereo {
	s := &stereo{player: &player{}, now: viewertest.Noon}
	s.Fixture = viewertest.Open(t, append([]func(*page.Options){func(o *page.Options) {
		o.Media, o.Now = s.player,
			func() time.Time { return s.now }
	}},
		set...)...)
	return s
}

// address makes an address as a page of this caller would, with the cookie the
// browser then has.
func (s *stereo) address(who viewertest.Browser, cookies ...*http.Cookie) (string, []*http.Cookie) {
	s.Helper()
	r := httptest.NewRequest("GET", "/twilio/recordings", nil)
	r.SetBasicAuth(viewertest.Account, who.Token)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	q, end := s.Viewer.Visitor.Begin(r.Context(), w, r)
	defer end()
	var err error
	q.Rights.Caller, err = s.Viewer.Visitor.Options.Callers.IdentifyPerson(r)
	viewertest.Must(s, err)
	t, err := s.Spec.Resolve("twilio", viewertest.Recording, "")
	viewertest.Must(s, err)
	first, second := page.MediaURL(q, t), page.MediaURL(q, t)
	if first != second {
		s.Errorf("one page has two addresses of one content: %s %s", first, second)
	}
	set := w.Result().Cookies()
	if len(set) > 1 {
		s.Errorf("cookies %v", set)
	}
	return first, append(cookies, set...)
}

// play asks for an address.
func (s *stereo) play(method, address string, who viewertest.Browser, cookies []*http.Cookie, headers ...string) (*http.Response, string) {
	s.Helper()
	r := httptest.NewRequest(method, address, nil)
	if who.Token != "" {
		r.SetBasicAuth(viewertest.Account, who.Token)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Viewer.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	viewertest.Must(s, err)
	return w.Result(), string(body)
}

func TestMediaAddress(t *testing.T) {
	s := withMedia(t)
	address, session := s.address(viewertest.All)
	checktest.MustTrue(t, strings.HasPrefix(address, "/-/media/"), "address is %q", address)
	checktest.MustLacks(t, address, "RE0", "address")
	checktest.MustEqual(t, len(session), 1, "len(session)")
	c := session[0]
	checktest.Equal(t, c.Name, "understudy_session", "c.Name")
	checktest.True(t, c.HttpOnly, "c.HttpOnly is false")
	checktest.Equal(t, c.SameSite, http.SameSiteStrictMode, "c.SameSite")
	checktest.Equal(t, c.Path, "/", "c.Path")
	checktest.True(t, !c.Secure, "c.Secure is true")
	checktest.Equal(t, c.MaxAge, 0, "c.MaxAge")
	checktest.Equal(t, len(c.Value), 22, "len(c.Value)")
	resp, body := s.play("GET", address, viewertest.All, session)
	h := resp.Header
	checktest.Equal(t, resp.StatusCode, 200, "resp.StatusCode; body %q", body)
	checktest.Equal(t, body, tune, "body")
	checktest.Equal(t, h.Get("Content-Type"), "audio/x-wav", `h.Get("Content-Type"); body %q`, body)
	checktest.Equal(t, h.Get("Cache-Control"), "private, max-age=1500", `h.Get("Cache-Control"); body %q`, body)
	checktest.Equal(t, h.Get("Etag"), `"tune"`, `h.Get("Etag"); body %q`, body)
	checktest.Equal(t, h.Get("X-Content-Type-Options"), "nosniff", `h.Get("X-Content-Type-Options")`)
	checktest.Equal(t, h.Get("Cross-Origin-Resource-Policy"), "same-origin", `h.Get("Cross-Origin-Resource-Policy")`)
	checktest.Equal(t, h.Get("Set-Cookie"), "", `h.Get("Set-Cookie")`)
	checktest.Equal(t, h.Get("Age"), "", `h.Get("Age")`)
	a := s.asked[0]
	checktest.Equal(t, a.Target.Key.URI, viewertest.Recording, "a.Target.Key.URI")
	checktest.True(t, !a.Head, "a.Head is true")
	checktest.Equal(t, a.Range, "", "a.Range")
	resp, body = s.play("GET", address, viewertest.All, session, "Range", "bytes=0-3")
	checktest.Equal(t, resp.StatusCode, 206, "resp.StatusCode; body %q", body)
	checktest.Equal(t, body, "RIFF", "body")
	checktest.Equal(t, s.asked[1].Range, "bytes=0-3", "s.asked[1].Range; body %q", body)
	resp, _ = s.play("GET", address, viewertest.All, session, "Range", "bytes=99-")
	checktest.Equal(t, resp.StatusCode, 416, "resp.StatusCode")
	checktest.Equal(t, resp.Header.Get("Content-Range"), fmt.Sprintf("bytes */%d", len(tune)),
		`resp.Header.Get("Content-Range")`)
	checktest.Equal(t, resp.Header.Get("Etag"), "", `resp.Header.Get("Etag")`)
	if resp, _ = s.play("GET", address, viewertest.All, session, "If-None-Match", `"tune"`); resp.StatusCode != 304 {
		t.Errorf("%d", resp.StatusCode)
	}
	resp, body = s.play("HEAD", address, viewertest.All, session)
	checktest.Equal(t, resp.StatusCode, 200, "resp.StatusCode; body %q", body)
	checktest.Equal(t, body, "", "body")
	checktest.Equal(t, resp.ContentLength, int64(len(tune)), "resp.ContentLength; body %q", body)
	if resp, _ = s.play("POST", address, viewertest.All, session); resp.StatusCode == 200 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

// The same content has the same address for as long as a browser may keep it.
func TestMediaAddressLasts(t *testing.T) {
	s := withMedia(t)
	address, session := s.address(viewertest.All)
	for _, test := range []struct {
		after time.Duration
		same  bool
		good  bool
	}{
		{0, true, true}, {9 * time.Minute, true, true}, {10*time.Minute - time.Second, true, true},
		{10 * time.Minute, false, true}, {25*time.Minute - time.Second, false, true},
		{25 * time.Minute, false, false}, {24 * time.Hour, false, false}, {-6 * time.Minute, false, false},
	} {
		s.now = viewertest.Noon.Add(test.after) // noon is 5 minutes into a bucket
		again, cookies := s.address(viewertest.All, session...)
		if (again == address) != test.same || len(cookies) != 1 {
			t.Errorf("after %v: the same address %v, cookies %v", test.after, again == address, cookies)
		}
		resp, _ := s.play("GET", address, viewertest.All, session)
		if good := resp.StatusCode == 200; good != test.good || !good && resp.StatusCode != 404 {
			t.Errorf("after %v: %d", test.after, resp.StatusCode)
		}
	}
}

func TestMediaAddressIsNobodyElses(t *testing.T) {
	everybody := func(o *page.Options) {
		gate, err := access.New(map[string]*spec.Spec{"twilio": o.Sources[0].Spec}, access.Roles{
			"support": {"twilio": {"*": "see"}}, "clerk": {"twilio": {"*": "see"}}, "counter": {"twilio": {"*": "see"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Gate = gate
	}
	s := withMedia(t, everybody)
	address, session := s.address(viewertest.All)
	other, theirs := s.address(viewertest.Support)
	if address == other || session[0].Value == theirs[0].Value {
		t.Error("two callers have one address")
	}
	for name, test := range map[string]struct {
		address string
		who     viewertest.Browser
		cookies []*http.Cookie
		status  int
	}{
		"no session":            {address, viewertest.All, nil, 404},
		"another's session":     {address, viewertest.All, theirs, 404},
		"another caller":        {address, viewertest.Support, session, 404},
		"another's address":     {other, viewertest.All, session, 404},
		"a session made up":     {address, viewertest.All, []*http.Cookie{{Name: page.SessionCookie, Value: "x"}}, 404},
		"nobody":                {address, viewertest.Browser{}, session, 401},
		"an unknown credential": {address, viewertest.Browser{Token: "wrong"}, session, 401},
		"no role":               {address, viewertest.Nobody, session, 403},
		"empty":                 {"/-/media/", viewertest.All, session, 404},
		"short":                 {"/-/media/AAAA", viewertest.All, session, 404},
		"no base64":             {"/-/media/" + strings.Repeat("!", 60), viewertest.All, session, 404},
		"long":                  {"/-/media/" + strings.Repeat("A", 20000), viewertest.All, session, 404},
	} {
		if resp, body := s.play("GET", test.address, test.who, test.cookies); resp.StatusCode != test.status || strings.Contains(body, "la la") {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	// One other bit anywhere, and it is unknown.
	token := []byte(strings.TrimPrefix(address, "/-/media/"))
	data, err := base64.RawURLEncoding.DecodeString(string(token))
	viewertest.Must(t, err)
	for i := range len(data) * 8 {
		data[i/8] ^= 1 << (i % 8)
		if resp, _ := s.play("GET", "/-/media/"+base64.RawURLEncoding.EncodeToString(data), viewertest.All, session); resp.StatusCode != 404 {
			t.Fatalf("bit %d: %d", i, resp.StatusCode)
		}
		data[i/8] ^= 1 << (i % 8)
	}
	// A new process has new keys, unless it is told.
	again := withMedia(t, everybody, func(o *page.Options) { o.Seals = s.Viewer.Visitor.Options.Seals })
	if resp, _ := again.play("GET", address, viewertest.All, session); resp.StatusCode != 200 {
		t.Errorf("the same seals: %d", resp.StatusCode)
	}
	again = withMedia(t, everybody)
	if resp, _ := again.play("GET", address, viewertest.All, session); resp.StatusCode != 404 {
		t.Errorf("other seals: %d", resp.StatusCode)
	}
}

// The gate is asked when an address is made and again when it is used.
func TestMediaGate(t *testing.T) {
	s := withMedia(t)
	for _, token := range []string{"supporttoken", "countertoken"} { // the one hides bodies, the other sees no recordings
		if address, cookies := s.address(viewertest.Browser{Token: token}); address != "" || len(cookies) != 0 {
			t.Errorf("%s has an address: %s, %v", token, address, cookies)
		}
	}
	address, session := s.address(viewertest.Clerk)
	if resp, body := s.play("GET", address, viewertest.Clerk, session); resp.StatusCode != 200 || body != tune {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	stricter := withMedia(t, func(o *page.Options) {
		o.Seals = s.Viewer.Visitor.Options.Seals
		gate, err := access.New(map[string]*spec.Spec{"twilio": o.Sources[0].Spec}, access.Roles{
			"clerk": {"twilio": {"*": "see", "recordings.audio": "hide"}}, "support": {}, "counter": {},
		})
		viewertest.Must(t, err)
		o.Gate = gate
	})
	{
		resp, body := stricter.play("GET", address, viewertest.Clerk, session)
		checktest.Equal(t, resp.StatusCode, 403, "resp.StatusCode")
		checktest.Lacks(t, body, "la la", "body")
		checktest.Equal(t, len(stricter.asked), 0, "len(stricter.asked)")
	}
	none := viewertest.Open(t)
	if resp, _ := (&stereo{Fixture: none}).play("GET", address, viewertest.All, session); resp.StatusCode != 404 {
		t.Errorf("without contents: %d", resp.StatusCode)
	}
}

func TestMediaSession(t *testing.T) {
	s := withMedia(t, func(o *page.Options) { o.PublicURL = "https://calls.example.com" })
	if _, session := s.address(viewertest.All); !session[0].Secure {
		t.Errorf("%+v", session[0])
	}
}

func TestMediaFailures(t *testing.T) {
	s := withMedia(t)
	address, session := s.address(viewertest.All)
	for name, test := range map[string]struct {
		medium *request.MediaResponse
		err    error
		status int
	}{
		"gone":   {&request.MediaResponse{ReadCloser: http.NoBody, Status: 404, Outcome: request.Cold}, nil, 404},
		"range":  {&request.MediaResponse{ReadCloser: http.NoBody, Status: 416, ContentRange: "bytes */9", Outcome: request.Cold}, nil, 416},
		"outage": {nil, &understudy.UpstreamError{Why: understudy.FailServer, Status: 503}, 503},
		"closed": {nil, understudy.ErrClosed, 503},
	} {
		s.medium = func() (*request.MediaResponse, error) { return test.medium, test.err }
		resp, body := s.play("GET", address, viewertest.All, session)
		checktest.Equal(t, resp.StatusCode, test.status, "%s: resp.StatusCode", name)
		checktest.True(t, body != "", "%s: body is empty", name)
		checktest.Lacks(t, resp.Header.Get("Cache-Control"), "max-age", `%s: resp.Header.Get("Cache-Control")`, name)
	}
	// What is older than it should be is not kept by browsers.
	s.medium = func() (*request.MediaResponse, error) {
		return &request.MediaResponse{ReadCloser: http.NoBody, File: strings.NewReader(tune), Status: 200, ContentType: "text/html",
			Detail: "stale: upstream 503", Outcome: request.Stale}, nil
	}
	resp, _ := s.play("GET", address, viewertest.All, session)
	h := resp.Header
	checktest.Equal(t, h.Get("Cache-Control"), "private, no-cache", `h.Get("Cache-Control")`)
	checktest.Equal(t, h.Get("Content-Disposition"), "attachment", `h.Get("Content-Disposition")`)
	checktest.Contains(t, h.Get("Content-Security-Policy"), "sandbox", `h.Get("Content-Security-Policy")`)
	// What breaks off cuts the connection.
	s.medium = func() (*request.MediaResponse, error) {
		return &request.MediaResponse{ReadCloser: io.NopCloser(strings.NewReader("half")), Status: 200, Size: 100, ContentType: "audio/x-wav",
			Outcome: request.Cold}, nil
	}
	defer func() {
		if why := recover(); why != http.ErrAbortHandler {
			t.Errorf("recovered %v", why)
		}
	}()
	s.play("GET", address, viewertest.All, session)
	t.Error("half a content was sent as if it were whole")
}
