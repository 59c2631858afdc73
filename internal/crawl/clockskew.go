// This file repairs the times of walks that lie in the future because the system clock was set back.

package crawl

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"understudy/kit/lockwatch"
)

const (
	maxAhead = 5 // how many seconds a stored time may lie in the future before it counts as wrong
	// unknownPast is the time of a walk whose real time is unknown. It says only that the walk took place.
	unknownPast = 1
)

// isInFuture reports whether a time of the state lies in the future.
func (m *kindState) isInFuture(now int64) bool {
	return m.latestTime() > now+maxAhead
}

func (m *kindState) latestTime() int64 {
	at := max(m.ListsWalkedAt, m.CaughtUp, m.GapAt, m.Newest, m.LostAt)
	for _, s := range m.Spans {
		at = max(at, s.At)
	}
	return at
}

// resetTimes corrects the state after the system clock was set back by an unknown amount. It assumes the smallest
// possible amount, so that the latest time becomes now. All earlier times are moved back equally.
func (m *kindState) resetTimes(now int64) {
	by := m.latestTime() - now
	earlier := func(at int64) int64 {
		switch {
		case at == 0:
			return 0
		case at > now:
			return unknownPast
		}
		return max(at-by, unknownPast)
	}
	m.ListsWalkedAt, m.CaughtUp = earlier(m.ListsWalkedAt), earlier(m.CaughtUp)
	m.GapAt, m.Newest, m.LostAt = min(m.GapAt, now), min(m.Newest, now), min(m.LostAt, now)
	m.Spans = slices.Clone(m.Spans)
	for i := range m.Spans {
		m.Spans[i].At = earlier(m.Spans[i].At)
	}
}

// moveBack moves all times of the state back.
func (m *kindState) moveBack(by int64) {
	m.Spans = slices.Clone(m.Spans)
	times := []*int64{&m.ListsWalkedAt, &m.CaughtUp, &m.GapAt, &m.Newest, &m.LostAt}
	for i := range m.Spans {
		times = append(times, &m.Spans[i].At)
	}
	for _, at := range times {
		if *at != 0 {
			*at = max(*at-by, unknownPast)
		}
	}
}

// clockReading is the time of the system clock and of the monotonic clock at one moment.
type clockReading struct {
	now     time.Time
	elapsed time.Duration
}

// clockSteps detects that the system clock was set back.
type clockSteps struct {
	states  *states
	bounds  *bounds
	elapsed func() time.Duration // the monotonic clock; nil if there is none
	log     *slog.Logger

	mu   lockwatch.Mutex
	last clockReading
}

// check corrects the states of all walks if the clock was set back while the process runs. The monotonic
// clock shows by how much.
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
		if err == nil && m.latestTime() != 0 {
			err = c.states.change(ctx, x, func(m *kindState) { m.moveBack(by) })
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		c.mu.Lock()
		c.last = last // the next call corrects all states again; moving times back twice does no harm
		c.mu.Unlock()
		return err
	}
	return nil
}

// checkClock reads the state of a kind. If the system clock was set back, it corrects the state, so that the kind and
// its newest page are walked again. Otherwise nothing would be walked until the clock reaches the old time again.
func (s *states) checkClock(ctx context.Context, x *kindCrawl) (kindState, error) {
	m, err := s.read(ctx, x)
	now := s.bounds.unixNow()
	if err != nil || !m.isInFuture(now) {
		return m, err
	}
	s.log.Warn("walk: the clock was set back; everything is read again", "source", x.plan.source.Name, "kind", x.plan.kind.Name)
	err = s.change(ctx, x, func(to *kindState) {
		to.resetTimes(now)
		m = *to
	})
	return m, err
}
