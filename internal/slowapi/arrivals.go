// Arrivals: a goroutine that creates records and changes their statuses in real time.
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
	minStep    = 50 * time.Millisecond // the shortest time between two changes of the simulated records
	errorPause = 10 * time.Second      // the pause after a change that could not be written to the journal
)

// schedule says when the next record of a kind is created.
type schedule struct {
	kind   *world.Kind
	every  time.Duration // the average time between two new records
	next   time.Time     // when the next record is created, by the clock of the simulated world
	random fake.Rng
}

// run creates records and moves records to their next status when that is due. It returns when the server closes.
func (t *twilio) run(perMinute float64, closing <-chan struct{}) {
	every := time.Duration(float64(time.Minute) / perMinute)
	start := t.world.Time()
	schedules := []*schedule{
		{kind: kinds.Calls, every: every, random: fake.RngFor(t.world.Seed, kinds.Calls.Tag<<16, start.UnixNano())},
		{kind: kinds.Messages, every: every / 2, random: fake.RngFor(t.world.Seed, kinds.Messages.Tag<<16, start.UnixNano())},
	}
	for _, c := range schedules {
		c.next = start
		c.plan()
	}
	for {
		now := t.world.Time()
		rest := minStep
		if err := t.pass(now, schedules); err != nil {
			t.log.Error("slowapi: arrivals were lost", "err", err)
			rest = errorPause
		}
		select {
		case <-time.After(max(t.timeToNextEvent(now, schedules), rest)):
		case <-t.clockMoved:
		case <-closing:
			return
		}
	}
}

// plan chooses the time of the next record. The time between two records is exponentially distributed, like the time
// between calls of people who do not know each other.
func (c *schedule) plan() {
	chance := float64(c.random.Next()>>11) / (1 << 53)
	c.next = c.next.Add(time.Duration(-math.Log(1-chance) * float64(c.every)))
}

// pass creates the records and makes the status changes that are due at the time now.
func (t *twilio) pass(now time.Time, schedules []*schedule) error {
	w := t.world
	w.Writing.Lock()
	defer w.Writing.Unlock()
	e := world.Entry{Op: "pass", At: now, Created: map[string]int{}}
	for _, c := range schedules {
		for !c.next.After(now) && e.Created[c.kind.Name] < maxAdvance {
			e.Created[c.kind.Name]++
			c.plan()
		}
	}
	if len(e.Created) == 0 && w.NextDue() > now.Unix() {
		return nil
	}
	_, err := t.applyEntry(e)
	if !errors.Is(err, world.ErrFull) {
		return err
	}
	t.log.Warn("slowapi: the world is full, nothing arrives any more")
	for _, c := range schedules {
		c.next = now.AddDate(100, 0, 0)
	}
	return nil
}

// timeToNextEvent returns the time until the next record or status change is due. It returns at most an hour.
func (t *twilio) timeToNextEvent(now time.Time, schedules []*schedule) time.Duration {
	t.world.Mu.RLock()
	next := time.Unix(min(t.world.NextDue(), now.Unix()+3600), 0)
	t.world.Mu.RUnlock()
	for _, c := range schedules {
		if c.next.Before(next) {
			next = c.next
		}
	}
	return next.Sub(now)
}
