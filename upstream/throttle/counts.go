// This file counts what was sent and for whom, and measures how long the answers took.

package throttle

import (
	"slices"
	"time"

	"understudy/kit/lockwatch"
	"understudy/request"
)

// Counts counts tries and keeps the last answer times. The zero value is ready for use.
type Counts struct {
	mu    lockwatch.Mutex
	stats request.SentCounts
	spent [request.SpendingRetention / request.SpendingStep]span // the last spans of time, as a ring buffer
	took  [120]time.Duration
	n     int // the number of answers so far
}

// span is what was sent in one period of time.
type span struct {
	spending request.Spending
	flows    map[uint64]int64 // the number of requests of ReasonWaiting by flow; 0 stands for all other flows
}

// maxFlows is the maximum number of flows of a span. Beyond it, the flow with the fewest requests is counted as "others".
const maxFlows = 32

// addRequest counts a request of a flow.
func (s *span) addRequest(flow uint64) {
	if s.flows == nil {
		s.flows = map[uint64]int64{}
	}
	if _, known := s.flows[flow]; flow != 0 && !known && len(s.flows) > maxFlows {
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

// spanAt returns the span of a moment. The caller holds mu.
func (c *Counts) spanAt(now time.Time) *span {
	from := now.Truncate(request.SpendingStep)
	s := &c.spent[uint64(from.Unix())/uint64(request.SpendingStep/time.Second)%uint64(len(c.spent))]
	if !s.spending.From.Equal(from) {
		*s = span{spending: request.Spending{From: from}}
	}
	return s
}

// Spending returns the spans of the last SpendingRetention in which something was sent, oldest first. name
// returns the name of a flow's caller, or "" if it is unknown.
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

// Stats returns the counters.
func (c *Counts) Stats() request.SentCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// AddRequest counts a request that is sent now for a reader's flow.
func (c *Counts) AddRequest(r request.Reason, flow uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Requests++
	c.stats.ByReason[r]++
	s := c.spanAt(now)
	if s.spending.ByReason[r]++; r == request.ReasonWaiting {
		s.addRequest(flow)
	}
}

// AddRetry counts a retry.
func (c *Counts) AddRetry(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Retries[r]++
}

// AddHedge counts a request that was sent while the first request was late.
func (c *Counts) AddHedge(r request.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Hedges[r]++
}

// AddFailure counts a failed try.
func (c *Counts) AddFailure(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
	c.spanAt(now).spending.Failed++
}

// AddTooLarge counts a body above the limit.
func (c *Counts) AddTooLarge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.TooLarge++
}

// AddAnswer records how long an answer took.
func (c *Counts) AddAnswer(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[c.n%len(c.took)] = took
	c.n++
}

// AnswerTimes returns the last answer times, oldest first.
func (c *Counts) AnswerTimes() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := min(c.n, len(c.took))
	out := make([]time.Duration, 0, kept)
	for i := c.n - kept; i < c.n; i++ {
		out = append(out, c.took[i%len(c.took)])
	}
	return out
}
