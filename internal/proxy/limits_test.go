// Limits: the waits that the mirror gets, the counters, and the answer to a refused
// caller.

package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// Credentials have turns of their own, which say nothing else of them.
func TestCredentialsHaveTurns(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, `{"calls":[]}`))
	for _, secret := range []string{demo, demo, masked} {
		if w := b.ask("GET", root+"/Calls.json", secret); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	a := b.script.asked
	checktest.True(t, a[0].Flow != 0, "turns: a[0].Flow is 0")
	checktest.Equal(t, a[0].Flow, a[1].Flow, "turns: a[0].Flow")
	checktest.True(t, a[0].Flow != a[2].Flow, "turns: a[0].Flow is %v", a[0].Flow)
	other := newBed(t)
	other.answers(page("calls", true, 200, `{"calls":[]}`))
	other.ask("GET", root+"/Calls.json", demo)
	if other.script.asked[0].Flow == a[0].Flow {
		t.Error("a turn is the same in another process: it tells the credential")
	}
}

func TestTooManyWait(t *testing.T) {
	b := newBed(t)
	b.fails(&understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: 2300 * time.Millisecond})
	w := b.ask("GET", root+"/Calls.json", demo)
	if w.Header().Get("Retry-After") != "3" {
		t.Errorf("%v", w.Header())
	}
	wantShape(t, w.Body.Bytes(), 503, 20500, "too many requests wait for upstream")
}

func TestTooLargeBodiesAreCounted(t *testing.T) {
	b := newBed(t)
	n := 0
	b.o.TooLarge = func() { n++ }
	for range 3 {
		b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader(strings.Repeat("x", 2000))), demo)
	}
	b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader(strings.Repeat("x", 2000))), reader) // may not write at all
	if n != 3 {
		t.Errorf("%d counted, want 3", n)
	}
}

func TestLongTargetIs414(t *testing.T) {
	b := newBed(t)
	w := b.ask("GET", root+"/Messages.json?To="+strings.Repeat("1", 8<<10), demo)
	if w.Code != http.StatusRequestURITooLong {
		t.Errorf("the status is %d", w.Code)
	}
	if !strings.Contains(w.Body.String(), `"the request target is longer than 8192 bytes"`) {
		t.Errorf("the body is %s", w.Body)
	}
}

// The bound of a target is that of its bytes as sent, though another spelling has more or fewer.
func TestTargetIsMeasuredAsSent(t *testing.T) {
	b := newBed(t)
	b.answers(page("messages", true, 200, `{"messages":[]}`))
	for text, status := range map[string]int{strings.Repeat(",", 8000): 200, strings.Repeat("%61", 4000): 414} {
		if w := b.ask("GET", root+"/Messages.json?To="+text, demo); w.Code != status {
			t.Errorf("%.9s: %d, want %d: %s", text, w.Code, status, w.Body)
		}
	}
}
