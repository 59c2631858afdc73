// Swap: a handler that may be replaced while it serves.

package frontend

import (
	"net/http"
	"sync"
	"sync/atomic"
)

// swapHandler serves by whichever handler was set last. A request ends with the one
// it began with.
type swapHandler struct{ now atomic.Pointer[served] }

// served is a handler with the requests it is at work on.
type served struct {
	http.Handler
	known   Known
	running atomic.Int64
	retired atomic.Bool
	end     func() // called once, when it is retired and at rest
	once    sync.Once
}

// set replaces the handler. Once the last request of this one has ended, after
// it is replaced, end is called; nil: nothing is.
func (s *swapHandler) set(h http.Handler, known Known, end func()) {
	if old := s.now.Swap(&served{Handler: h, known: known, end: end}); old != nil {
		old.retired.Store(true)
		old.rest()
	}
}

func (s *swapHandler) enter() *served {
	for {
		h := s.now.Load()
		h.running.Add(1)
		if s.now.Load() == h {
			return h
		}
		h.leave() // replaced just now; it may have been at rest already
	}
}

func (h *served) leave() {
	if h.running.Add(-1) == 0 {
		h.rest()
	}
}

func (h *served) rest() {
	if h.retired.Load() && h.running.Load() == 0 && h.end != nil {
		h.once.Do(h.end)
	}
}
