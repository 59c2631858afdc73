// The wire: real sockets, real faults.

package upstream

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/body"
)

func TestMain(m *testing.M) {
	// A proxy named in the environment must change nothing.
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Setenv(name, "http://127.0.0.1:1")
	}
	goleak.VerifyTestMain(m)
}

// live is a client of a slowapi on a real socket.
func live(t testing.TB, change ...func(*Options)) (c *Client, faults func(rules string)) {
	t.Helper()
	api, err := slowapi.New(slowapi.Options{Records: 120})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(api)
	t.Cleanup(func() { srv.Close(); api.Close() })
	o := Options{
		Source: &spec.Source{Name: "twilio", Spec: builtInSpec(t, "twilio"), User: account},
		Secret: understudy.NewSecret(token), Base: srv.URL, Rate: 1000,
	}
	for _, ch := range change {
		ch(&o)
	}
	c, err = New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, func(rules string) {
		resp, err := srv.Client().Post(srv.URL+"/-/faults", "application/json", strings.NewReader(`{"rules":[`+rules+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
			t.Fatalf("faults: %d %s", resp.StatusCode, text)
		}
	}
}

// Every list of every kind, walked to its end: rows whole, in order, no next
// link lost; the instances beside them; writes and what they answer.
func TestAgainstSlowAPI(t *testing.T) {
	c, _ := live(t)
	walk := func(uri string, want int) (last *understudy.Page) {
		t.Helper()
		n := 0
		for key := target(t, c, uri).Key; !key.IsZero(); key = last.Next {
			page, err := get(t, c, key.URI)
			checktest.MustNoError(t, err, "%s; page %+v", key, page)
			checktest.MustEqual(t, page.NotStored, "", "%s: page.NotStored", key)
			checktest.MustEqual(t, page.Status, 200, "%s: page.Status", key)
			for _, r := range page.Rows {
				if !bytes.Contains(page.Body[r.Start:r.End], []byte(r.ID)) || page.Body[r.Start] != '{' {
					t.Fatalf("row %+v is %s", r, page.Body[r.Start:r.End])
				}
			}
			n += len(page.Rows)
			last = page
		}
		if n != want {
			t.Errorf("%s: %d records, want %d", uri, n, want)
		}
		return last
	}
	base := "/2010-04-01/Accounts/" + account
	walk(base+"/Calls.json?PageSize=7", 120)
	walk(base+"/Messages.json", 240)
	walk(base+"/IncomingPhoneNumbers.json?PageSize=3", 8)
	accounts := walk("/2010-04-01/Accounts.json", 2)
	if !bytes.Contains(accounts.Body, []byte(`"auth_token"`)) || bytes.Contains(accounts.Body, []byte(token)) {
		t.Errorf("accounts: %s", accounts.Body)
	}
	page, err := get(t, c, base+".json")
	checktest.MustNoError(t, err, "page %+v", page)
	checktest.MustEqual(t, len(page.Rows), 1, "len(page.Rows)")
	checktest.Equal(t, page.Rows[0].ID, account, "page.Rows[0].ID")
	checktest.True(t, !bytes.Contains(page.Body, []byte(token)), "bytes.Contains(page.Body, []byte(token)) is true")
	page, err = get(t, c, base+"/Calls/CA0.json")
	checktest.MustNoError(t, err, "page %+v", page)
	checktest.Equal(t, page.Status, 404, "page.Status")
	checktest.Equal(t, page.NotStored, "", "page.NotStored")
	checktest.Equal(t, page.Kind, "calls", "page.Kind")
	checktest.Equal(t, page.ID, "CA0", "page.ID")
	page, err = write(t, c, "POST", base+"/Messages.json", "To=%2B15005550006&From=%2B15005550001&Body=hello")
	checktest.MustNoError(t, err, "page %+v", page)
	checktest.MustEqual(t, page.Status, 201, "page.Status")
	checktest.MustEqual(t, len(page.Rows), 1, "len(page.Rows)")
	checktest.MustTrue(t, page.ID != "", "page.ID is empty")
	page, err = write(t, c, "DELETE", base+"/Messages/"+page.ID+".json", "")
	checktest.MustNoError(t, err, "page %+v", page)
	checktest.Equal(t, page.Status, 204, "page.Status")
	checktest.True(t, page.ID != "", "page.ID is empty")
	c.SetCredential("", understudy.NewSecret("wrongtoken"))
	if _, err := get(t, c, callsPath); failure(t, err).Why != understudy.FailCredential {
		t.Error(err)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		why        understudy.Failure
		text       string
	}{
		{"503", `{"match":"","status":503}`, understudy.FailServer, "503"},
		{"429", `{"match":"","status":429}`, understudy.FailLimited, "429"},
		{"late", `{"match":"","delay_ms":60000}`, understudy.FailUnreachable, "upstream did not start to answer within 1s"},
		{"stall in the body", `{"match":"","stall_after":5000}`, understudy.FailUnreachable, "stalled"},
		{"stall before the body", `{"match":"","stall_after":0}`, understudy.FailUnreachable, ""},
		{"truncated", `{"match":"","truncate":3000}`, understudy.FailUnusable, "cut"},
		{"truncated to nothing", `{"match":"","truncate":0}`, understudy.FailUnusable, "cut"},
		{"reset", `{"match":"","reset":true}`, understudy.FailUnreachable, ""},
		{"reset in the body", `{"match":"","reset":true,"truncate":3000}`, understudy.FailUnreachable, ""},
		{"gzip cut", `{"match":"","gzip_cut":500}`, understudy.FailUnusable, "cut"},
		{"gzip cut to nothing", `{"match":"","gzip_cut":0}`, understudy.FailUnusable, ""},
		{"length too long", `{"match":"","length":10}`, understudy.FailUnusable, "cut"},
		{"length too short", `{"match":"","length":-10}`, understudy.FailUnusable, ""},
		{"HTML", `{"match":"","body":"<html>busy</html>","content_type":"text/html"}`, understudy.FailUnusable, "text/html"},
		{"empty", `{"match":"","body":""}`, understudy.FailUnusable, "empty"},
		{"a redirect", `{"match":"","redirect":"https://evil.example/x"}`, understudy.FailUnusable, "evil.example"},
		{"a redirect to itself", `{"match":"","redirect":"loop"}`, understudy.FailUnusable, "in a circle"},
		{"invalid UTF-8 where JSON has none", `{"match":"","body":"{\"calls\":[]}\u00ff"}`, understudy.FailUnusable, "no complete JSON document"},
		{"not JSON though it says so", `{"match":"","body":"{'calls':[]}"}`, understudy.FailUnusable,
			"no complete JSON document (application/json"},
		{"half a document", `{"match":"","body":"{\"calls\":["}`, understudy.FailUnusable, "no complete JSON document"},
		{"two documents", `{"match":"","body":"{}{}"}`, understudy.FailUnusable, "no complete JSON document"},
		{"too large", `{"match":"","pad_mb":2}`, understudy.FailUnusable, "larger"},
		{"too large an error", `{"match":"","pad_mb":2,"status":500}`, understudy.FailServer, "500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, faults := live(t, func(o *Options) {
				o.MaxBody = 1 << 20
				if strings.Contains(c.rule, "delay_ms") { // short only where it is waited out
					o.FirstByte = time.Second
				}
				if strings.Contains(c.rule, "stall") {
					o.FirstByte, o.Stall = time.Second, 500*time.Millisecond
				}
			})
			faults(c.rule)
			_, err := get(t, client, callsPath)
			if e := failure(t, err); e.Why != c.why || !contains(err, c.text) {
				t.Errorf("%v (%v), want %v %q", err, e.Why, c.why, c.text)
			}
			faults("")
			if _, err := get(t, client, callsPath+"?To=1"); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			// With tries left, what is worth one succeeds.
			faults(strings.Replace(c.rule, "{", `{"times":1,`, 1))
			_, err = client.Fetch(t.Context(), request.Fetch{Target: target(t, client, callsPath+"?To=2"), RetryWindow: 5 * time.Second})
			if e := failureOf(err); (err == nil) != isRetryable(failureOr(e, c.why, c.text)) {
				t.Errorf("with tries: %v", err)
			}
		})
	}
}

func failureOf(err error) *understudy.UpstreamError {
	var e *understudy.UpstreamError
	errors.As(err, &e)
	return e
}

// failureOr is e, or what it would have been.
func failureOr(e *understudy.UpstreamError, why understudy.Failure, text string) *understudy.UpstreamError {
	if e != nil {
		return e
	}
	e = &understudy.UpstreamError{Why: why}
	if text == "cut" || why == understudy.FailUnusable {
		e.Err = body.ErrCut
	}
	return e
}

// A write's faults: unknown once it may have arrived.
func TestWriteFaults(t *testing.T) {
	for rule, unknown := range map[string]bool{
		`{"match":"","reset":true}`:                        true,
		`{"match":"","delay_ms":60000}`:                    true,
		`{"match":"","truncate":10}`:                       true,
		`{"match":"","stall_after":10}`:                    true,
		`{"match":"","status":500}`:                        false,
		`{"match":"","redirect":"https://evil.example/x"}`: true,
	} {
		c, faults := live(t, func(o *Options) {
			if strings.Contains(rule, "delay_ms") || strings.Contains(rule, "stall") {
				o.FirstByte, o.Stall = 200*time.Millisecond, 200*time.Millisecond
			}
		})
		faults(rule)
		page, err := write(t, c, "POST", "/2010-04-01/Accounts/"+account+"/Messages.json", "To=%2B15005550006&From=%2B15005550001&Body=x")
		if errors.Is(err, understudy.ErrUnknownOutcome) != unknown || (page == nil) != unknown {
			t.Errorf("%s: %v %+v", rule, err, page)
		}
		if c.Stats().Requests != 1 {
			t.Errorf("%s: %+v", rule, c.Stats())
		}
	}
	// No server listens: nothing was sent.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c, _ := live(t, func(o *Options) { o.Base = "http://" + addr })
	_, err = write(t, c, "POST", callsPath, "x=1")
	if e := failure(t, err); e.Why != understudy.FailUnreachable || errors.Is(err, understudy.ErrUnknownOutcome) {
		t.Error(err)
	}
}

// served is a client of a handler on a real socket.
func served(t *testing.T, h http.HandlerFunc, change ...func(*Options)) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(Options{Source: &spec.Source{Name: "twilio", Spec: builtInSpec(t, "twilio"), User: account}, Base: srv.URL, Rate: 1000})
	for _, ch := range change {
		o := c.o
		o.Transport = nil
		ch(&o)
		c.Close()
		c, err = New(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// The caller's departure reaches upstream's socket.
func TestCancellationReachesTheSocket(t *testing.T) {
	for _, inBody := range []bool{false, true} {
		arrived, left := make(chan struct{}), make(chan struct{})
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			if inBody {
				fmt.Fprint(w, `{"calls":[`)
				w.(http.Flusher).Flush()
			}
			close(arrived)
			<-r.Context().Done()
			close(left)
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		_, err := c.Fetch(ctx, request.Fetch{Target: target(t, c, callsPath)})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("in the body %v: %v", inBody, err)
		}
		select {
		case <-left:
		case <-time.After(5 * time.Second):
			t.Errorf("in the body %v: upstream still works for nobody", inBody)
		}
	}
}

// A large body within the limit comes whole; above it, on the wire, it is
// left alone.
func TestMaxBody(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(emptyCalls))
		_, _ = w.Write(bytes.Repeat([]byte(" "), 5<<20))
	}, func(o *Options) { o.MaxBody = int64(5<<20 + len(emptyCalls)) })
	if page, err := get(t, c, callsPath); err != nil || len(page.Body) != 5<<20+len(emptyCalls) {
		t.Error(err)
	}
	for _, status := range []int{200, 500} {
		var wrote atomic.Int64
		c = served(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for range 100 {
				n, err := w.Write(chunk)
				if wrote.Add(int64(n)); err != nil {
					return
				}
			}
		}, func(o *Options) { o.MaxBody = 1 << 20 })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := get(t, c, callsPath)
		runtime.ReadMemStats(&after)
		e := failure(t, err)
		checktest.Equal(t, e.Status, status, "e.Status; %v", err)
		checktest.MustTrue(t, e.Page == nil, "e.Page is %v; %v", e.Page, err)
		checktest.True(t, !(status == 200 && !errors.Is(err, body.ErrTooLarge)),
			"status == 200 && !errors.Is(err, body.ErrTooLarge); status is %v", status)
		size := (*understudy.SizeError)(nil)
		if errors.As(err, &size); status == 200 && (size == nil || size.Setting != "sources.twilio.max_body" || size.Limit != 1<<20) {
			t.Errorf("%v does not name the setting", err)
		}
		if wrote.Load() > 50<<20 {
			t.Errorf("upstream could send %d MB", wrote.Load()>>20)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%d MB for a body above the limit of 1", n>>20)
		}
	}
}

// HTTP/2 over TLS, one connection, deadlines in the body all the same.
func TestHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("asked with %s", r.Proto)
		}
		fmt.Fprint(w, emptyCalls[:5])
		w.(http.Flusher).Flush()
		if r.URL.Query().Has("To") {
			<-r.Context().Done()
		}
		fmt.Fprint(w, emptyCalls[5:])
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c, err := New(Options{Source: &spec.Source{Name: "twilio", Spec: builtInSpec(t, "twilio")}, Base: srv.URL, Stall: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A certificate without a known authority is no connection.
	if _, err := get(t, c, callsPath); failure(t, err).Why != understudy.FailUnreachable || !contains(err, "certificate") {
		t.Error(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	c.connections.ownTransport.Load().TLSClientConfig.RootCAs = pool
	if _, err := get(t, c, callsPath+"?Status=busy"); err != nil {
		t.Error(err)
	}
	if _, err := get(t, c, callsPath+"?To=1"); failure(t, err).Why != understudy.FailUnreachable || !contains(err, "stalled") {
		t.Error(err)
	}
}

// A stream that upstream resets is as a connection it resets.
func TestHTTP2Reset(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("To") {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, emptyCalls[:5])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c, err := New(Options{Source: &spec.Source{Name: "twilio", Spec: builtInSpec(t, "twilio")}, Base: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	c.connections.ownTransport.Load().TLSClientConfig.RootCAs = pool
	for _, uri := range []string{callsPath, callsPath + "?To=1"} {
		if _, err := get(t, c, uri); failure(t, err).Why != understudy.FailUnreachable {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// No connection: refused, or a TLS handshake without an answer.
func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, base := range []string{"http://127.0.0.1:1", "https://" + l.Addr().String()} {
		c, err := New(Options{Source: &spec.Source{Name: "twilio", Spec: builtInSpec(t, "twilio")}, Base: base, Connect: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		begin := time.Now()
		if _, err := get(t, c, callsPath); failure(t, err).Why != understudy.FailUnreachable || time.Since(begin) > 5*time.Second {
			t.Errorf("%s: %v after %v", base, err, time.Since(begin))
		}
	}
}

// Upstream's slowness is in Took, and connections are used again.
func TestConnectionsAreKept(t *testing.T) {
	var conns atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, emptyCalls) }))
	srv.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c, err := New(Options{Source: &spec.Source{Name: "twilio", Spec: builtInSpec(t, "twilio")}, Base: srv.URL, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 20 {
		page, err := get(t, c, callsPath)
		checktest.MustNoError(t, err, "page %v", page)
		checktest.MustTrue(t, page.Took > 0, "page.Took is %v, want > 0", page.Took)
		checktest.MustTrue(t, !page.At.IsZero(), "page.At.IsZero() is true")
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections for 20 requests in a row", conns.Load())
	}
	if h := c.Health(); len(h.Recent) != 20 {
		t.Errorf("%d answer times", len(h.Recent))
	}
}

// Whatever the canonical form holds, it is what goes over the wire.
func TestURIsGoOutAsTheyAre(t *testing.T) {
	var got string
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.RequestURI
		fmt.Fprint(w, "{}")
	})
	for _, uri := range []string{
		"/a%20b/$&+,=:@!'()*;x", "//x/y", "/a//b/", "/é%2B", "/x?a=%2F&b&c=&%3E=+", "/?%00=%FF", "/%E2%82",
		callsPath + "?StartTime%3E=2024-01-01T00%3A00%3A00Z&PageSize=1",
	} {
		path, query, _ := strings.Cut(uri, "?")
		target, err := c.o.Source.Spec.Resolve("twilio", path, query)
		if err != nil {
			t.Fatal(uri, err)
		}
		if _, err := c.Fetch(t.Context(), request.Fetch{Target: target}); err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		if got != target.Key.URI {
			t.Errorf("key %s went out as %s", target.Key.URI, got)
		}
	}
}
