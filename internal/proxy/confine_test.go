// Confine: no answer of a drop-in port is run by a browser.

package proxy

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
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
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "too many wrong credentials") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if text := b.text(t); strings.Count(text, " peer=192.0.2.1 ") != 21 {
		t.Errorf("logged %s", text)
	}
}
