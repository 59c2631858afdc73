// Health and counts: how the source does.

package upstream

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"understudy"
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

// Health is how a source does, for people.
type Health struct {
	State     string          // ok, down, credential, limited
	Why       string          // the last failure; "" when ok
	Since     time.Time       // when the state began
	NextProbe time.Time       // when upstream is asked again; zero when ok
	Recent    []time.Duration // the last 120 answer times at most, oldest first
}

// Queue is how full the queue for a source's budget is.
type Queue struct {
	Limit   int           // errands at once
	Now     int           // errands
	Refused int64         // turned away since New: no place, or one that would come too late
	Oldest  time.Duration // how long the one who waits longest has waited
	Longest time.Duration // the longest any errand somebody waited for has, since New
}

// Queue is how full the queue is now.
func (c *Client) Queue() Queue { return c.budget.stats() }

// SetBudget replaces how many requests a second and at once go out; zero
// values are the defaults. What is under way goes on.
func (c *Client) SetBudget(rate float64, concurrency int) {
	c.budget.set(or(rate, defaultRate), or(concurrency, defaultConcurrency))
}

// SetQueue replaces how many requests may wait for budget; 0 is the default.
func (c *Client) SetQueue(limit int) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.budget.queues.limit = or(limit, defaultQueue)
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
	h.State, h.Why, h.Since, h.NextProbe = c.breaker.state()
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

func (c *counts) sent(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Requests++
	c.stats.ByReason[r]++
}

func (c *counts) retried(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Retries[r]++
}

func (c *counts) hedged(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Hedges[r]++
}

func (c *counts) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
}

func (c *counts) tooLarge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.TooLarge++
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

// plainly says a failure to whoever may read health: what went wrong, without
// the addresses of the network it went wrong in. The log has those.
func plainly(e *understudy.UpstreamError) string {
	var op *net.OpError
	if !errors.As(e.Err, &op) {
		return e.Error()
	}
	said := *e
	said.Err = op.Err
	var call *os.SyscallError
	if errors.As(op.Err, &call) {
		said.Err = call.Err
	}
	if op.Op == "dial" && op.Timeout() {
		said.Err = errors.New("no connection in time")
	}
	return said.Error()
}
