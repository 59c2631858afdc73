// Counts: what was sent, for whom, and what the answers took.

package throttle

import (
	"slices"
	"sync"
	"time"

	"understudy/request"
)

// Counts counts tries and keeps the last answer times. Its zero value works.
type Counts struct {
	mu    sync.Mutex
	stats request.SentCounts
	spent [request.SpendingRetention / request.SpendingStep]span // a ring, by the time
	took  [120]time.Duration
	n     int // answers ever
}

// span is what was sent in a span of time.
type span struct {
	spending request.Spending
	flows    map[uint64]int64 // of reason Waiting; 0: others
}

// mostFlows bounds the flows of a span. Those with the least are counted as others then.
const mostFlows = 32

// sent counts a request of a flow.
func (s *span) sent(flow uint64) {
	if s.flows == nil {
		s.flows = map[uint64]int64{}
	}
	if _, known := s.flows[flow]; flow != 0 && !known && len(s.flows) > mostFlows {
		least := uint64(0)
		for other, n := range s.flows {
			if other != 0 && (least == 0 || n < s.flows[least]) {
				least = other
			}
		}
		s.flows[0] += s.flows[least]
		delete(s.flows, least)
	}
	s.flows[flow]++
}

// spending is the span that a moment is in. The caller holds mu.
func (c *Counts) spending(now time.Time) *span {
	from := now.Truncate(request.SpendingStep)
	s := &c.spent[uint64(from.Unix())/uint64(request.SpendingStep/time.Second)%uint64(len(c.spent))]
	if !s.spending.From.Equal(from) {
		*s = span{spending: request.Spending{From: from}}
	}
	return s
}

// Spending are the spans of the last SpendingKept in which something was sent, oldest
// first. name is the name of a flow's caller, "" when it is not known.
func (c *Counts) Spending(now time.Time, name func(flow uint64) string) []request.Spending {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []request.Spending
	for _, s := range c.spent {
		if age := now.Sub(s.spending.From); s.spending.From.IsZero() || age < 0 || age >= request.SpendingRetention {
			continue
		}
		s.spending.ByCaller = make(map[string]int64, len(s.flows))
		for flow, n := range s.flows {
			s.spending.ByCaller[name(flow)] += n
		}
		all = append(all, s.spending)
	}
	slices.SortFunc(all, func(a, b request.Spending) int { return a.From.Compare(b.From) })
	return all
}

// Stats are the counters now.
func (c *Counts) Stats() request.SentCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Sent counts a request that is sent now, of a reader with that flow.
func (c *Counts) Sent(r request.Reason, flow uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Requests++
	c.stats.ByReason[r]++
	s := c.spending(now)
	if s.spending.ByReason[r]++; r == request.ReasonWaiting {
		s.sent(flow)
	}
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

// Failed counts a try that has failed now.
func (c *Counts) Failed(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
	c.spending(now).spending.Failed++
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
