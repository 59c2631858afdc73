// Poll: the newest page of a polled list is refilled before it is past fresh.

package mirror

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"understudy"
)

const (
	idleAfter = 5 * time.Minute // without a reader of the source
	idleRate  = 10              // how much rarer polls are then
	pause     = time.Minute     // between tries while nothing can be saved
	maxRetry  = 30 * time.Second
)

// poll is one list's newest page, kept warm.
type poll struct {
	target *understudy.Target
	source *source
	kind   *kind
	wake   chan struct{} // what is held became old at once
	gone   chan struct{} // closed when it is no longer polled

	newest atomic.Pointer[time.Time] // when upstream gave what is held
}

// landed notes that a newest page is held; who brought it does not matter.
func (p *poll) landed(page *understudy.Page, current bool) {
	if current && page.Status < 400 {
		p.newest.Store(&page.At)
	}
}

func (p *poll) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// caughtUp is when upstream last showed the newest page; zero: never.
func (p *poll) caughtUp() time.Time {
	if at := p.newest.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// keepWarm refills until the mirror closes. The page comes due when three
// quarters of its fresh time are over, give or take a little so that sources
// do not keep step; the rest is room for a slow answer and for one that fails.
func (m *Mirror) keepWarm(p *poll) {
	m.recall(p)
	fails, tried := 0, time.Time{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		jitter := 0.95 + rand.Float64()/10
		timer.Reset(m.pollIn(p, fails, tried, jitter))
		select {
		case <-m.ctx.Done():
			return
		case <-p.gone:
			return
		case <-timer.C:
		case <-p.wake:
			if fails == 0 && m.saving.trouble() == "" && m.isSuperseded(p) {
				m.land(p, &fails, &tried)
			}
			continue
		}
		if m.pollIn(p, fails, tried, jitter) <= 0 {
			m.land(p, &fails, &tried)
		}
	}
}

// startPolls begins to keep warm what is polled.
func (m *Mirror) startPolls() {
	m.flights.Lock()
	defer m.flights.Unlock()
	m.flights.polling = true
	for _, s := range m.sources {
		for _, p := range s.polls() {
			m.startPoll(p)
		}
	}
}

// startPoll begins one; the flights' lock is held, so that whoever closes the
// mirror waits for it.
func (m *Mirror) startPoll(p *poll) {
	if !m.closed.Load() {
		m.work.Go(func() { m.keepWarm(p) })
	}
}

// SetPolls replaces the kinds of a source whose newest page is kept warm.
// Those that stay are not disturbed. Errors: a source the mirror does not
// have, a kind that cannot be polled; nothing is changed then.
func (m *Mirror) SetPolls(source string, kinds []string) error {
	s := m.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: polls: no source %q", source)
	}
	polls, err := s.pollsOf(kinds)
	if err != nil {
		return err
	}
	m.flights.Lock()
	defer m.flights.Unlock()
	before := s.polls()
	for key, p := range before {
		if polls[key] != nil {
			polls[key] = p
		} else {
			close(p.gone)
		}
	}
	s.polling.Store(&polls)
	if !m.flights.polling {
		return nil // Run starts them
	}
	for key, p := range polls {
		if before[key] == nil {
			m.startPoll(p)
		}
	}
	return nil
}

// recall looks what the store holds, so that a restart asks for nothing that
// is fresh.
func (m *Mirror) recall(p *poll) {
	now := m.now()
	h, ok, err := m.find(m.ctx, p.target, p.kind, now)
	if err == nil && ok && h.state == current {
		p.landed(h.page, true)
	}
}

// land refills once and counts failures.
func (m *Mirror) land(p *poll, fails *int, tried *time.Time) {
	*tried = m.now()
	if err := m.refill(p); err != nil {
		*fails++
		return
	}
	*fails = 0
}

var errRefused = errors.New("mirror: upstream refuses the polled page")

// refill waits for a flight to the polled page, whoever began it.
func (m *Mirror) refill(p *poll) error {
	f, _, err := m.join(p.target, p.source, p.kind, errand{reason: understudy.Poll, direct: true})
	if err != nil {
		return err
	}
	defer m.leave(f, true)
	select {
	case <-f.done:
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
	switch {
	case f.err != nil:
		return f.err
	case f.page.Status >= 400:
		return errRefused
	case f.overtaken():
		return nil // a write or a purge came meanwhile, and a nudge with it
	}
	p.landed(f.page, true)
	return nil
}

// pollIn is how long until the page is due.
func (m *Mirror) pollIn(p *poll, fails int, tried time.Time, jitter float64) time.Duration {
	now := m.now()
	if m.saving.trouble() != "" && !tried.IsZero() {
		return remaining(now, tried.Add(pause), pause)
	}
	if fails > 0 {
		// Wide apart, so that what failed together does not come back together.
		wait := time.Duration(float64(min(time.Second<<min(fails-1, 10), maxRetry)) * (1 + 5*(jitter-1)))
		return remaining(now, tried.Add(wait), wait)
	}
	at := p.caughtUp()
	if at.IsZero() {
		return 0
	}
	age, sane := m.ages().age(now, at)
	if !sane {
		return 0
	}
	every := time.Duration(float64(m.ages().Newest) * 0.75 * jitter)
	if m.idle(p.source, now) {
		// Looked at as often as ever, so that a reader who comes back is noticed.
		return min(every*idleRate-age, every)
	}
	return every - age
}

// idle reports whether nobody has read of the source for a while.
func (m *Mirror) idle(s *source, now time.Time) bool {
	since := time.Duration(m.word(now) - s.lastRead.Load())
	return since >= idleAfter
}
