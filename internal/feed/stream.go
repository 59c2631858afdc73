// Stream: changes as server-sent events (WHATWG HTML, 9.2).

package feed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// whyOver is what a stream says that ends with the policy it began under.
const whyOver = "the settings changed or the server ends; come back"

// retry is when a subscriber whose stream ended comes back, in milliseconds.
const retry = 2000

// stream sends events until the subscriber leaves, the policy changes, its
// grant ends, or as many or as long as it asked for.
func (f *Feed) stream(w http.ResponseWriter, r *http.Request, s *subscription) {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no")
	o := &stream{f: f, w: w, control: http.NewResponseController(w), s: s, place: f.positionAt(s.reader, s.start)}
	// The time a request may take to come is over, and must not end the stream.
	_ = o.control.SetReadDeadline(time.Time{}) // without a deadline nothing has to be reset
	ctx, cancel := o.bounds(r.Context())
	defer cancel()
	err := o.run(ctx)
	if errors.Is(err, os.ErrDeadlineExceeded) { // of a write
		f.stalled.Add(1)
	} else if err != nil && ctx.Err() == nil {
		f.o.Logger.Debug("feed: stream", "caller", s.caller.Name, "err", err)
	}
}

// stream is one connection that is sent changes as they come.
type stream struct {
	f       *Feed
	w       http.ResponseWriter
	control *http.ResponseController
	s       *subscription
	place   *position
	told    int64 // the position that the subscriber got last
	sent    int
	until   time.Time // the deadline of writes; zero: they have none yet
	owed    int       // bytes written under it that were not flushed
}

// bounds end with the grant.
func (o *stream) bounds(ctx context.Context) (context.Context, context.CancelFunc) {
	if g := o.s.caller.Grant; !g.Expires.IsZero() {
		return context.WithTimeout(ctx, g.Expires.Sub(o.f.o.Now()))
	}
	return context.WithCancel(ctx)
}

func (o *stream) run(ctx context.Context) error {
	// The position goes first, so that a subscriber whose connection breaks before the
	// first change comes back to it.
	if err := o.write(fmt.Appendf(nil, "retry: %d\nid: %s\n\n", retry, o.cursor())); err != nil {
		return err
	}
	if err := o.flush(); err != nil {
		return err
	}
	beat := time.NewTicker(o.f.o.Limits.Heartbeat)
	defer beat.Stop()
	var end <-chan time.Time
	if o.s.query.wait >= 0 {
		timer := time.NewTimer(o.s.query.wait)
		defer timer.Stop()
		end = timer.C
	}
	for {
		moved, err := o.drain(ctx)
		switch {
		case errors.Is(err, errOver):
			return o.last(whyOver)
		case err != nil || o.full():
			return err
		}
		select {
		case <-moved:
		case <-beat.C:
			if err := o.beat(); err != nil {
				return err
			}
		case <-end:
			return nil
		case <-o.s.policy.over:
			return o.last(whyOver)
		case <-o.s.caller.Grant.Revoked:
			return o.last(whyOver)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *stream) full() bool { return o.s.query.limit > 0 && o.sent >= o.s.query.limit }

// drain sends everything there is; moved is closed when there is more.
func (o *stream) drain(ctx context.Context) (moved <-chan struct{}, err error) {
	for {
		if err := o.may(ctx); err != nil {
			return nil, err
		}
		rows, recent, moved, err := o.place.next(ctx)
		if err != nil {
			return nil, err
		}
		before := o.sent
		for i := range rows {
			if o.full() {
				break
			}
			if err := o.may(ctx); err != nil {
				return nil, err
			}
			sight := o.s.group.view(&rows[i], recent)
			if !sight.shown || !o.s.query.wants(&sight.seen) {
				continue
			}
			if err := o.write(sight.event); err != nil {
				return nil, err
			}
			o.told = sight.n
			o.sent++
		}
		if o.sent > before {
			if err := o.flush(); err != nil {
				return nil, err
			}
		}
		if len(rows) == 0 || o.full() {
			return moved, nil
		}
	}
}

// errOver: another policy is in force.
var errOver = errors.New("feed: the policy is over")

// may reports whether the subscriber may get more changes: none under a policy that has
// ended, and none after its grant has ended.
func (o *stream) may(ctx context.Context) error {
	if o.s.isOver() {
		return errOver
	}
	return ctx.Err()
}

// maxOwed is how much is written under one deadline, in bytes. A subscriber that takes
// less in that time takes next to nothing.
const maxOwed = 32 << 10

// write sends bytes. A subscriber that takes nothing for long is dropped. Setting a
// deadline costs as much as all else before the write itself, so a deadline with enough
// time left stays.
func (o *stream) write(p []byte) error {
	now := o.f.o.Now()
	if o.owed > maxOwed || o.until.Sub(now) < o.f.o.Limits.Stall {
		o.owed = 0
		if err := o.deadline(now); err != nil {
			return err
		}
	}
	o.owed += len(p)
	_, err := o.w.Write(p)
	return err
}

func (o *stream) flush() error {
	o.owed = 0
	return o.control.Flush()
}

// deadline leaves a quarter more than the time that has to be left.
func (o *stream) deadline(now time.Time) error {
	stall := o.f.o.Limits.Stall
	o.until = now.Add(stall + stall/4)
	err := o.control.SetWriteDeadline(o.until)
	if errors.Is(err, http.ErrNotSupported) {
		return nil // a writer in memory does not stall
	}
	return err
}

// beat sends a heartbeat with the position: always to a role that must not know whether
// something hidden happened, and to others when it moved.
func (o *stream) beat() error {
	o.f.o.Seen(o.s.query.source)
	text := []byte(":\n\n")
	if !o.s.group.whole || o.told != o.place.at {
		text = fmt.Appendf(nil, "id: %s\n:\n\n", o.cursor())
	}
	if err := o.write(text); err != nil {
		return err
	}
	return o.flush()
}

func (o *stream) cursor() string {
	o.told = o.place.at
	return o.s.group.cursor(o.place.at)
}

// last says why the stream ends.
func (o *stream) last(why string) error {
	if err := o.write(fmt.Appendf(nil, ": %s\n\n", why)); err != nil {
		return err
	}
	return o.flush()
}
