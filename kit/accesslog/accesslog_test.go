// Access log: what a line says, what it leaves out, and that it is bounded.

package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
)

var start = time.Date(2026, 6, 1, 12, 0, 0, 123e6, time.UTC)

func TestLine(t *testing.T) {
	line := Line{At: start, ID: "x1", Method: "GET", Target: "/a?To=%2B14155551234&b", Status: 200, Bytes: 102400, Caller: "my reports",
		Outcome: "stale", Took: 1234567 * time.Nanosecond, Upstream: 812 * time.Millisecond, Peer: "10.0.0.1",
		Client: clientOf("api.example.com", "curl/8.1 (\x1b)"), Person: "anna"}
	want := `time=2026-06-01T12:00:00.123Z id=x1 method=GET path="/a?To=…&b" status=200 bytes=102400 caller="my reports" how=stale ` +
		`dur=1.234ms upstream=812.000ms peer=10.0.0.1 host=api.example.com agent="curl/8.1 (\x1b)" person=anna` + "\n"
	if got := string(line.encode(false, nil).AppendTo(nil)); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	bare := Line{At: start, Method: "GET\nx=\"", Target: "/"}
	want = `time=2026-06-01T12:00:00.123Z method="GET\nx=\"" path="/" status=0 bytes=0 dur=0.000ms` + "\n"
	if got := string(bare.encode(false, nil).AppendTo(nil)); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "3f2504e0-4f89-11d3-9a0c-0305e82c3301": true, "A/b+c=d@e:f.g_h~i": true,
		"": false, "a b": false, "a\nb": false, "a\"b": false, "é": false, "a,b": false, "a;b": false,
		strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
	} {
		if IsValidID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
	ids := NewIDGenerator()
	seen := map[string]bool{}
	for range 200 {
		id := ids.Next()
		checktest.MustEqual(t, len(id), 1, "made: len(id)")
		checktest.MustEqual(t, cap(id), 1, "made: cap(id)")
		checktest.MustTrue(t, !seen[id[0]], "made: seen[id[0]] is true")
		checktest.MustTrue(t, IsValidID(id[0]), "made: IsValidID(id[0]) is false")
		seen[id[0]] = true
	}
}

func TestRequestIDMayHoldNumber(t *testing.T) {
	for id, want := range map[string]bool{
		"14155550100": true, "call-14155550100": true, "+1-415-555-0100": true, "1-415-555-0100": true, "1.415.555.0100": true,
		"415.555.0100": true, "a14155550100b": true, "49-151-23456789": true, "4915123456789012": true, "+1~415~555~0100": true,
		"+1=415=555=0100": true, "4a1b5c5d5e5f0g1h0i0": true, "+4412345": true, "x+44-123/45": true,
		"0049/1234": false, "0049/12345": true, "0049-123-4567": true,
		"call-001234567": true, "tel:+1555010": true, "14155550-1000-4000-8000-000000000000": true,
		"00000000000000000014155550100000": true,
		"1415555010000000":                 true, "A244555-5767889900": true,
		"": false, "x1": false, "K7Q2M4XWTA-1f": false, "K722M43333-1234567": false, "f47ac10b-58cc-4372-a567-0e02b2c3d479": false,
		"3F2504E0-4F89-11D3-9A0C-0305E82C3301": false, "4bf92f3577b34da6a3ce929d0e0e4736": false, "00f067aa0ba902b7": false,
		"01ARZ3NDEKTSV4RRFFQ69G5FAV": false, "01901234567890123456789AB5": false, "A+b+123": false, "+1a234567": false,
		"build-20261127": false,
	} {
		if got := CanContainPhoneNumber(id); got != want {
			t.Errorf("%q may hold a number: %v, want %v", id, got, want)
		}
		line := Line{ID: id}
		for how, out := range map[string]string{"logfmt": string(line.encode(false, nil).AppendTo(nil)),
			"JSON": string(line.encode(true, nil).AppendTo(nil))} {
			if strings.Contains(out, redacted) != want {
				t.Errorf("%s of %q leaves the id out, want %v: %s", how, id, want, out)
			}
		}
	}
	for method, want := range map[string]bool{"GET": false, "M-SEARCH": false, "VERSION-CONTROL": false, "5550100": true,
		"X-555-01-00":   true,
		"1a2b3c4d5e6f7": true, "14155550100": true} {
		line := Line{Method: method}
		for how, out := range map[string]string{"logfmt": string(line.encode(false, nil).AppendTo(nil)),
			"JSON": string(line.encode(true, nil).AppendTo(nil))} {
			if strings.Contains(out, redacted) != want {
				t.Errorf("%s of %q leaves the method out, want %v: %s", how, method, want, out)
			}
		}
	}
}

// slow is a writer that can be held up.
type slow struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	block chan struct{}
}

func (s *slow) Write(p []byte) (int, error) {
	if s.block != nil {
		<-s.block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *slow) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestLinesAreWrittenSoonAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{}
		l := New(w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		l.Add(&Line{At: start, Target: "/first"})
		time.Sleep(FlushInterval + time.Millisecond)
		synctest.Wait()
		if !strings.Contains(w.text(), "/first") {
			t.Error("not written after the interval")
		}
		l.Add(&Line{At: start, Target: "/last"})
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(w.text(), "/last") || strings.Count(w.text(), "\n") != 2 {
			t.Errorf("wrote %q", w.text())
		}
	})
}

func TestAStuckWriterHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{block: make(chan struct{})}
		l := New(w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		const lines = 50_000
		for range lines {
			l.Add(&Line{At: start, Target: "/x"})
		}
		synctest.Wait()
		close(w.block)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := len(w.text()); n > 2*MaxPending+1024 {
			t.Errorf("kept %d bytes", n)
		}
		if !strings.Contains(w.text(), "\ndropped=") {
			t.Error("dropped lines are not counted")
		}
	})
}

func TestAddBeforeRunAndOnNil(t *testing.T) {
	var none *Log
	none.Add(&Line{})
	var out bytes.Buffer
	l := New(&out)
	l.Add(&Line{At: start, Target: "/x"})
	if err := l.Flush(); err != nil || out.Len() == 0 {
		t.Errorf("%v, %q", err, out.String())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriterErrorIsReported(t *testing.T) {
	l := New(broken{})
	l.Add(&Line{At: start, Target: "/x"})
	if err := l.Flush(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

type unread struct{}

func (unread) Write(p []byte) (int, error) {
	return bytes.IndexByte(p, '\n') + 1, os.ErrDeadlineExceeded
}

// Finding 10: a log without a reader costs lines, which are counted, and nothing else.
func TestLinesNobodyReadsAreCounted(t *testing.T) {
	l := New(unread{})
	for range 3 {
		l.Add(&Line{At: start, Target: "/x"})
	}
	if err := l.Flush(); err != nil || l.dropped != 2 {
		t.Errorf("%v, %d lines are counted as dropped, want 2", err, l.dropped)
	}
}

// M8: every client, also an unknown one, is named by the address it came from.
func TestLinesNameTheirClient(t *testing.T) {
	var out bytes.Buffer
	l := New(&out)
	for _, status := range []int{401, 429, 200} {
		h := l.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
			func() time.Time { return start })
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Host = "[2001:db8::7]:4711", "calls.example.com:4114"
		r.Header.Set("User-Agent", "reports/2.1 +14155550100")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text,
		` peer=2001:db8::7 host=calls.example.com:4114 agent=reports/…`) != 3 || strings.Count(text, "\n") != 3 {
		t.Errorf("logged %s", text)
	}
}

func TestHandler(t *testing.T) {
	var out bytes.Buffer
	l := New(&out)
	h := l.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := LineOf(r.Context())
		line.Caller, line.Outcome = "loopback", "warm"
		if _, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok {
			t.Error("no Unwrap")
		}
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "gone")
	}), func() time.Time { return start })
	server := httptest.NewServer(h)
	for given, kept := range map[string]bool{"abc": true, "a b": false} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/twilio/number/+14155551234?x=y", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", given)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("X-Request-Id"); (got == given) != kept || got == "" {
			t.Errorf("id %q became %q", given, got)
		}
	}
	server.Close() // waits for the handlers
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, `path="/twilio/number/…?x=…" status=404 bytes=4 caller=loopback how=warm`) != 2 {
		t.Errorf("logged %s", text)
	}
	LineOf(context.Background()).Outcome = "nobody reads this"
}

// A handler that takes over the connection writes the status itself.
func TestUpgradesHaveTheirStatus(t *testing.T) {
	var out bytes.Buffer
	l := New(&out)
	h := l.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	}), func() time.Time { return start })
	logged := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		logged <- struct{}{}
	}))
	defer server.Close()
	for _, method := range []string{http.MethodGet, http.MethodConnect} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, method+" /feed HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-logged
		_ = conn.Close()
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "status=101") || !strings.Contains(text, "status=200") {
		t.Errorf("logged %s", text)
	}
}

func BenchmarkAdd(b *testing.B) {
	line := Line{At: start, ID: "ABCDEFGHIJ-1f", Method: "GET",
		Target: "/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls.json?PageSize=50", Status: 200, Bytes: 102400,
		Caller:  "demo",
		Outcome: "warm", Took: 40 * time.Microsecond, Peer: "127.0.0.1", Client: clientOf("127.0.0.1:4115",
			"twilio-go/1.31.0 (linux amd64) go/go1.26.8")}
	repeated := line
	repeated.RedactedTarget, repeated.Trace = string(AppendTarget(nil, line.Target, nil)), "0af7651916cd43dd8448eb211c80319c"
	for name, line := range map[string]*Line{"first": &line, "repeated and traced": &repeated} {
		b.Run(name, func(b *testing.B) {
			l := New(io.Discard)
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				line.At = start.Add(time.Duration(n) * 10 * time.Microsecond)
				l.Add(line)
				if len(l.pending) > flushSize {
					_ = l.Flush()
				}
			}
		})
	}
}

func TestJSONLine(t *testing.T) {
	line := Line{At: start, ID: "x1", Method: "GET\n", Target: "/a?To=%2B14155551234&b\x01\"", Status: 200, Bytes: 102400,
		Caller: "búho \"1\"", Outcome: "stale", Took: 1234567 * time.Nanosecond, Upstream: 812 * time.Millisecond, Peer: "10.0.0.1",
		Client: clientOf("api.example.com", "curl/8.1 (\x1b)"), Person: "anna"}
	want := `{"time":"2026-06-01T12:00:00.123Z","id":"x1","method":"GET\n","path":"/a?To=…&b\u0001\"","status":200,"bytes":102400,` +
		`"caller":"búho \"1\"","how":"stale","dur_ms":1.234,"upstream_ms":812.000,` +
		`"peer":"10.0.0.1","host":"api.example.com","agent":"curl/8.1 (\u001b)","person":"anna"}` + "\n"
	got := string(line.encode(true, nil).AppendTo(nil))
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	if !json.Valid([]byte(got)) {
		t.Errorf("no JSON: %s", got)
	}
}

func TestLinesGoToThePathAgainAfterReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	f, err := OpenFile(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := New(f)
	write := func(id string) {
		t.Helper()
		l.Add(&Line{At: start, ID: id})
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if !f.IsMoved() {
		t.Error("the file was renamed and is not moved")
	}
	write("second")
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	if f.IsMoved() {
		t.Error("the file was opened again and is moved")
	}
	write("third")
	for name, want := range map[string]string{path + ".1": "first second", path: "third"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(regexp.MustCompile(`first|second|third`).FindAllString(string(text), -1), " "); got != want {
			t.Errorf("%s has %q, want %q", filepath.Base(name), got, want)
		}
	}
}

func TestAFileThatCannotBeReopenedStaysInUse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(filepath.Join(folder, "access.log"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); err == nil {
		t.Error("opened a file in a folder that is gone")
	}
	if _, err := f.Write([]byte("line\n")); err != nil {
		t.Errorf("the former file takes no line: %v", err)
	}
}
