// Failures: every kind of error, in upstream's shape.

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/db"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

func TestFailures(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct {
		name           string
		err            error
		status, code   int
		retry, message string
	}{
		{"not found", fmt.Errorf("mirror: %w: x", understudy.ErrNotFound), 404, 20404, "", "was not found"},
		{"invalid", fmt.Errorf("mirror: %w: page size", understudy.ErrInvalid), 400, 20001, "", "page size"},
		{"unavailable", fmt.Errorf("mirror: %w", understudy.ErrUnavailable), 503, 20500, "2",
			"upstream unavailable; no stored answer fits this request"},
		{"down", &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New(`Get "http://10.0.0.1/?To=+14155551234": refused`)},
			503, 20500, "2", "upstream unreachable"},
		{"our credential", &understudy.UpstreamError{Why: understudy.FailCredential, Status: 401}, 503, 20500, "2", "upstream 401"},
		{"limited", &understudy.UpstreamError{Why: understudy.FailLimited, Status: 429, RetryAfter: 4500 * time.Millisecond}, 503, 20500, "5",
			"upstream 429"},
		{"late", fmt.Errorf("mirror: %w", context.DeadlineExceeded), 503, 20500, "2", "in time"},
		{"records make no answer", &understudy.NotComposedError{Err: &understudy.UpstreamError{Why: understudy.FailUnreachable},
			Why: fmt.Errorf("mirror: compose x: %w: how many rows there are is not known", understudy.ErrInvalid)}, 503, 20500, "2",
			"no stored answer fits this request: how many rows there are is not known"},
		{"records are read too slowly", &understudy.NotComposedError{Err: &understudy.UpstreamError{Why: understudy.FailUnreachable},
			Why: context.DeadlineExceeded}, 503, 20500, "2", "stored data could not be read in time"},
		{"too large", &understudy.NotComposedError{Err: &understudy.UpstreamError{Why: understudy.FailUnusable, Status: 200,
			Err: fmt.Errorf("the body: %w", &understudy.SizeError{Setting: "sources.main.max_body", Limit: 64 << 20})},
			Why: fmt.Errorf("%w: the spec does not describe the format of this list", understudy.ErrInvalid)}, 503, 20500, "2",
			"upstream answer too large; no stored answer fits this request; raise sources.main.max_body, which is 64MiB"},
		{"not audited", fmt.Errorf("audit: %w: disk full", understudy.ErrNotAudited), 503, 20500, "2", "the audit log can't be written"},
		{"database away", fmt.Errorf("store: read page: %w", &db.Fault{Reason: "the database is not reachable",
			Err: &db.Error{Class: db.Away, Err: errors.New("secret detail")}}), 503, 20500, "2", "the database of Understudy is not available"},
		{"database contradicts", fmt.Errorf("store: set a value: %w", &db.Fault{Reason: "it contradicts what is stored",
			Err: &db.Error{Class: db.Conflict, Err: errors.New("secret detail")}}), 409, 20500, "", ""},
		{"given up within", fmt.Errorf("mirror: %w", context.Canceled), 503, 20500, "2", "unavailable"},
		{"closed", understudy.ErrClosed, 503, 20500, "2", "unavailable"},
		{"unknown outcome", fmt.Errorf("upstream: %w: reset", understudy.ErrUnknownOutcome), 504, 20500, "", "outcome unknown"},
		{"no index yet", fmt.Errorf("mirror: compose calls: store: seek: %w: 17 of 2000", understudy.ErrIndexing), 503, 20500, "30",
			"the index is being built: 17 of 2000"},
		{"anything else", errors.New("secret detail"), 500, 20500, "", "internal server error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.fails(test.err)
			w := b.ask("GET", root+"/Calls.json", demo)
			wantShape(t, w.Body.Bytes(), test.status, test.code, test.message)
			if w.Code != test.status || w.Header().Get("Retry-After") != test.retry {
				t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
			checktest.Equal(t, w.Header().Get("Content-Type"), "application/json", `w.Header().Get("Content-Type")`)
			checktest.Equal(t, w.Header().Get("Content-Length"), strconv.Itoa(w.Body.Len()),
				`w.Header().Get("Content-Length")`)
			checktest.True(t, w.Header().Get("X-Request-Id") != "", `w.Header().Get("X-Request-Id") is empty`)
			checktest.Equal(t, w.Header().Get("Cache-Control"), "private", `w.Header().Get("Cache-Control")`)
			if strings.Contains(w.Body.String(), "4155551234") || strings.Contains(w.Body.String(), "secret detail") {
				t.Errorf("body %s", w.Body)
			}
		})
	}
}

func TestErrorsOfOurOwnAreSigned(t *testing.T) {
	b := newBed(t)
	b.fails(fmt.Errorf("mirror: %w: page größe\n", understudy.ErrInvalid))
	if got := b.ask("GET", root+"/Calls.json", demo).Header().Get(jsonhttp.ErrorHeader); got != "page gr??e" {
		t.Errorf("400 says %q", got)
	}
	if got := b.ask("GET", "/no/such/path.json", demo).Header().Get(jsonhttp.ErrorHeader); got != "credential demo can't read this path" {
		t.Errorf("a path that the API does not have says %q", got)
	}
	for _, path := range []string{"/" + root + "/Calls.json", root + "//Calls.json", strings.ToUpper(root) + "/Calls.json",
		root + "/../Calls.json"} {
		if got := b.ask("GET", path, demo); got.Code != 404 || got.Header().Get(jsonhttp.ErrorHeader) == "" {
			t.Errorf("%s: %d says %v", path, got.Code, got.Header())
		}
	}
	b.fails(fmt.Errorf("mirror: %w: x", understudy.ErrNotFound))
	if got := b.ask("GET", root+"/Calls.json", demo).Header().Get(jsonhttp.ErrorHeader); got != "not found" {
		t.Errorf("404 of a record that is unknown or hidden says %q", got)
	}
	if got := b.ask("GET", root+"/Calls.json", "").Header().Get(jsonhttp.ErrorHeader); got == "" {
		t.Error("401 says nothing")
	}
}

// A refusal that is made as upstream would make it is ours, and one of upstream's is not.
func TestComposedRefusalsAreSigned(t *testing.T) {
	b := newBed(t)
	for outcome, want := range map[request.Outcome]string{
		request.Composed: "a refusal in upstream's words, built here (composed: upstream 503)", request.Warm: "", request.Cold: "",
	} {
		a := b.answers(page("calls", true, 400, `{"code":20001,"message":"Invalid date value.","status":400}`))
		a.Outcome, a.Detail = outcome, "composed: upstream 503"
		if got := b.ask("GET", root+"/Calls.json", demo); got.Code != 400 || got.Header().Get(jsonhttp.ErrorHeader) != want {
			t.Errorf("%v: %d says %v, want %q", outcome, got.Code, got.Header(), want)
		}
	}
}

// wantShape checks an error body of the spec's template.
func wantShape(t *testing.T, body []byte, status, code int, message string) {
	t.Helper()
	var got struct {
		Code     int    `json:"code"`
		Message  string `json:"message"`
		MoreInfo string `json:"more_info"`
		Status   int    `json:"status"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	checktest.Equal(t, got.Status, status, "got.Status; body %s", body)
	checktest.Equal(t, got.Code, code, "got.Code; body %s", body)
	checktest.True(t, strings.HasSuffix(got.MoreInfo, "/"+strconv.Itoa(code)), "got.MoreInfo is %q; body %s",
		got.MoreInfo, body)
	checktest.Contains(t, got.Message, message, "got.Message; body %s", body)
}

func TestRefusals(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct {
		method, target, secret string
		status, code           int
		message                string
	}{
		{"GET", root + "/Calls.json", "", 401, 20003, "does not know this credential"},
		{"GET", root + "/Calls.json", "wrong", 401, 20003, "does not know this credential"},
		{"TRACE", root + "/Calls.json", "", 401, 20003, "does not know this credential"},
		{"GET", "/%zz", "", 401, 20003, "does not know this credential"},
		{"GET", "/", demo, 403, 20003, "can't read"},
		{"GET", root + "/Nothing.json", demo, 403, 20003, "can't read"},
		{"GET", "//x", demo, 403, 20003, "can't read"},
		{"POST", root + "/Calls.json", demo, 403, 20003, "allow"},
		{"DELETE", root + "/Calls/CA1.json", demo, 403, 20003, "allow"},
		{"PUT", root + "/Messages.json", demo, 403, 20003, "allow"},
		{"POST", root + "/Messages.json", reader, 403, 20003, "allow"},
		{"GET", root + "/Messages.json", reader, 403, 20003, "can't see messages"},
		{"HEAD", root + "/Messages/SM1.json", reader, 403, 20003, ""},
		{"GET", root + "/Messages.json?To=%2B14155551234", masked, 403, 20003, "parameter To"},
		{"GET", root + "/Messages.json?Odd=1", masked, 403, 20003, "parameter Odd"},
		{"TRACE", root + "/Calls.json", demo, 405, 20405, "does not accept this method"},
		{"CONNECT", root + "/Calls.json", demo, 405, 20405, "does not accept this method"},
		{"OPTIONS", root + "/Calls.json", demo, 405, 20405, "does not accept this method"},
		{"get", root + "/Calls.json", demo, 405, 20405, "does not accept this method"},
		{"FROB", root + "/Messages.json", demo, 405, 20405, "does not accept this method"},
		{"GET", root + "/Calls.json?a=%zz", demo, 400, 20001, "percent"},
		{"GET", root + "/%2e%2e/x", demo, 404, 20404, "does not know this path"},
		{"POST", root + "/../Messages.json", demo, 404, 20404, "does not know this path"},
		{"GET", root + "/a%2fb", demo, 404, 20404, "does not know this path"},
		{"GET", root + "/calls.json", demo, 404, 20404, "does not know this path"},
		{"GET", root + "/Calls.json?x=" + strings.Repeat("y", 9000), demo, 414, 20001, "longer"},
		{"GET", "/-/stats", "", 404, 20404, "does not know this path"},
		{"GET", "/-/", demo, 404, 20404, "does not know this path"},
		{"POST", "/-/health", "", 405, 20405, "does not accept this method"},
	} {
		name := test.method + " " + test.target[:min(len(test.target), 60)] + " as " + test.secret
		t.Run(name, func(t *testing.T) {
			b.script.asked = nil
			r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Method, r.RequestURI = test.method, test.target
			w := b.send(r, test.secret)
			if w.Code != test.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if test.method != "HEAD" {
				wantShape(t, w.Body.Bytes(), test.status, test.code, test.message)
			}
			if len(b.script.asked) != 0 || len(b.script.passed) != 0 {
				t.Error("a refusal reached the mirror")
			}
			if got := w.Header().Get("Www-Authenticate"); (got == `Basic realm="Twilio API"`) != (test.status == 401) {
				t.Errorf("challenge %q", got)
			}
			if (w.Header().Get("Allow") != "") != (test.status == 405) {
				t.Errorf("Allow %q", w.Header().Get("Allow"))
			}
		})
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Method, r.RequestURI = "FROB", root+"/Messages.json"
	if got := b.send(r, demo).Header().Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow %q", got)
	}
}

func TestAllowedUnknownPath(t *testing.T) {
	b := newBed(t)
	b.answers(page("", false, 200, `{"queues":[{"sid":"QU1"}],"page":0}`))
	if w := b.ask("GET", root+"/Queues.json", demo); w.Code != 200 || !strings.Contains(w.Body.String(), "QU1") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.ask("GET", root+"/Queues.json", masked); w.Code != 200 || w.Body.String() != `{"queues":null,"page":null}` {
		t.Errorf("as support: %d %s", w.Code, w.Body)
	}
}

func TestHealth(t *testing.T) {
	b := newBed(t)
	if w := b.ask("GET", "/-/health?x", ""); w.Code != 200 || w.Body.String() != `{"status":"ok"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(b.text(t), `path="/-/health?x" status=200 bytes=15`) {
		t.Errorf("logged %s", b.text(t))
	}
}

func TestUpstreamErrorsPassVerbatim(t *testing.T) {
	b := newBed(t)
	quoting := `{"code":20429,"message":"too many for +14155551234","more_info":"x","status":429}`
	b.fails(&understudy.UpstreamError{Why: understudy.FailLimited, Status: 429, RetryAfter: 3 * time.Second,
		Page: page("calls", true, 429, quoting)})
	w := b.ask("GET", root+"/Calls.json", demo)
	checktest.Equal(t, w.Code, 429, "w.Code; w.Body %s", w.Body)
	checktest.Equal(t, w.Body.String(), quoting, "w.Body.String()")
	checktest.Equal(t, w.Header().Get("Retry-After"), "3", `w.Header().Get("Retry-After"); w.Body %s`, w.Body)
	checktest.Equal(t, w.Header().Get("Cache-Status"), `understudy; fwd=uri-miss; detail="upstream 429"`,
		`w.Header().Get("Cache-Status"); w.Body %s`, w.Body)
	w = b.ask("GET", root+"/Calls.json", masked)
	wantShape(t, w.Body.Bytes(), 429, 20429, "")
	if w.Code != 429 || strings.Contains(w.Body.String(), "4155551234") {
		t.Errorf("as support: %d %s", w.Code, w.Body)
	}
	// 404 of an instance: upstream's own words for all, ours for support.
	gone := `{"code":20404,"message":"The requested resource +14155551234 was not found","status":404}`
	b.answers(page("calls", false, 404, gone))
	if w := b.ask("GET", root+"/Calls/CA9.json", demo); w.Code != 404 || w.Body.String() != gone {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.ask("GET", root+"/Calls/CA9.json", masked); w.Code != 404 || strings.Contains(w.Body.String(), "4155551234") {
		t.Errorf("as support: %d %s", w.Code, w.Body)
	}
}

func TestAnAnswerTheRoleCannotReadIsRefused(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, "<Calls>+14155551234</Calls>"))
	w := b.ask("GET", root+"/Calls.json", masked)
	wantShape(t, w.Body.Bytes(), 403, 20003, "JSON")
}

func TestAPanicIsA500AndIsLogged(t *testing.T) {
	b := newBed(t)
	b.script.page = func(context.Context, request.Request) (*request.Response, error) { panic("of secrets") }
	w := b.ask("GET", root+"/Calls.json", demo)
	wantShape(t, w.Body.Bytes(), 500, 20500, "internal server error")
	if !strings.Contains(b.text(t), "status=500") || strings.Contains(w.Body.String(), "secrets") {
		t.Errorf("%s, logged %s", w.Body, b.text(t))
	}
}
