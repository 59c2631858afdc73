// This file contains a handler that can be replaced while it serves.

package frontend

import (
	"net/http"
	"sync"
	"sync/atomic"
)

// swapHandler serves requests with the handler that was set last. A request is served to its end by the handler
// with which it began.
type swapHandler struct {
	now   atomic.Pointer[servedHandler]
	count atomic.Int64
}

// servedHandler is a handler that counts its running requests.
type servedHandler struct {
	http.Handler
	number  int64 // counts the handlers of a server
	known   Known
	running atomic.Int64
	retired atomic.Bool
	onEnd   func() // called once, when the handler is replaced and has no running request
	once    sync.Once
}

// set replaces the handler. end is called when the new handler has been replaced in turn and its last request has
// ended. It may be nil.
func (s *swapHandler) set(h http.Handler, known Known, end func()) {
	if old := s.now.Swap(&servedHandler{Handler: h, number: s.count.Add(1), known: known, onEnd: end}); old != nil {
		old.retired.Store(true)
		old.endIfUnused()
	}
}

func (s *swapHandler) enter() *servedHandler {
	for {
		h := s.now.Load()
		h.running.Add(1)
		if s.now.Load() == h {
			return h
		}
		h.leave() // the handler was replaced a moment ago and may already have ended
	}
}

func (h *servedHandler) leave() {
	if h.running.Add(-1) == 0 {
		h.endIfUnused()
	}
}

func (h *servedHandler) endIfUnused() {
	if h.retired.Load() && h.running.Load() == 0 && h.onEnd != nil {
		h.once.Do(h.onEnd)
	}
}
