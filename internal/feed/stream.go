// This file sends changes as server-sent events (WHATWG HTML, 9.2).

package feed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// retryMillis is the time after which a subscriber whose stream ended reconnects, in milliseconds.
const retryMillis = 2000

// stream sends events until the subscriber disconnects or its subscription ends.
func (f *Feed) stream(w http.ResponseWriter, r *http.Request, s *Subscription) {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no")
	o := &stream{s: s, w: w, control: http.NewResponseController(w)}
	// The read deadline of the request must not end the stream. An error means that there is no deadline.
	_ = o.control.SetReadDeadline(time.Time{})
	var err error
	defer func() { s.Close(err) }()
	err = o.run(r.Context())
}

// stream is one connection that receives changes.
type stream struct {
	s         *Subscription
	w         http.ResponseWriter
	control   *http.ResponseController
	hasChange bool // whether a change was written since the last flush
}

// run writes the events of the subscription.
func (o *stream) run(ctx context.Context) error {
	for e, err := range o.s.Follow(ctx) {
		if err == nil {
			err = o.send(&e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send writes one event. Changes stay in the buffer until the next EventRead.
func (o *stream) send(e *Event) error {
	var text []byte
	switch e.Kind {
	case EventStart:
		text = fmt.Appendf(nil, "retry: %d\nid: %s\n\n", retryMillis, e.Cursor)
	case EventChange:
		o.hasChange = true
		return o.write(e.view.event)
	case EventRead:
		if !o.hasChange {
			return nil
		}
		return o.flush()
	case EventHeartbeat:
		if text = []byte(":\n\n"); e.Cursor != nil {
			text = fmt.Appendf(nil, "id: %s\n:\n\n", e.Cursor)
		}
	case EventEnd:
		text = fmt.Appendf(nil, ": %s\n\n", EndMessage)
	}
	if err := o.write(text); err != nil {
		return err
	}
	return o.flush()
}

// write sends bytes and disconnects a stalled subscriber.
func (o *stream) write(p []byte) error {
	if deadline, isNew := o.s.ExtendDeadline(); isNew {
		// A writer without deadlines writes to memory and never blocks.
		if err := o.control.SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	_, err := o.w.Write(p)
	return err
}

func (o *stream) flush() error {
	o.hasChange = false
	return o.control.Flush()
}
