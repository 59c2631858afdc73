// Memory: what is kept in memory for who waits, and for who reads slowly.

package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"understudy/internal/checktest"
	"understudy/kit/limiter"
	"understudy/request"
)

// slowReader looks, while it is sent a body, whether the page is still in memory.
type slowReader struct {
	*httptest.ResponseRecorder
	writing func()
}

func (w *slowReader) Write(p []byte) (int, error) {
	w.writing()
	return w.ResponseRecorder.Write(p)
}

// TestWhatIsSentAloneIsKept: while a client reads, only the body that it is sent is in memory, not the page that
// the body was made of.
func TestWhatIsSentAloneIsKept(t *testing.T) {
	b := newBed(t)
	for _, own := range []bool{true, false} {
		var from weak.Pointer[byte]
		b.script.page = func(_ context.Context, ask request.Request) (*request.Response, error) {
			p := page("calls", true, 200, `{"calls":[{"from":"+15005550006","status":"`+strings.Repeat("x", 1<<20)+`"}]}`)
			from = weak.Make(&p.Body[0])
			a := &request.Response{Page: p, Outcome: request.Warm}
			if own {
				*ask.ResponseBuffer = *a
				return ask.ResponseBuffer, nil
			}
			return a, nil
		}
		r := httptest.NewRequest(http.MethodGet, root+"/Calls.json", nil)
		r.SetBasicAuth(account, masked)
		r.Header.Set("Accept-Encoding", "gzip")
		kept, wrote := true, false
		b.ServeHTTP(&slowReader{httptest.NewRecorder(), func() {
			runtime.GC()
			kept, wrote = from.Value() != nil, true
		}}, r)
		if !wrote || kept {
			t.Errorf("own %v: wrote %v, the page is kept %v", own, wrote, kept)
		}
	}
}

// TestListsAtOnceAreBounded: where memory is bounded a list waits for its credential's half of the places, and is
// refused after listWait. Another credential's list and a record are answered meanwhile.
func TestListsAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.o.Lists = limiter.New(2, 1)
		goAhead := make(chan struct{})
		first := b.waiting(1, goAhead)
		slow := make(chan *httptest.ResponseRecorder, 1)
		go func() { slow <- b.ask(http.MethodGet, root+"/Calls.json", demo) }()
		<-first
		b.answers(page("calls", true, 200, `{"calls":[]}`))
		w := b.ask(http.MethodGet, root+"/Calls.json", demo)
		checktest.Equal(t, w.Code, http.StatusServiceUnavailable, "a list too many: w.Code; w.Body %s", w.Body)
		checktest.True(t, w.Header().Get("Retry-After") != "",
			`a list too many: w.Header().Get("Retry-After") is empty; w.Body %s`, w.Body)
		checktest.Contains(t, w.Body.String(), errManyLists.Error(), "a list too many: w.Body.String()")
		if w := b.ask(http.MethodGet, root+"/Calls.json", masked); w.Code != http.StatusOK {
			t.Errorf("another credential's list: %d", w.Code)
		}
		b.answers(page("calls", false, 200, `{}`))
		if w := b.ask(http.MethodGet, root+"/Calls/CA00000000000000000000000000000001.json", demo); w.Code != http.StatusOK {
			t.Errorf("a record: %d", w.Code)
		}
		close(goAhead)
		if w := <-slow; w.Code != http.StatusOK {
			t.Errorf("the list under way: %d", w.Code)
		}
		b.answers(page("calls", true, 200, `{"calls":[]}`))
		if w := b.ask(http.MethodGet, root+"/Calls.json", demo); w.Code != http.StatusOK {
			t.Errorf("after it: %d", w.Code)
		}
	})
}
