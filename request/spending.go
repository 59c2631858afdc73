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
	Failed   int64 // those of them that failed
}

// Sent is how many requests were sent.
func (s *Spending) Sent() (n int64) {
	for _, sent := range s.ByReason {
		n += sent
	}
	return n
}
