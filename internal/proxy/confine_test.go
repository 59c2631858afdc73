// Confine: no answer of a drop-in port is run by a browser.

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

// L10: JSON called text/html, or an HTML 404, with a script in it ran in the
// origin that holds the browser's credential.
func TestEveryAnswerIsConfined(t *testing.T) {
	b := newBed(t)
	confined := func(what string, w *httptest.ResponseRecorder) {
		t.Helper()
		h := w.Header()
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s, %d: %v", what, w.Code, h)
		}
	}
	p := page("messages", true, 200, `{"messages":[{"sid":"SM1","body":"<script>alert(1)</script>"}]}`)
	p.ContentType = "text/html"
	b.answers(p)
	confined("a list called HTML", b.ask("GET", root+"/Messages.json", demo))
	b.answers(page("messages", false, 404, "<script>alert(1)</script>"))
	confined("an HTML 404", b.ask("GET", root+"/Messages/SM00000000000000000000000000000001.json", demo))
	confined("no credential", b.ask("GET", root+"/Messages.json", ""))
	confined("a method", b.ask("OPTIONS", root+"/Messages.json", demo))
	confined("health", b.ask("GET", "/-/health", ""))
	b.fails(understudy.ErrUnavailable)
	confined("an outage", b.ask("GET", root+"/Messages.json", demo))
	b.fails(errors.New("odd"))
	confined("a failure", b.ask("GET", root+"/Messages.json", demo))
	b.script.page = nil
	confined("a panic", b.ask("GET", root+"/Messages.json", demo))
}

// M8 and L1: a refused sender is named by its address, and held up when it guesses.
func TestARefusedSenderIsNamed(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", true, 200, `{"messages":[]}`))
	for range 20 {
		if w := b.ask("GET", root+"/Messages.json", "wrong"); w.Code != 401 {
			t.Fatalf("%d", w.Code)
		}
	}
	w := b.ask("GET", root+"/Messages.json", demo)
	checktest.Equal(t, w.Code, 429, "w.Code; w.Body %s", w.Body)
	checktest.True(t, w.Header().Get("Retry-After") != "", `w.Header().Get("Retry-After") is empty; w.Body %s`,
		w.Body)
	checktest.Contains(t, w.Body.String(), "too many wrong credentials", "w.Body.String()")
	if text := b.text(t); strings.Count(text, " peer=192.0.2.1 ") != 21 {
		t.Errorf("logged %s", text)
	}
}

// Answers tell a caller of the rate of its own credential, in upstream's fields, whatever
// other callers ask and whatever upstream says of its own.
func TestAnswersTellTheCallersOwnRate(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", true, 200, `{"messages":[]}`))
	told := func(h http.Header) string {
		return strings.Join([]string{h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset")}, " ")
	}
	ask := func(secret string, headers ...string) *httptest.ResponseRecorder {
		return b.ask("GET", root+"/Messages.json", secret, headers...)
	}
	end := func(after time.Duration) string { return strconv.FormatInt(start.Add(after).Unix(), 10) }
	etag := ask(demo).Header().Get("Etag")
	for i := range 3 {
		if got := told(ask(demo).Header()); got != "  " {
			t.Errorf("a caller without a bound is told %q", got)
		}
		w := ask(paced, "If-None-Match", etag)
		if got, want := told(w.Header()), fmt.Sprintf("3 %d %s", 2-i, end(time.Duration(i+1)*20*time.Minute)); w.Code != 304 || got != want {
			t.Errorf("%d: %q, want %q", w.Code, got, want)
		}
	}
	w := ask(paced)
	checktest.Equal(t, w.Code, 429, "w.Code; w.Body %s", w.Body)
	checktest.Equal(t, told(w.Header()), "3 0 "+end(time.Hour), "told(w.Header()); w.Body %s", w.Body)
	checktest.Equal(t, w.Header().Get("Retry-After"), "1200", `w.Header().Get("Retry-After"); w.Body %s`, w.Body)
	checktest.Contains(t, w.Body.String(), "this credential has sent too many requests", "w.Body.String()")
	b.now = b.now.Add(20 * time.Minute)
	b.fails(&understudy.UpstreamError{Why: understudy.FailLimited, Status: 429, RetryAfter: 7 * time.Second})
	{
		w := ask(paced)
		checktest.Equal(t, w.Code, 503, "w.Code")
		checktest.Equal(t, told(w.Header()), "3 0 "+end(80*time.Minute), "told(w.Header())")
		checktest.Equal(t, w.Header().Get("Retry-After"), "7", `w.Header().Get("Retry-After")`)
	}
	all := `{"all":3,"used":3,"left":0,"end":` + end(80*time.Minute) + "}"
	{
		w := b.ask("GET", "/rate?x=1", paced)
		checktest.Equal(t, w.Code, 200, "asked for when nothing is left: w.Code; w.Body %s", w.Body)
		checktest.Equal(t, w.Body.String(), all, "asked for when nothing is left: w.Body.String()")
		checktest.Equal(t, told(w.Header()), "3 0 "+end(80*time.Minute),
			"asked for when nothing is left: told(w.Header()); w.Body %s", w.Body)
	}
	{
		w := b.ask("HEAD", "/rate", paced)
		checktest.Equal(t, w.Code, 200, "HEAD: w.Code")
		checktest.Equal(t, w.Body.Len(), 0, "HEAD: w.Body.Len()")
		checktest.True(t, w.Header().Get("Content-Length") != "0", `HEAD: w.Header().Get("Content-Length") is "0"`)
	}
	for secret, status := range map[string]int{demo: 403, "wrong": 401, "": 401} {
		if w := b.ask("GET", "/rate", secret); w.Code != status || told(w.Header()) != "  " {
			t.Errorf("%q: %d %v %s", secret, w.Code, w.Header(), w.Body)
		}
	}
	if w := b.ask("POST", "/rate", demo); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
	if last := b.script.asked[len(b.script.asked)-1]; last.Target.Key.Path() == "/rate" {
		t.Error("the mirror was asked for a rate")
	}
	b.Proxy.o.Rate = func(*spec.Target, time.Time) (understudy.Rate, bool) { return understudy.Rate{Limit: 9}, true }
	b.o.Source.Spec.Limits.ResetAs = spec.ResetSeconds
	b.now = b.now.Add(40 * time.Minute)
	if got := told(ask(paced).Header()); got != "3 1 2400" {
		t.Errorf("in seconds: %q", got)
	}
}

// A caller whose credential has no rate is told that of the source, in every answer, also of
// our own. Who is not known is told nothing.
func TestAnswersTellTheRateOfTheSource(t *testing.T) {
	b := newBed(t)
	b.Proxy.o.Source.Spec.Limits.Used = "X-Ratelimit-Used"
	rate, known := understudy.Rate{Limit: 60, Remaining: 41, Reset: time.Minute}, false
	b.Proxy.o.Rate = func(*spec.Target, time.Time) (understudy.Rate, bool) { return rate, known }
	told := func(w *httptest.ResponseRecorder) (all string) {
		for _, name := range []string{"Limit", "Used", "Remaining", "Reset"} {
			all += w.Header().Get("X-Ratelimit-"+name) + " "
		}
		return all
	}
	expect := func(when string, w *httptest.ResponseRecorder, status int, want string) {
		t.Helper()
		if got := told(w); w.Code != status || got != want {
			t.Errorf("%s: %d %q, want %d %q", when, w.Code, got, status, want)
		}
	}
	const list, nothing = root + "/Messages.json", "    "
	b.answers(page("messages", true, 200, `{"messages":[]}`))
	expect("nothing is known", b.ask("GET", list, demo), 200, nothing)
	known = true
	all := fmt.Sprintf("60 19 41 %d ", start.Add(time.Minute).Unix())
	expect("it is known", b.ask("GET", list, demo), 200, all)
	rate.Remaining = 40
	expect("one was sent since", b.ask("GET", list, demo), 200, strings.Replace(all, "19 41", "20 40", 1))
	expect("a wrong method", b.ask("OPTIONS", list, demo), 405, strings.Replace(all, "19 41", "20 40", 1))
	expect("a wrong credential", b.ask("GET", list, "wrong"), 401, nothing)
	expect("a role that sees a part", b.ask("GET", list, masked), 200, nothing)
	b.Proxy.o.Source.Spec.Limits.Path = list
	expect("the body tells it", b.ask("GET", list, demo), 200, nothing)
	b.Proxy.o.Source.Spec.Limits.Path = ""
	b.fails(understudy.ErrUnavailable)
	expect("an outage", b.ask("GET", list, demo), 503, strings.Replace(all, "19 41", "20 40", 1))
	if got := told(b.ask("GET", list, paced)); !strings.HasPrefix(got, "3 1 2 ") {
		t.Errorf("with a rate of its own: %q", got)
	}
}

// What answers from memory say of the source's rate costs no memory while it is the same.
func TestTellingTheSameRateAllocatesNothing(t *testing.T) {
	b := newBed(t)
	v := &exchange{proxy: b.Proxy, w: &sink{http.Header{}}, caller: understudy.CommandCaller}
	v.proxy.o.Rate = func(*spec.Target, time.Time) (understudy.Rate, bool) {
		return understudy.Rate{Limit: 60, Remaining: 41}, true
	}
	if n := testing.AllocsPerRun(100, func() { clear(v.w.Header()); setSourceRate(v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
