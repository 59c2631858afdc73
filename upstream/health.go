// Health and counts: how the source does.

package upstream

import (
	"time"

	"understudy/upstream/throttle"
)

// Health is how a source does, for people.
type Health struct {
	State     string          // ok, down, credential, limited
	Why       string          // the last failure; "" when ok
	Since     time.Time       // when the state began
	NextProbe time.Time       // when upstream is asked again; zero when ok
	Recent    []time.Duration // the last 120 answer times at most, oldest first
}

// Queue is how full the queue is now.
func (c *Client) Queue() throttle.Queue { return c.budget.Stats() }

// SetBudget replaces how many requests a second and at once go out; zero
// values are the defaults. What is under way goes on.
func (c *Client) SetBudget(rate float64, concurrency int) {
	c.budget.SetRate(or(rate, defaultRate), or(concurrency, defaultConcurrency))
}

// SetQueue replaces how many requests may wait for budget; 0 is the default.
func (c *Client) SetQueue(limit int) {
	c.budget.SetQueue(or(limit, defaultQueue))
}

// Stats are the counters now.
func (c *Client) Stats() throttle.Stats { return c.counts.Stats() }

// Health is the state now.
func (c *Client) Health() Health {
	var h Health
	h.State, h.Why, h.Since, h.NextProbe = c.breaker.State()
	h.Recent = c.counts.Recent()
	return h
}
