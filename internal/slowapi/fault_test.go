// Tests of faults: each kind over a real connection, together, and counted.
package slowapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

// wire is one request on a connection of its own, without help from the client.
func wire(r slowapitest.API, ctx context.Context, method, target string, packed bool) (*http.Response, error) {
	r.T.Helper()
	req, err := http.NewRequestWithContext(ctx, method, r.Web.URL+target, nil)
	if err != nil {
		r.T.Fatal(err)
	}
	req.SetBasicAuth(mainSID, "slowapitoken")
	if packed {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	return transport.RoundTrip(req)
}

func TestFaultsInAnswers(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	target := root + "/Calls.json?PageSize=2"
	good := r.Get(target)
	for _, c := range []struct {
		rule   string
		status int
		body   string // "" is the real one
		header map[string]string
	}{
		{`{"status":500}`, 500, `{"code":20500,"message":"An internal server error has occurred",` +
			`"more_info":"https://www.twilio.com/docs/errors/20500","status":500}`, nil},
		{`{"status":429,"retry_after":7}`, 429, `{"code":20429,"message":"Too Many Requests",` +
			`"more_info":"https://www.twilio.com/docs/errors/20429","status":429}`, map[string]string{"Retry-After": "7"}},
		{`{"status":401}`, 401, `{"code":20003,"message":"Authenticate","more_info":"https://www.twilio.com/docs/errors/20003","status":401}`,
			nil},
		{`{"status":503,"body":"<h1>down</h1>","content_type":"text/html; charset=utf-8"}`, 503, "<h1>down</h1>",
			map[string]string{"Content-Type": "text/html; charset=utf-8"}},
		{`{"body":"{\"calls\":["}`, 200, `{"calls":[`, map[string]string{"Content-Type": "application/json"}},
		{`{"content_type":"text/html"}`, 200, "", map[string]string{"Content-Type": "text/html"}},
		{`{"retry_after":3}`, 200, "", map[string]string{"Retry-After": "3"}},
		{`{"status":202}`, 202, "", nil},
		{`{"status":204}`, 204, "-", nil},
		{`{"redirect":"https://example.com/x"}`, 307, "-", map[string]string{"Location": "https://example.com/x"}},
		{`{"redirect":"loop","status":302}`, 302, "-", map[string]string{"Location": target}},
		{`{"match":"/Messages","status":500}`, 200, "", nil},
		{`{"match":"PageSize=2","status":502}`, 502, `{"code":20502,"message":"Bad Gateway",` +
			`"more_info":"https://www.twilio.com/docs/errors/20502","status":502}`, nil},
	} {
		r.Control("/-/faults", `{"rules":[`+c.rule+`]}`, 200)
		resp, err := wire(r, t.Context(), "GET", target, false)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		want := c.body
		switch want {
		case "":
			want = string(good)
		case "-":
			want = ""
		}
		if resp.StatusCode != c.status || string(body) != want {
			t.Errorf("%s: %d %s", c.rule, resp.StatusCode, body)
		}
		for name, value := range c.header {
			if resp.Header.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", c.rule, name, resp.Header.Get(name), value)
			}
		}
	}
	r.Control("/-/faults", `{"rules":[]}`, 200)
	if !bytes.Equal(r.Get(target), good) {
		t.Error("healed, and still not well")
	}
}

func TestFaultsOnTheWire(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	target := root + "/Calls.json?PageSize=2"
	good := r.Get(target)
	type got struct {
		length int64
		body   []byte
		err    error // of reading the body
		packed bool
	}
	get := func(rule string, packed bool) (got, error) {
		r.Control("/-/faults", `{"rules":[`+rule+`]}`, 200)
		resp, err := wire(r, t.Context(), "GET", target, packed)
		if err != nil {
			return got{}, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return got{resp.ContentLength, body, err, resp.Header.Get("Content-Encoding") == "gzip"}, nil
	}
	for _, c := range []struct {
		rule   string
		length int
		body   []byte
		err    error
	}{
		{`{"truncate":100}`, len(good), good[:100], io.ErrUnexpectedEOF},
		{`{"truncate":0}`, len(good), nil, io.ErrUnexpectedEOF},
		{`{"truncate":1000000}`, len(good), good, nil},
		{`{"truncate":50,"reset":true}`, len(good), good[:50], syscall.ECONNRESET},
		{`{"length":10}`, len(good) + 10, good, io.ErrUnexpectedEOF},
		{`{"length":-10}`, len(good) - 10, good[:len(good)-10], nil},
		{`{"truncate":20,"length":7}`, len(good) + 7, good[:20], io.ErrUnexpectedEOF},
		{`{"truncate":9,"status":500,"body":"0123456789abc"}`, 13, []byte("012345678"), io.ErrUnexpectedEOF},
	} {
		g, err := get(c.rule, false)
		checktest.MustNoError(t, err, "%s", c.rule)
		checktest.Equal(t, g.length, int64(c.length), "%s: g.length", c.rule)
		checktest.True(t, bytes.Equal(g.body, c.body), "%s: g.body is %q, want %q", c.rule, g.body, c.body)
		checktest.True(t, errors.Is(g.err, c.err), "%s: g.err is %v, want c.err", c.rule, g.err)
	}
	if _, err := get(`{"reset":true}`, false); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	for _, packed := range []bool{true, false} {
		g, err := get(`{"gzip_cut":200}`, packed)
		checktest.MustNoError(t, err, "gzip_cut")
		checktest.MustEqual(t, g.length, 200, "gzip_cut: g.length")
		checktest.MustEqual(t, len(g.body), 200, "gzip_cut: len(g.body)")
		checktest.MustNoError(t, g.err, "gzip_cut")
		checktest.MustTrue(t, g.packed, "gzip_cut: g.packed is false")
		z, err := gzip.NewReader(bytes.NewReader(g.body))
		if err != nil {
			t.Fatal(err)
		}
		if part, err := io.ReadAll(z); !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(good, part) {
			t.Errorf("gzip_cut opens to %d bytes, %v", len(part), err)
		}
	}
	for _, packed := range []bool{true, false} {
		g, err := get(`{"pad_mb":3}`, packed)
		checktest.MustNoError(t, err, "pad_mb")
		checktest.MustNoError(t, g.err, "pad_mb")
		checktest.MustEqual(t, g.packed, packed, "pad_mb: g.packed")
		body := g.body
		if packed {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			body, _ = io.ReadAll(z)
		}
		checktest.MustEqual(t, len(body), len(good)+3<<20, "pad_mb: len(body)")
		checktest.True(t, json.Valid(body), "pad_mb: json.Valid(body) is false")
		checktest.Equal(t, body[0], '{', "pad_mb: body[0]")
	}
}

func TestFaultsWait(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	good := r.Get(root + "/Calls.json")
	r.Control("/-/faults", `{"rules":[{"delay_ms":30,"status":500}]}`, 200)
	began := time.Now()
	if status, _, _ := r.Ask("GET", root+"/Calls.json", nil); status != 500 || time.Since(began) < 30*time.Millisecond {
		t.Errorf("delay_ms: %d after %s", status, time.Since(began))
	}
	for _, packed := range []bool{false, true} {
		for name, rule := range map[string]string{"delay": `{"delay_ms":3600000}`, "stall": `{"stall_after":10}`,
			"stall at once": `{"stall_after":0}`} {
			r.Control("/-/faults", `{"rules":[`+rule+`]}`, 200)
			ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
			resp, err := wire(r, ctx, "GET", root+"/Calls.json", packed)
			if err == nil {
				var body []byte
				body, err = io.ReadAll(resp.Body)
				if !packed && len(body) > 10 || !packed && !bytes.HasPrefix(good, body) {
					t.Errorf("%s: %d bytes", name, len(body))
				}
				resp.Body.Close()
			}
			leave()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			// Its slot is free again as soon as it left.
			for deadline := time.Now().Add(5 * time.Second); r.Server.Busy() != 0; {
				if time.Now().After(deadline) {
					t.Fatalf("%s: %d requests are still under way", name, r.Server.Busy())
				}
			}
		}
	}
}

func TestClosingEndsStalls(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	r.Control("/-/faults", `{"rules":[{"stall_after":10}]}`, 200)
	resp, err := wire(r, t.Context(), "GET", root+"/Calls.json", false)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// What is sent is sent before the silence begins, and nothing comes after it.
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = r.Server.Close()
	if body, err := io.ReadAll(resp.Body); len(body) != 0 || err == nil {
		t.Errorf("%d bytes more, %v", len(body), err)
	}
}

func TestFaultTimes(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	r.Control("/-/faults", `{"rules":[{"match":"/Calls","status":500,"times":3},{"match":"/Calls","status":503,"times":2},`+
		`{"match":"Messages","status":404}]}`, 200)
	var seen [600]atomic.Int64
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			status, _, _ := r.Ask("GET", root+"/Calls.json", nil)
			seen[status].Add(1)
		})
	}
	all.Wait()
	a, b, c := seen[500].Load(), seen[503].Load(), seen[200].Load()
	checktest.Equal(t, a, 3, "500: a")
	checktest.Equal(t, b, 2, "500: b")
	checktest.Equal(t, c, 7, "500: c")
	for range 3 {
		if status, _, _ := r.Ask("GET", root+"/Messages.json", nil); status != 404 {
			t.Errorf("without times: %d", status)
		}
	}
}

func TestFaultsAndWrites(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	form := url.Values{"To": {"+1500"}, "From": {"+1501"}}
	count := func() int { return len(r.Page(root + "/Calls.json").Records) }
	r.Control("/-/faults", `{"rules":[{"match":"/Calls","status":500,"times":1}]}`, 200)
	r.Write("POST", root+"/Calls.json", form, 500)
	if n := count(); n != 5 {
		t.Errorf("a write answered 500 was carried out: %d calls", n)
	}
	r.Control("/-/faults", `{"rules":[{"match":"/Calls","reset":true,"times":1}]}`, 200)
	req, _ := http.NewRequest("POST", r.Web.URL+root+"/Calls.json", strings.NewReader(form.Encode()))
	req.SetBasicAuth(mainSID, "slowapitoken")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		resp.Body.Close()
		t.Error("no reset")
	}
	if n := count(); n != 6 {
		t.Errorf("a write whose answer was lost was not carried out: %d calls", n)
	}
}

func TestBadFaultsAreRefused(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	r.Control("/-/faults", `{"rules":[{"match":"/Calls","status":500}]}`, 200)
	for _, bad := range []string{
		``, `{}`, `[]`, `{"rules":null}`, `{"rules":{}}`, `{"rules":[]} x`, `{"rule":[]}`,
		`{"rules":[{"math":"/Calls"}]}`, `{"rules":[{"status":99}]}`, `{"rules":[{"status":"500"}]}`, `{"rules":[{"status":600}]}`,
		`{"rules":[{"times":0}]}`, `{"rules":[{"times":-1}]}`, `{"rules":[{"times":1.5}]}`, `{"rules":[{"delay_ms":-1}]}`,
		`{"rules":[{"places":0}]}`, `{"rules":[{"places":10001}]}`,
		`{"rules":[{"delay_ms":3600001}]}`, `{"rules":[{"pad_mb":1025}]}`, `{"rules":[{"truncate":-1}]}`, `{"rules":[{"gzip_cut":-1}]}`,
		`{"rules":[{"stall_after":-1}]}`, `{"rules":[{"retry_after":-1}]}`, `{"rules":[{"redirect":""}]}`, `{"rules":[{"redirect":"a\r\nb"}]}`,
		`{"rules":[{"content_type":"a\nb"}]}`, `{"rules":[{"length":1e99}]}`,
		`{"rules":[` + strings.Repeat(`{},`, slowapi.MaxRules) + `{}]}`,
	} {
		if got := r.Control("/-/faults", bad, 400); !strings.Contains(got, `{"error":"`) {
			t.Errorf("%s: %s", bad, got)
		}
	}
	if status, _, _ := r.Ask("GET", root+"/Calls.json", nil); status != 500 {
		t.Errorf("a refused set of rules replaced the one before: %d", status)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{{"GET", "/-/faults", 405}, {"POST", "/-/stats", 405}, {"GET", "/-/advance", 405}, {"GET", "/-/nothing", 404}, {"HEAD", "/-/stats",
		200}} {
		if status, _, _ := r.Ask(c.method, c.path, nil); status != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, status, c.want)
		}
	}
	r.Control("/-/faults", `{"rules":[{"match":"","status":500}]}`, 200)
	r.Control("/-/advance", `{}`, 200)
	r.Control("/-/faults", fmt.Sprintf(`{"rules":[{"body":%q}]}`, strings.Repeat("x", 1<<20)), 413)
}

// With places for two, six requests take three times as long as one; who leaves while waiting takes no place.
func TestFaultsHavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := slowapi.New(slowapi.Options{Records: 5, Latency: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		rules := httptest.NewRequest("POST", "/-/faults", strings.NewReader(`{"rules":[{"match":"/Calls","places":2}]}`))
		set := httptest.NewRecorder()
		if s.ServeHTTP(set, rules); set.Code != 200 {
			t.Fatalf("%d %s", set.Code, set.Body)
		}
		began := time.Now()
		var done sync.WaitGroup
		for range 6 {
			done.Go(func() {
				if got := slowapitest.Serve(s, root+"/Calls.json"); got.Code != 200 {
					t.Errorf("%d", got.Code)
				}
			})
		}
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", root+"/Calls.json", nil))
		}()
		synctest.Wait()
		leave()
		<-left
		if slowapitest.Serve(s, root+"/Messages.json"); time.Since(began) > 72*time.Second {
			t.Errorf("what the rule does not match took %v", time.Since(began))
		}
		done.Wait()
		if took := time.Since(began); took < 3*48*time.Second || took > 3*72*time.Second {
			t.Errorf("six requests took %v", took)
		}
	})
}
