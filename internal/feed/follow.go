// This file contains Follow, which yields the events that one subscriber may see. Streams, pages, webhooks and the packages below
// wires write these events in their own forms.

package feed

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"os"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// EventKind is what an Event says.
type EventKind int

// The kinds of events.
const (
	EventStart     EventKind = iota // the first event; Cursor is the position at which the subscription begins
	EventChange                     // a change
	EventRead                       // the changes read at once were yielded, so a buffer should be flushed
	EventHeartbeat                  // nothing has happened for a while; Cursor is set if the position has changed
	EventEnd                        // the policy or the grant has ended; Cursor is the position at which to continue
)

// EndMessage is the reason that subscribers receive with EventEnd.
const EndMessage = "the settings changed or the server is stopping; connect again"

// Event is one event of a subscription. Its bytes are shared with other subscribers and must not be changed.
type Event struct {
	Kind   EventKind
	Change *understudy.Change // the change as the subscriber's role sees it; nil for other events
	JSON   []byte             // the change as one line of JSON; nil for other events
	Cursor []byte             // the position after this event

	at      int64         // the number of the last change that was yielded or is hidden from the subscriber
	view    *maskedChange // the shared view of the change; nil for other events
	hasMore bool          // whether more changes may follow an EventRead at once
}

// Encode returns what encode makes of the event. For a change it is called once for all subscribers of a role, whichever wire they
// use, so every caller must pass the same function.
func (e *Event) Encode(encode func(*Event) []byte) []byte {
	if e.view == nil {
		return encode(e)
	}
	if encoded := e.view.encoded.Load(); encoded != nil {
		return *encoded
	}
	encoded := encode(e)
	e.view.encoded.Store(&encoded)
	return encoded
}

// Subscription is a request for changes that passed all checks. One goroutine at a time may use it.
type Subscription struct {
	query  query
	caller understudy.Caller
	policy *policy
	group  *roleGroup
	reader *reader
	feed   *Feed
	start  int64  // the number of the change after which the subscription begins
	leave  func() // gives the subscriber's place back; nil if it takes none

	deadline time.Time // the deadline of the last write; zero before the first one
}

// isOver reports whether the policy was replaced, the feed has ended, or the caller's grant was revoked.
func (s *Subscription) isOver() bool { return s.policy.isOver() || s.caller.Grant.IsRevoked() }

// Subscribe checks the request of a subscriber as GET /-/feed does: its credential, its query and its header Last-Event-ID.
// It records the request in the audit log and takes one of the limited places for subscribers. Its errors wrap ErrInvalid,
// ErrUnauthorized or ErrForbidden if the request is at fault. The caller must Close the subscription.
func (f *Feed) Subscribe(r *http.Request) (*Subscription, error) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	s, err := f.subscribe(ctx, r, false)
	if err == nil {
		err = f.admit(r, s, true)
	}
	return s, err
}

// admit records a subscription in the audit log and, if isWaiting is true, takes a place for it.
func (f *Feed) admit(r *http.Request, s *Subscription, isWaiting bool) error {
	e := understudy.AuditEntry{Action: understudy.ActionList, What: "feed", Source: s.query.source}
	if err := jsonapi.RecordAudit(r.Context(), f.o.Audit, s.caller, e); err != nil {
		return err
	}
	if isWaiting {
		leave, err := f.limiter.Take(s.caller.Name)
		if err != nil {
			return errFull
		}
		s.leave = leave
	}
	f.o.OnSubscribed(s.query.source)
	return nil
}

// Close gives the subscriber's place back. err is why the connection ended, or nil. A write that exceeded its deadline counts the
// subscriber as disconnected, because it read nothing.
func (s *Subscription) Close(err error) {
	if s.leave != nil {
		defer s.leave()
	}
	isLate := err != nil && !s.deadline.IsZero() && !s.feed.o.Now().Before(s.deadline)
	switch {
	case isLate, errors.Is(err, os.ErrDeadlineExceeded):
		s.feed.dropped.Add(1)
	case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		s.feed.o.Logger.Debug("feed: stream", "caller", s.caller.Name, "err", err)
	}
}

// ExtendDeadline returns the deadline of the next write, and whether it differs from that of the write before. A subscriber that has
// not read until then is stalled, and its connection must be closed. Setting a deadline takes as much time as a write. So it lies
// a quarter later than Limits.Stall requires, and is used until less than Limits.Stall is left.
func (s *Subscription) ExtendDeadline() (deadline time.Time, isNew bool) {
	now, stall := s.feed.o.Now(), s.feed.o.Limits.Stall
	if isNew = s.deadline.Sub(now) < stall; isNew {
		s.deadline = now.Add(stall + stall/4)
	}
	return s.deadline, isNew
}

// Follow yields the events of a subscription until ctx ends, the policy is replaced, the grant ends, or the requested number or time
// is reached. After EventEnd and after an error nothing follows. Follow starts no goroutine: changes are read when the
// loop asks for them, so a slow loop keeps nothing in memory.
func (s *Subscription) Follow(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		o := &follower{s: s, position: s.feed.newPosition(s.reader, s.start), passed: s.start, yield: yield}
		ctx, cancel := o.grantContext(ctx)
		defer cancel()
		switch err := o.run(ctx); {
		case errors.Is(err, errPolicyEnded):
			yield(Event{Kind: EventEnd, Cursor: []byte(s.group.cursor(o.passed)), at: o.passed}, nil)
		case err != nil && !errors.Is(err, errEnough):
			if ctx.Err() != nil { // the store's error only says that the context has ended
				err = ctx.Err()
			}
			yield(Event{at: o.passed}, err)
		}
	}
}

// errPolicyEnded ends a subscription after its policy was replaced or its grant was revoked.
var errPolicyEnded = errors.New("feed: the policy is over")

// errEnough ends a subscription whose loop has ended.
var errEnough = errors.New("feed: the loop has ended")

// follower is the state of one loop over the events of a subscription.
type follower struct {
	s        *Subscription
	position *position
	passed   int64 // the number of the last change that was yielded or is hidden
	told     int64 // the position in the last event with a cursor
	sent     int   // the number of changes yielded
	yield    func(Event, error) bool
}

// grantContext returns a context that ends with the grant.
func (o *follower) grantContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if g := o.s.caller.Grant; g != nil && !g.Expires.IsZero() {
		return context.WithTimeout(ctx, g.Expires.Sub(o.s.feed.o.Now()))
	}
	return context.WithCancel(ctx)
}

// pass yields an event. It returns errEnough if the loop has ended.
func (o *follower) pass(e Event) error {
	e.at = o.passed
	if !o.yield(e, nil) {
		return errEnough
	}
	return nil
}

// run yields the position, then changes and heartbeats until the subscription ends.
func (o *follower) run(ctx context.Context) error {
	// The position comes first. If the connection breaks before the first change, the subscriber reconnects at this position.
	if err := o.pass(Event{Kind: EventStart, Cursor: o.cursor()}); err != nil {
		return err
	}
	var end <-chan time.Time
	if o.s.query.wait >= 0 {
		end = time.After(o.s.query.wait)
	}
	beat := time.NewTicker(o.s.feed.o.Limits.Heartbeat)
	defer beat.Stop()
	for {
		moved, err := o.passAll(ctx)
		if err != nil || o.isComplete() {
			return err
		}
		select {
		case <-moved:
		case <-beat.C:
			if err := o.passHeartbeat(); err != nil {
				return err
			}
		case <-end:
			return nil
		case <-o.s.policy.done:
			return errPolicyEnded
		case <-o.s.caller.Grant.Revoked:
			return errPolicyEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *follower) isComplete() bool { return o.s.query.limit > 0 && o.sent >= o.s.query.limit }

// passAll yields all stored changes. moved is closed when there are more changes.
func (o *follower) passAll(ctx context.Context) (moved <-chan struct{}, err error) {
	for {
		if err := o.checkOpen(ctx); err != nil {
			return nil, err
		}
		rows, recent, moved, err := o.position.readNext(ctx)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if o.isComplete() {
				break
			}
			if err := o.checkOpen(ctx); err != nil {
				return nil, err
			}
			view := o.s.group.view(&rows[i], recent)
			o.passed = rows[i].N
			if !view.visible || !o.s.query.matchChange(&view.change) {
				continue
			}
			o.told = view.number
			o.sent++
			if err := o.pass(view.makeEvent()); err != nil {
				return nil, err
			}
		}
		isLast := len(rows) == 0 || o.isComplete()
		if !o.isComplete() {
			o.passed = o.position.at
		}
		if err := o.pass(Event{Kind: EventRead, hasMore: !isLast}); err != nil || isLast {
			return moved, err
		}
	}
}

// makeEvent returns the event of a visible change.
func (v *maskedChange) makeEvent() Event {
	id := v.event[len("id: "):]
	return Event{Kind: EventChange, Change: &v.change, JSON: v.data, Cursor: id[:bytes.IndexByte(id, '\n')], view: v}
}

// checkOpen returns an error if the subscriber must not receive more changes, because its policy or its grant has ended.
func (o *follower) checkOpen(ctx context.Context) error {
	if o.s.isOver() {
		return errPolicyEnded
	}
	return ctx.Err()
}

// passHeartbeat yields a heartbeat. It contains the position if the position has changed. For a role that must not know whether
// hidden changes happened, it always contains the position.
func (o *follower) passHeartbeat() error {
	o.s.feed.o.OnSubscribed(o.s.query.source)
	e := Event{Kind: EventHeartbeat}
	if !o.s.group.seesAll || o.told != o.position.at {
		e.Cursor = o.cursor()
	}
	return o.pass(e)
}

func (o *follower) cursor() []byte {
	o.told = o.position.at
	return []byte(o.s.group.cursor(o.position.at))
}
