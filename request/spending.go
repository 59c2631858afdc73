// Spending: what upstream was sent in a span of time.

package request

import "time"

// SpendingStep is the span of one Spending, and SpendingKept how long they are kept.
const (
	SpendingStep = 5 * time.Minute
	SpendingKept = 24 * time.Hour
)

// Spending is what a source was sent in one SpendingStep. A try of a fetch is one request.
type Spending struct {
	From     time.Time // a multiple of SpendingStep
	ByReason [Reasons]int64
	// ByCaller are those of reason Waiting, by the name of the caller; "": of others, as
	// there are too many, or no caller that is known began it.
	ByCaller map[string]int64
	Failed   int64 // those of them that failed
}

// Add adds what another counts.
func (s *Spending) Add(o *Spending) {
	for r, n := range o.ByReason {
		s.ByReason[r] += n
	}
	if s.ByCaller == nil {
		s.ByCaller = map[string]int64{}
	}
	for name, n := range o.ByCaller {
		s.ByCaller[name] += n
	}
	s.Failed += o.Failed
}

// Sent is how many requests were sent.
func (s *Spending) Sent() (n int64) {
	for _, sent := range s.ByReason {
		n += sent
	}
	return n
}
