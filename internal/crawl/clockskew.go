// Clock skew: what was walked at times that lie in the future, since the clock was
// set back.

package crawl

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	ahead = 5 // seconds a time may lie in the future
	// longAgo is when something was walked of which the time is not known: it
	// counts for nothing but that it was.
	longAgo = 1
)

// ahead reports whether anything is said to have happened in the future.
func (m *kindState) inFuture(now int64) bool {
	return m.latest() > now+ahead
}

// latest is the last time at which anything is said to have happened.
func (m *kindState) latest() int64 {
	at := max(m.Rest, m.CaughtUp, m.Behind, m.Newest, m.Lost)
	for _, s := range m.Spans {
		at = max(at, s.At)
	}
	return at
}

// rewind is for a clock that was set back, it is unknown how far: by as much
// at least as something lies in the future. What does happened at some time
// before now, and all else as much longer ago.
func (m *kindState) rewind(now int64) {
	by := m.latest() - now
	earlier := func(at int64) int64 {
		switch {
		case at == 0:
			return 0
		case at > now:
			return longAgo
		}
		return max(at-by, longAgo)
	}
	m.Rest, m.CaughtUp = earlier(m.Rest), earlier(m.CaughtUp)
	m.Behind, m.Newest, m.Lost = min(m.Behind, now), min(m.Newest, now), min(m.Lost, now)
	m.Spans = slices.Clone(m.Spans)
	for i := range m.Spans {
		m.Spans[i].At = earlier(m.Spans[i].At)
	}
}

// shift makes all that is said to have happened have happened earlier.
func (m *kindState) shift(by int64) {
	m.Spans = slices.Clone(m.Spans)
	times := []*int64{&m.Rest, &m.CaughtUp, &m.Behind, &m.Newest, &m.Lost}
	for i := range m.Spans {
		times = append(times, &m.Spans[i].At)
	}
	for _, at := range times {
		if *at != 0 {
			*at = max(*at-by, longAgo)
		}
	}
}

// clockReading is what two clocks said at one moment.
type clockReading struct {
	now     time.Time
	elapsed time.Duration
}

// clockSteps looks for a clock that was set back.
type clockSteps struct {
	states  *states
	bounds  *bounds
	elapsed func() time.Duration // nil: no other clock is there
	log     *slog.Logger

	mu   sync.Mutex
	last clockReading
}

// check sees to it that what is known of walks is no younger than it is after the
// clock was set back while the process runs. The other clock tells by how much.
func (c *clockSteps) check(ctx context.Context, walks iter.Seq[*kindCrawl]) error {
	if c.elapsed == nil {
		return nil
	}
	now := clockReading{c.bounds.now(), c.elapsed()}
	c.mu.Lock()
	last := c.last
	c.last = now
	c.mu.Unlock()
	if last.now.IsZero() {
		return nil
	}
	back := now.elapsed - last.elapsed - time.Duration(now.now.UnixNano()-last.now.UnixNano())
	if back < time.Second {
		return nil
	}
	c.log.Warn("walk: the clock was set back", "by", back.Round(time.Second))
	by := int64((back + time.Second - 1) / time.Second)
	var errs []error
	for x := range walks {
		m, err := c.states.read(ctx, x)
		if err == nil && m.latest() != 0 {
			err = c.states.change(ctx, x, func(m *kindState) { m.shift(by) })
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		c.mu.Lock()
		c.last = last // then once more: older than it is does no harm
		c.mu.Unlock()
		return err
	}
	return nil
}

// checkClock reads what is known of a kind, and sees to it that a kind is walked again, and its newest page
// looked at, when the clock was set back: until it has come up to where it was nothing
// would.
func (s *states) checkClock(ctx context.Context, x *kindCrawl) (kindState, error) {
	m, err := s.read(ctx, x)
	now := s.bounds.clock()
	if err != nil || !m.inFuture(now) {
		return m, err
	}
	s.log.Warn("walk: the clock was set back; all is walked again", "source", x.plan.source.Name, "kind", x.plan.kind.Name)
	err = s.change(ctx, x, func(to *kindState) {
		to.rewind(now)
		m = *to
	})
	return m, err
}
