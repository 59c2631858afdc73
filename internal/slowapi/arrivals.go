// Arrivals: with them the world goes on by itself, in real time.
package slowapi

import (
	"errors"
	"math"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

const (
	pulse = 50 * time.Millisecond // the shortest time between two steps of the world
	pause = 10 * time.Second      // the same after one that could not be kept
)

// schedule tells when records of a kind come.
type schedule struct {
	kind  *world.Kind
	every time.Duration // on average
	next  time.Time     // in the world's time
	chain fake.Rng
}

// run lets the world go on until the server closes: it creates what arrives and
// moves on what is due.
func (s *Server) run(perMinute float64) {
	every := time.Duration(float64(time.Minute) / perMinute)
	start := s.worldNow()
	come := []*schedule{
		{kind: kinds.Calls, every: every, chain: fake.RngFor(s.world.Seed, kinds.Calls.Tag<<16, start.UnixNano())},
		{kind: kinds.Messages, every: every / 2, chain: fake.RngFor(s.world.Seed, kinds.Messages.Tag<<16, start.UnixNano())},
	}
	for _, c := range come {
		c.next = start
		c.plan()
	}
	for {
		now := s.worldNow()
		rest := pulse
		if err := s.pass(now, come); err != nil {
			s.log.Error("slowapi: arrivals were lost", "err", err)
			rest = pause
		}
		timer := time.NewTimer(max(s.until(now, come), rest))
		select {
		case <-timer.C:
		case <-s.nudge:
			timer.Stop()
		case <-s.closing:
			timer.Stop()
			return
		}
	}
}

// plan draws when the next one comes: often soon, seldom late, as people call.
func (c *schedule) plan() {
	chance := float64(c.chain.Next()>>11) / (1 << 53)
	c.next = c.next.Add(time.Duration(-math.Log(1-chance) * float64(c.every)))
}

// pass lets what happened by now become true.
func (s *Server) pass(now time.Time, come []*schedule) error {
	w := s.world
	w.Writing.Lock()
	defer w.Writing.Unlock()
	e := world.Entry{Op: "pass", At: now, New: map[string]int{}}
	for _, c := range come {
		for !c.next.After(now) && e.New[c.kind.Name] < maxAdvance {
			e.New[c.kind.Name]++
			c.plan()
		}
	}
	w.Mu.RLock()
	due := w.NextDue()
	w.Mu.RUnlock()
	if len(e.New) == 0 && due > now.Unix() {
		return nil
	}
	_, err := s.commit(e)
	if !errors.Is(err, world.ErrFull) {
		return err
	}
	s.log.Warn("slowapi: the world is full, nothing arrives any more")
	for _, c := range come {
		c.next = now.AddDate(100, 0, 0)
	}
	return nil
}

// until is how long nothing happens by itself.
func (s *Server) until(now time.Time, come []*schedule) time.Duration {
	s.world.Mu.RLock()
	next := time.Unix(min(s.world.NextDue(), now.Unix()+3600), 0)
	s.world.Mu.RUnlock()
	for _, c := range come {
		if c.next.Before(next) {
			next = c.next
		}
	}
	return next.Sub(now)
}

// worldNow is the world's time.
func (s *Server) worldNow() time.Time {
	s.world.Mu.RLock()
	defer s.world.Mu.RUnlock()
	return s.world.Now()
}

// wake tells the running world that its clock was moved.
func (s *Server) wake() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}
