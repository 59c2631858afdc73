// Contents: what is passed on, what is refused, and which hosts get the credential.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/upstream/body"
)

const audioPath = "/2010-04-01/Accounts/" + account + "/Recordings/RE00000000000000000000000000000001.wav"

// seen are the requests a server got.
type seen struct {
	mu  sync.Mutex
	all []*http.Request
}

func (s *seen) serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.all = append(s.all, r.Clone(context.Background()))
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func (s *seen) headers(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.all {
		all = append(all, r.Header.Get(name))
	}
	return all
}

func at(base string) func(*Options) {
	return func(o *Options) { o.Base, o.Transport = base, nil }
}

// openAudio asks for the recording.
func openAudio(t testing.TB, c *Client, change ...func(*request.MediaRequest)) (*request.MediaResponse, error) {
	t.Helper()
	a := request.MediaRequest{Target: target(t, c, audioPath)}
	for _, f := range change {
		f(&a)
	}
	return c.Open(context.Background(), a)
}

func text(t testing.TB, m *request.MediaResponse) string {
	t.Helper()
	defer m.Close()
	b, err := io.ReadAll(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wav(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "audio/x-wav")
	w.Header().Set("Etag", `"w1"`)
	w.Header().Set("Set-Cookie", "tracking=1")
	w.Header().Set("X-Amz-Request-Id", "secret")
	http.ServeContent(w, r, "", time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), strings.NewReader("RIFFnoise"))
}

func TestOpen(t *testing.T) {
	var s seen
	srv := s.serve(t, wav)
	c := scripted(t, nil, at(srv.URL))
	m, err := openAudio(t, c)
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, m.Status, 200, "m.Status")
	checktest.Equal(t, m.Size, 9, "m.Size")
	checktest.Equal(t, m.ContentType, "audio/x-wav", "m.ContentType")
	checktest.Equal(t, m.ETag, `"w1"`, "m.ETag")
	checktest.True(t, !m.Modified.IsZero(), "m.Modified.IsZero() is true")
	checktest.Equal(t, m.Outcome, request.Cold, "m.Outcome")
	if got := text(t, m); got != "RIFFnoise" {
		t.Errorf("%q", got)
	}
	m, err = openAudio(t, c, func(a *request.MediaRequest) { a.Head = true })
	checktest.MustNoError(t, err, "HEAD")
	checktest.Equal(t, m.Size, 9, "HEAD: m.Size")
	checktest.Equal(t, text(t, m), "", "HEAD: text(t, m)")
	m, err = openAudio(t, c, func(a *request.MediaRequest) { a.Range, a.IfRange = "bytes=2-3", `"w1"` })
	checktest.MustNoError(t, err, "range")
	checktest.Equal(t, m.Status, 206, "range: m.Status")
	checktest.Equal(t, m.ContentRange, "bytes 2-3/9", "range: m.ContentRange")
	checktest.Equal(t, m.Size, 2, "range: m.Size")
	checktest.Equal(t, text(t, m), "FF", "range: text(t, m)")
	m, err = openAudio(t, c, func(a *request.MediaRequest) { a.Range, a.IfRange = "bytes=2-3", `"w0"` })
	checktest.MustNoError(t, err, "range of another version")
	checktest.Equal(t, m.Status, 200, "range of another version: m.Status")
	checktest.Equal(t, text(t, m), "RIFFnoise", "range of another version: text(t, m)")
	m, err = openAudio(t, c, func(a *request.MediaRequest) { a.Range = "bytes=90-" })
	checktest.MustNoError(t, err, "range beyond")
	checktest.Equal(t, m.Status, 416, "range beyond: m.Status")
	checktest.Equal(t, m.ContentRange, "bytes */9", "range beyond: m.ContentRange")
	checktest.Equal(t, text(t, m), "", "range beyond: text(t, m)")
	m, err = openAudio(t, c, func(a *request.MediaRequest) { a.IfNoneMatch = `"w1"` })
	checktest.MustNoError(t, err, "unchanged")
	checktest.Equal(t, m.Status, 304, "unchanged: m.Status")
	checktest.Equal(t, m.ETag, `"w1"`, "unchanged: m.ETag")
	checktest.Equal(t, text(t, m), "", "unchanged: text(t, m)")
	for _, user := range s.headers("Authorization") {
		if user == "" {
			t.Error("asked without the credential")
		}
	}
	st := c.Stats()
	checktest.Equal(t, st.Requests, 6, "st.Requests")
	checktest.Equal(t, st.Errors, 0, "st.Errors")
	checktest.Equal(t, c.Health().State, "ok", "c.Health().State")
}

func TestOpenStatuses(t *testing.T) {
	for _, test := range []struct {
		status int
		header string
		why    understudy.Failure // FailNone: passes
	}{
		{404, "", understudy.FailNone}, {410, "", understudy.FailNone},
		{401, "", understudy.FailCredential}, {403, "", understudy.FailCredential},
		{429, "Retry-After: 7", understudy.FailLimited}, {500, "", understudy.FailServer}, {503, "Retry-After: 7", understudy.FailServer},
		{304, "", understudy.FailUnusable}, {416, "", understudy.FailUnusable}, {206, "Content-Range: bytes 0-1/9", understudy.FailUnusable},
		{204, "", understudy.FailUnusable}, {400, "", understudy.FailUnusable}, {200, "Content-Encoding: gzip", understudy.FailUnusable},
		{200, "Content-Type: application/json", understudy.FailUnusable},
		{200, "Content-Type: text/html; charset=utf-8", understudy.FailUnusable},
		{200, "Content-Type: application/vnd.x+json", understudy.FailUnusable}, {200, "Content-Type: image/svg+xml", understudy.FailNone},
		{307, "", understudy.FailUnusable}, {307, "Location: file:///etc/passwd", understudy.FailUnusable},
		{302, "Location: ://", understudy.FailUnusable},
	} {
		t.Run(fmt.Sprint(test.status, test.header), func(t *testing.T) {
			var s seen
			srv := s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "audio/x-wav")
				if name, value, ok := strings.Cut(test.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.WriteHeader(test.status)
			})
			m, err := openAudio(t, scripted(t, nil, at(srv.URL)))
			if test.why == understudy.FailNone {
				if err != nil || m.Status != test.status {
					t.Fatalf("%+v, %v", m, err)
				}
				m.Close()
				return
			}
			e := failure(t, err)
			if e.Why != test.why || strings.HasPrefix(test.header, "Retry") && e.RetryAfter != 7*time.Second {
				t.Errorf("%+v", e)
			}
		})
	}
}

// dribble gives a piece at a time, each when it is let.
type dribble struct {
	ctx    context.Context
	pieces chan string
}

func (d *dribble) Read(p []byte) (int, error) {
	select {
	case s, ok := <-d.pieces:
		if !ok {
			return 0, io.EOF
		}
		return copy(p, s), nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

func (d *dribble) Close() error { return nil }

func dribbling(d *dribble, size int64) func(int, *http.Request) (*http.Response, error) {
	return func(_ int, r *http.Request) (*http.Response, error) {
		d.ctx = r.Context()
		resp := reply(200, "", "Content-Type", "audio/x-wav")
		resp.Body, resp.ContentLength = d, size
		return resp, nil
	}
}

func TestStallOfAContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &dribble{pieces: make(chan string, 9)}
		c := scripted(t, &script{do: dribbling(d, 100)})
		m, err := openAudio(t, c)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		buf := make([]byte, 10)
		d.pieces <- "one"
		if n, err := m.Read(buf); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		time.Sleep(time.Hour) // a slow reader is not upstream's fault
		d.pieces <- "two"
		if n, err := m.Read(buf); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		begin := time.Now()
		_, err = m.Read(buf)
		took := time.Since(begin)
		checktest.MustTrue(t, err != nil, "err is nil")
		checktest.Contains(t, err.Error(), "stalled", "err.Error()")
		checktest.Equal(t, took, 10*time.Second, "took; %v", err)
		if c.Stats().Errors != 1 {
			t.Errorf("%+v", c.Stats())
		}
	})
}

func TestSlowHeadOfAContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Minute, well)}
		c := scripted(t, s)
		begin := time.Now()
		_, err := openAudio(t, c)
		if e := failure(t, err); e.Why != understudy.FailUnreachable || time.Since(begin) != 30*time.Second {
			t.Errorf("%v after %v", e, time.Since(begin))
		}
		// Its reader leaves: no failure of upstream.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(2 * time.Second)
		errors := c.Stats().Errors
		{
			_, err := c.Open(ctx, request.MediaRequest{Target: target(t, c, audioPath)})
			checktest.MustTrue(t, err != nil, "err is nil")
			checktest.MustTrue(t, ctx.Err() != nil, "ctx.Err() is nil; %v", err)
			checktest.Equal(t, c.Stats().Errors, errors, "c.Stats().Errors")
		}
	})
}

func TestLargeContents(t *testing.T) {
	limit := func(o *Options) { o.MaxMedia = 5 }
	d := &dribble{pieces: make(chan string, 9)}
	_, err := openAudio(t, scripted(t, &script{do: dribbling(d, 6)}, limit))
	if e := failure(t, err); !errors.Is(e, body.ErrTooLarge) {
		t.Error(e)
	}
	m, err := openAudio(t, scripted(t, &script{do: dribbling(d, -1)}, limit))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d.pieces <- "four"
	d.pieces <- "or more"
	if b, err := io.ReadAll(m); !errors.Is(err, body.ErrTooLarge) || len(b) > 5 {
		t.Errorf("%q, %v", b, err)
	}
}

// A stream holds no slot: while a listener reads, other requests go out. But the number
// of streams is limited.
func TestStreamsAndSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &dribble{pieces: make(chan string)}
		s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, ".wav") {
				return dribbling(d, 100)(n, r)
			}
			return well(n, r)
		}}
		c := scripted(t, s, func(o *Options) { o.Concurrency = 1 })
		m, err := openAudio(t, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := get(t, c, callsPath); err != nil {
			t.Errorf("a page while somebody listens: %v", err)
		}
		begin := time.Now()
		_, err = openAudio(t, c)
		if e := failure(t, err); e.Why != understudy.FailBusy || time.Since(begin) != mediaQueue {
			t.Errorf("%v after %v", e, time.Since(begin))
		}
		m.Close()
		m.Close()
		if m, err = openAudio(t, c); err != nil {
			t.Fatal(err)
		}
		m.Close()
		if n := len(c.media.slots); n != 0 {
			t.Errorf("%d places taken", n)
		}
	})
}

func TestOpenWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: refused}
		c := scripted(t, s)
		for i := range 6 {
			_, err := c.Open(t.Context(), request.MediaRequest{Target: target(t, c,
				strings.Replace(audioPath, "01.wav", fmt.Sprintf("%02d.wav", i), 1))})
			failure(t, err)
		}
		if c.Health().State != "down" || s.count() != 5 {
			t.Errorf("%+v after %d requests", c.Health(), s.count())
		}
		s.do = func(int, *http.Request) (*http.Response, error) { return reply(404, "no"), nil }
		time.Sleep(time.Second)
		{
			m, err := openAudio(t, c)
			checktest.MustNoError(t, err, "the probe")
			checktest.Equal(t, m.Status, 404, "the probe: m.Status")
			checktest.Equal(t, c.Health().State, "ok", "the probe: c.Health().State")
		}
	})
}

// A credential that is replaced while it is refused costs no request.
func TestCredentialReplacedWhileOpening(t *testing.T) {
	var c *Client
	s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
		if _, secret, _ := r.BasicAuth(); secret == token {
			c.SetCredential("", understudy.NewSecret("anothertoken"))
			return reply(401, "no"), nil
		}
		return reply(200, "RIFF", "Content-Type", "audio/x-wav"), nil
	}}
	c = scripted(t, s)
	m, err := openAudio(t, c)
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, text(t, m), "RIFF", "text(t, m)")
	checktest.Equal(t, s.count(), 2, "s.count()")
	checktest.Equal(t, c.Health().State, "ok", "c.Health().State")
}

func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &dribble{pieces: make(chan string)}
		c := scripted(t, &script{do: dribbling(d, 100)})
		m, err := openAudio(t, c)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		time.AfterFunc(time.Second, func() { c.Close() })
		if _, err := m.Read(make([]byte, 1)); err == nil {
			t.Error("read after Close")
		}
		if _, err := openAudio(t, c); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

func TestContentHeaders(t *testing.T) {
	for in, want := range map[string]string{`"a"`: `"a"`, `W/"a"`: `W/"a"`, `a`: "", `"`: "", `""`: `""`, `"a"b"`: "", "\"a\nb\"": "", `"` +
		strings.Repeat("a", 300) + `"`: ""} {
		if got := entityTag(in); got != want {
			t.Errorf("entityTag(%q) = %q", in, got)
		}
	}
	for in, want := range map[string]bool{"bytes 0-1/2": true, "bytes */2": true, "bytes 0-1/*": true, "bytes 0-1": false,
		"bytes x-1/2": false, "items 0-1/2": false, "bytes 0-/2": false, "bytes -/2": false, "": false} {
		if got := contentRange(in) != ""; got != want {
			t.Errorf("contentRange(%q): %v", in, got)
		}
	}
	for in, want := range map[string]bool{"audio/mpeg": true, "text/plain; charset=utf-8": true, "nonsense": true, "": false, "a b": false,
		"audio/mpeg\r\nX: y": false} {
		if got := mediaType(in) != ""; got != want {
			t.Errorf("mediaType(%q): %v", in, got)
		}
	}
}
