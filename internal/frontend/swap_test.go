// Tests of reading settings again: what is swapped, and what needs a restart.

package frontend

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// A request ends with the handler it began with, and that one's end is called
// once, after its last request.
func TestSwap(t *testing.T) {
	var s swapHandler
	inside, release := make(chan struct{}), make(chan struct{})
	var ended atomic.Int64
	s.set(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-release
		if ended.Load() != 0 {
			t.Error("ended while at work")
		}
		w.WriteHeader(201)
	}), nil, func() { ended.Add(1) })
	first := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { defer close(done); serveBy(&s, first, httptest.NewRequest("GET", "/", nil)) }()
	<-inside
	s.set(http.NotFoundHandler(), nil, func() { t.Error("the one in use has ended") })
	second := httptest.NewRecorder()
	serveBy(&s, second, httptest.NewRequest("GET", "/", nil))
	if second.Code != 404 || ended.Load() != 0 {
		t.Errorf("status %d, ended %d", second.Code, ended.Load())
	}
	close(release)
	<-done
	if first.Code != 201 || ended.Load() != 1 {
		t.Errorf("status %d, ended %d", first.Code, ended.Load())
	}
}

func TestSwapUnderLoad(t *testing.T) {
	var s swapHandler
	var open, ended atomic.Int64
	set := func() {
		var over atomic.Bool
		open.Add(1)
		s.set(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if over.Load() {
				t.Error("served after its end")
			}
		}), nil, func() { over.Store(true); ended.Add(1) })
	}
	set()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				serveBy(&s, nil, nil)
			}
		})
	}
	for range 200 {
		set()
	}
	wg.Wait()
	if ended.Load() != open.Load()-1 {
		t.Errorf("%d of %d ended, want all but the last", ended.Load(), open.Load())
	}
}

// serveBy has the handler that is in force serve a request.
func serveBy(s *swapHandler, w http.ResponseWriter, r *http.Request) {
	h := s.enter()
	defer h.leave()
	h.ServeHTTP(w, r)
}
