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
	o := &stream{f: f, w: w, control: http.NewResponseController(w)}
	// The read deadline of the request must not end the stream. An error means that there is no deadline.
	_ = o.control.SetReadDeadline(time.Time{})
	var err error
	defer func() { s.Close(err) }()
	err = o.run(r.Context(), s)
}

// stream is one connection that receives changes.
type stream struct {
	f             *Feed
	w             http.ResponseWriter
	control       *http.ResponseController
	writeDeadline time.Time // the deadline of the next write; zero before the first write
	unflushed     int       // the bytes written since the last flush or since the deadline was set
	hasChange     bool      // whether a change was written since the last flush
}

// run writes the events of a subscription.
func (o *stream) run(ctx context.Context, s *Subscription) error {
	for e, err := range s.Follow(ctx) {
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

// maxUnflushed is the maximum number of bytes that are written under one deadline. A subscriber that reads less in
// that time is stalled.
const maxUnflushed = 32 << 10

// write sends bytes and disconnects a stalled subscriber. Setting a deadline takes as much time as a write, so a
// deadline with enough time left is reused.
func (o *stream) write(p []byte) error {
	now := o.f.o.Now()
	if o.unflushed > maxUnflushed || o.writeDeadline.Sub(now) < o.f.o.Limits.Stall {
		o.unflushed = 0
		if err := o.setDeadline(now); err != nil {
			return err
		}
	}
	o.unflushed += len(p)
	_, err := o.w.Write(p)
	return err
}

func (o *stream) flush() error {
	o.unflushed, o.hasChange = 0, false
	return o.control.Flush()
}

// setDeadline sets a write deadline a quarter later than Limits.Stall requires, so that several writes can use it.
func (o *stream) setDeadline(now time.Time) error {
	stall := o.f.o.Limits.Stall
	o.writeDeadline = now.Add(stall + stall/4)
	err := o.control.SetWriteDeadline(o.writeDeadline)
	if errors.Is(err, http.ErrNotSupported) {
		return nil // this writer has no deadline, because it writes to memory and never blocks
	}
	return err
}
