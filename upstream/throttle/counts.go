// Counts: what was sent, and what the answers took.

package throttle

import (
	"sync"
	"time"

	"understudy/request"
)

// Stats are a client's counters since New; they only rise.
type Stats struct {
	Requests int64 // tries sent, answered or not
	Errors   int64 // those of them that failed; a caller that left is none
	TooLarge int64 // those of them whose body was larger than MaxBody
	ByReason [request.Reasons]int64
	Retries  [request.Reasons]int64 // tries after the first of a fetch, also in ByReason
	Hedges   [request.Reasons]int64 // sent beside one that was late, also in ByReason
}

// Counts counts tries and keeps the last answer times. Its zero value works.
type Counts struct {
	mu    sync.Mutex
	stats Stats
	took  [120]time.Duration
	n     int // answers ever
}

// Stats are the counters now.
func (c *Counts) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Sent counts a request.
func (c *Counts) Sent(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Requests++
	c.stats.ByReason[r]++
}

// Retried counts a try after the first of a fetch.
func (c *Counts) Retried(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Retries[r]++
}

// Hedged counts a request beside one that was late.
func (c *Counts) Hedged(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Hedges[r]++
}

// Failed counts a try that failed.
func (c *Counts) Failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
}

// TooLarge counts a body above the limit.
func (c *Counts) TooLarge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.TooLarge++
}

// Answered notes how long an answer took.
func (c *Counts) Answered(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[c.n%len(c.took)] = took
	c.n++
}

// Recent are the last answer times, oldest first.
func (c *Counts) Recent() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := min(c.n, len(c.took))
	out := make([]time.Duration, 0, kept)
	for i := c.n - kept; i < c.n; i++ {
		out = append(out, c.took[i%len(c.took)])
	}
	return out
}
