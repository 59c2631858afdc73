// Health and counts: how the source does.

package upstream

import (
	"sync"
	"time"

	"understudy"
)

// Stats are a client's counters since New; they only rise.
type Stats struct {
	Requests int64 // tries sent, answered or not
	Errors   int64 // those of them that failed; a caller that left is none
	ByReason [understudy.Reasons]int64
}

// Health is how a source does, for people.
type Health struct {
	State     string          // ok, down, credential, limited
	Why       string          // the last failure; "" when ok
	Since     time.Time       // when the state began
	NextProbe time.Time       // when upstream is asked again; zero when ok
	Recent    []time.Duration // the last 120 answer times at most, oldest first
}

// Stats are the counters now.
func (c *Client) Stats() Stats {
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	return c.counts.stats
}

// Health is the state now.
func (c *Client) Health() Health {
	var h Health
	h.State, h.Why, h.Since, h.NextProbe = c.gate.state()
	h.Recent = c.counts.recent()
	return h
}

// counts counts tries and keeps the last answer times. Its zero value works.
type counts struct {
	mu    sync.Mutex
	stats Stats
	took  [120]time.Duration
	n     int // answers ever
}

func (c *counts) sent(r understudy.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Requests++
	c.stats.ByReason[r]++
}

func (c *counts) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
}

func (c *counts) answered(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[c.n%len(c.took)] = took
	c.n++
}

func (c *counts) recent() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := min(c.n, len(c.took))
	out := make([]time.Duration, 0, kept)
	for i := c.n - kept; i < c.n; i++ {
		out = append(out, c.took[i%len(c.took)])
	}
	return out
}
