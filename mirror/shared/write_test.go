// Writes and HEAD over real HTTP: what they end, and what they confirm.

package shared_test

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
)

func TestWritesInvalidate(t *testing.T) {
	var fails atomic.Bool
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Cache-Control", "max-age=60")
		if r.Method == "POST" {
			w.Header().Set("Location", "/made")
			w.WriteHeader(201)
		}
		if r.URL.Path == "/bad" && r.Method != "GET" {
			w.WriteHeader(500)
		}
	})
	for _, path := range []string{"/list", "/made", "/bad"} {
		b.do("GET " + path)
	}
	b.do("POST /list")
	b.do("PUT /bad")
	b.wantAsked("GET /list", "GET /made", "GET /bad", "POST /list", "PUT /bad")
	b.want("200  warm", "GET /bad")
	b.want("200  cold", "GET /list")
	b.want("200  cold", "GET /made")
	b.wantAsked("GET /list", "GET /made")
	fails.Store(true)
	if _, err := b.try("DELETE /list"); !errors.Is(err, understudy.ErrUnknownOutcome) {
		t.Errorf("a write without an answer: %v", err)
	}
	fails.Store(false)
	b.want("200  cold", "GET /list") // nobody knows what became of it
}

func TestAHeadConfirmsOrEnds(t *testing.T) {
	var tag atomic.Value
	tag.Store(`"1"`)
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		if r.Method == "HEAD" {
			w.Header().Set("Cache-Control", "max-age=60")
		}
		w.Header().Set("Etag", tag.Load().(string))
		io.WriteString(w, "hello")
	})
	b.do("GET /a")
	b.pass(10 * time.Second)
	b.want("200 hello cold", "HEAD /a")
	b.want("200 hello warm", "GET /a")
	b.pass(100 * time.Second)
	tag.Store(`"2"`)
	b.want("200  cold", "HEAD /a")
	b.want("200 hello cold", "GET /a", "Cache-Control: max-stale")
	b.pass(100 * time.Second)
	tag.Store("")
	b.want("200  cold", "HEAD /a")
	b.want("200 hello cold", "GET /a") // nothing says that it is the same
}

// What was asked before a write confirms and stores nothing; what is asked after it is stored,
// though another request is still under way.
func TestAnswersFromBeforeAWrite(t *testing.T) {
	late, came := make(chan struct{}), make(chan struct{})
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		w.Header().Set("Etag", `"1"`)
		if r.Header.Get("Late") != "" {
			came <- struct{}{}
			<-late
		}
		io.WriteString(w, "hello")
	})
	for _, method := range []string{"GET", "HEAD"} {
		b.do("GET /a")
		b.pass(10 * time.Second)
		var wg sync.WaitGroup
		wg.Go(func() { b.do(method+" /a", "Late: 1") })
		<-came
		b.do("POST /a")
		b.want("200 hello cold", "GET /a")
		b.want("200 hello warm", "GET /a")
		b.do("POST /a")
		late <- struct{}{}
		wg.Wait()
		b.want("200 hello cold", "GET /a")
		b.pass(10 * time.Second)
	}
}

// What a write ended after it was looked for confirms nothing.
func TestWritesBesideAConfirmation(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		w.Header().Set("Etag", `"1"`)
		io.WriteString(w, "hello")
	})
	for _, method := range []string{"GET", "HEAD"} {
		b.do("GET /a")
		b.pass(10 * time.Second)
		b.then = func() { b.do("POST /a") }
		b.do(method + " /a")
		b.wantAsked("GET /a", "POST /a", method+" /a")
		b.pass(10 * time.Second)
		b.do("GET /a")
		if method == "HEAD" {
			b.wantAsked("GET /a")
		} else {
			b.wantAsked("GET /a If-None-Match")
		}
		b.do("POST /a")
		b.asked = nil
	}
}

// What is said to who sends a credential changes nothing that others get.
func TestConfirmationsForOne(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		w.Header().Set("Etag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(304)
			return
		}
		io.WriteString(w, "hello")
	})
	b.do("GET /a")
	b.pass(10 * time.Second)
	b.want("200 hello cold not stored: it answers only this request", "GET /a", "Authorization: Basic eA==")
	b.want("200  cold", "HEAD /a", "Authorization: Basic eA==")
	b.want("200 hello cold", "GET /a")
	b.want("200 hello warm", "GET /a", "Authorization: Basic eA==")
}

func TestAPostThatIsWhatAGetGets(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Location", r.RequestURI)
		io.WriteString(w, r.Method)
	})
	b.want("200 POST cold", "POST /a")
	b.want("200 POST warm", "GET /a")
	b.wantAsked("POST /a")
}

func TestWhatCannotBeForgottenDoesNotCount(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "max-age=60") })
	b.do("GET /a")
	b.do("GET /b")
	b.pass(time.Second)
	b.kept = errors.New("disk full")
	b.do("POST /a")
	b.kept = nil
	b.pass(time.Second)
	b.want("200  cold", "GET /a")
	b.want("200  warm", "GET /a")
	b.want("200  cold", "GET /b")
}
