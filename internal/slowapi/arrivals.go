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
func (t *twilio) run(perMinute float64, closing <-chan struct{}) {
	every := time.Duration(float64(time.Minute) / perMinute)
	start := t.world.Time()
	come := []*schedule{
		{kind: kinds.Calls, every: every, chain: fake.RngFor(t.world.Seed, kinds.Calls.Tag<<16, start.UnixNano())},
		{kind: kinds.Messages, every: every / 2, chain: fake.RngFor(t.world.Seed, kinds.Messages.Tag<<16, start.UnixNano())},
	}
	for _, c := range come {
		c.next = start
		c.plan()
	}
	for {
		now := t.world.Time()
		rest := pulse
		if err := t.pass(now, come); err != nil {
			t.log.Error("slowapi: arrivals were lost", "err", err)
			rest = pause
		}
		timer := time.NewTimer(max(t.until(now, come), rest))
		select {
		case <-timer.C:
		case <-t.nudge:
			timer.Stop()
		case <-closing:
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
func (t *twilio) pass(now time.Time, come []*schedule) error {
	w := t.world
	w.Writing.Lock()
	defer w.Writing.Unlock()
	e := world.Entry{Op: "pass", At: now, New: map[string]int{}}
	for _, c := range come {
		for !c.next.After(now) && e.New[c.kind.Name] < maxAdvance {
			e.New[c.kind.Name]++
			c.plan()
		}
	}
	if len(e.New) == 0 && w.NextDue() > now.Unix() {
		return nil
	}
	_, err := t.commit(e)
	if !errors.Is(err, world.ErrFull) {
		return err
	}
	t.log.Warn("slowapi: the world is full, nothing arrives any more")
	for _, c := range come {
		c.next = now.AddDate(100, 0, 0)
	}
	return nil
}

// until is how long nothing happens by itself.
func (t *twilio) until(now time.Time, come []*schedule) time.Duration {
	t.world.Mu.RLock()
	next := time.Unix(min(t.world.NextDue(), now.Unix()+3600), 0)
	t.world.Mu.RUnlock()
	for _, c := range come {
		if c.next.Before(next) {
			next = c.next
		}
	}
	return next.Sub(now)
}

// wake tells the running world that its clock was moved.
func (t *twilio) wake() {
	select {
	case t.nudge <- struct{}{}:
	default:
	}
}
