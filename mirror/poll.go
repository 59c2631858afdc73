// Poll: the newest page of a polled list is refilled before it is past fresh.

package mirror

import (
	"errors"
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
	case f.generation < p.kind.generation.Load():
		return nil // a write came meanwhile, and a nudge with it
	}
	p.landed(f.page, true)
	return nil
}

// pollIn is how long until the page is due.
func (m *Mirror) pollIn(p *poll, fails int, tried time.Time, jitter float64) time.Duration {
	now := m.now()
	if m.saving.trouble() != "" && !tried.IsZero() {
		return tried.Add(pause).Sub(now)
	}
	if fails > 0 {
		return tried.Add(min(time.Second<<min(fails-1, 10), maxRetry)).Sub(now)
	}
	at := p.caughtUp()
	if at.IsZero() {
		return 0
	}
	age, sane := m.ages.age(now, at)
	if !sane {
		return 0
	}
	every := time.Duration(float64(m.ages.Newest) * 0.75 * jitter)
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
