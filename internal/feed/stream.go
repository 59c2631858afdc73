// This file sends changes as server-sent events (WHATWG HTML, 9.2).

package feed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// endMessage is the last comment in a stream that ends with its policy.
const endMessage = "the settings changed or the server is stopping; connect again"

// retryMillis is the time after which a subscriber whose stream ended reconnects, in milliseconds.
const retryMillis = 2000

// stream sends events until the subscriber disconnects, the policy is replaced, the grant ends, or the requested number
// or time is reached.
func (f *Feed) stream(w http.ResponseWriter, r *http.Request, s *subscription) {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no")
	o := &stream{f: f, w: w, control: http.NewResponseController(w), s: s, position: f.newPosition(s.reader, s.start)}
	// The read deadline of the request must not end the stream. An error means that there is no deadline.
	_ = o.control.SetReadDeadline(time.Time{})
	ctx, cancel := o.grantContext(r.Context())
	defer cancel()
	err := o.run(ctx)
	if errors.Is(err, os.ErrDeadlineExceeded) { // a write has exceeded its deadline
		f.dropped.Add(1)
	} else if err != nil && ctx.Err() == nil {
		f.o.Logger.Debug("feed: stream", "caller", s.caller.Name, "err", err)
	}
}

// stream is one connection that receives changes.
type stream struct {
	f             *Feed
	w             http.ResponseWriter
	control       *http.ResponseController
	s             *subscription
	position      *position
	sentPosition  int64     // the last position that the subscriber received
	sent          int       // the number of changes sent
	writeDeadline time.Time // the deadline of the next write; zero before the first write
	unflushed     int       // the bytes written since the last flush or since the deadline was set
}

// grantContext returns a context that ends with the grant.
func (o *stream) grantContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if g := o.s.caller.Grant; !g.Expires.IsZero() {
		return context.WithTimeout(ctx, g.Expires.Sub(o.f.o.Now()))
	}
	return context.WithCancel(ctx)
}

// run sends the position, then changes and heartbeats until the stream ends.
func (o *stream) run(ctx context.Context) error {
	// The position is sent first. If the connection breaks before the first change, the subscriber reconnects at
	// this position.
	if err := o.write(fmt.Appendf(nil, "retry: %d\nid: %s\n\n", retryMillis, o.cursor())); err != nil {
		return err
	}
	if err := o.flush(); err != nil {
		return err
	}
	beat := time.NewTicker(o.f.o.Limits.Heartbeat)
	defer beat.Stop()
	var end <-chan time.Time
	if o.s.query.wait >= 0 {
		end = time.After(o.s.query.wait)
	}
	for {
		moved, err := o.sendAll(ctx)
		switch {
		case errors.Is(err, errPolicyEnded):
			return o.sendEnd(endMessage)
		case err != nil || o.isComplete():
			return err
		}
		select {
		case <-moved:
		case <-beat.C:
			if err := o.sendHeartbeat(); err != nil {
				return err
			}
		case <-end:
			return nil
		case <-o.s.policy.done:
			return o.sendEnd(endMessage)
		case <-o.s.caller.Grant.Revoked:
			return o.sendEnd(endMessage)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *stream) isComplete() bool { return o.s.query.limit > 0 && o.sent >= o.s.query.limit }

// sendAll sends all stored changes. moved is closed when there are more changes.
func (o *stream) sendAll(ctx context.Context) (moved <-chan struct{}, err error) {
	for {
		if err := o.checkOpen(ctx); err != nil {
			return nil, err
		}
		rows, recent, moved, err := o.position.readNext(ctx)
		if err != nil {
			return nil, err
		}
		before := o.sent
		for i := range rows {
			if o.isComplete() {
				break
			}
			if err := o.checkOpen(ctx); err != nil {
				return nil, err
			}
			sight := o.s.group.view(&rows[i], recent)
			if !sight.visible || !o.s.query.matchChange(&sight.change) {
				continue
			}
			if err := o.write(sight.event); err != nil {
				return nil, err
			}
			o.sentPosition = sight.number
			o.sent++
		}
		if o.sent > before {
			if err := o.flush(); err != nil {
				return nil, err
			}
		}
		if len(rows) == 0 || o.isComplete() {
			return moved, nil
		}
	}
}

// errPolicyEnded ends a stream after its policy was replaced.
var errPolicyEnded = errors.New("feed: the policy is over")

// checkOpen returns an error if the subscriber must not receive more changes, because its policy or its grant has ended.
func (o *stream) checkOpen(ctx context.Context) error {
	if o.s.isOver() {
		return errPolicyEnded
	}
	return ctx.Err()
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
	o.unflushed = 0
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

// sendHeartbeat sends a heartbeat. It contains the position if the position has changed. For a role that must not
// know whether hidden changes happened, it always contains the position.
func (o *stream) sendHeartbeat() error {
	o.f.o.OnSubscribed(o.s.query.source)
	text := []byte(":\n\n")
	if !o.s.group.seesAll || o.sentPosition != o.position.at {
		text = fmt.Appendf(nil, "id: %s\n:\n\n", o.cursor())
	}
	if err := o.write(text); err != nil {
		return err
	}
	return o.flush()
}

func (o *stream) cursor() string {
	o.sentPosition = o.position.at
	return o.s.group.cursor(o.position.at)
}

// sendEnd sends a comment that says why the stream ends.
func (o *stream) sendEnd(why string) error {
	if err := o.write(fmt.Appendf(nil, ": %s\n\n", why)); err != nil {
		return err
	}
	return o.flush()
}
