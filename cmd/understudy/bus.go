// Bus: pages that have landed, told to the rooms that want to know at once.

package main

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/kit/dispatch"
)

// landed is told of every page that was saved. Who listens does so at once and
// waits for nothing: feed and walks ring their own bells. What it misses the
// rows in the store tell.
type landed = dispatch.Bus[understudy.Landed]

// openBus makes the bus. It is closed after everything that dispatches.
func (h *house) openBus() {
	h.landed = dispatch.New[understudy.Landed](dispatch.Options{Logger: h.log})
	h.closers = append(h.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), busTime)
		defer cancel()
		return h.landed.Close(ctx)
	})
}

// busTime bounds the wait for what is on its way to listeners.
const busTime = time.Second

// tell dispatches a page that has landed. A listener's fault is its own: it is
// logged, and neither the others nor the save hear of it.
func (h *house) tell(l understudy.Landed) {
	err := h.landed.Dispatch(context.Background(), l)
	var panicked *dispatch.PanicError
	switch {
	case errors.As(err, &panicked):
		h.log.Error("a listener panicked", "panic", panicked.Value, "stack", string(panicked.Stack))
	case err != nil:
		h.log.Error("a listener failed", "err", err)
	}
}
