// Spending: what upstream was sent, since the process began and in a span of time.

package request

import (
	"encoding/json"
	"time"
)

// ByReason counts requests by why they were sent. Its JSON is an object by the names of all reasons.
type ByReason [Reasons]int64

// MarshalJSON implements json.Marshaler.
func (n ByReason) MarshalJSON() ([]byte, error) {
	names := map[string]int64{}
	for r, sent := range n {
		names[Reason(r).String()] = sent
	}
	return json.Marshal(names)
}

// Add adds what another counts.
func (n *ByReason) Add(o *ByReason) {
	for r, sent := range o {
		n[r] += sent
	}
}

// Sent counts the requests that were sent upstream since the process began. Its JSON is part of /-/stats:
// names are only added.
type Sent struct {
	Requests int64    `json:"requests"` // tries, answered or not
	Errors   int64    `json:"errors"`   // those of them that failed; a caller that left is none
	TooLarge int64    `json:"-"`        // those of them whose body was larger than MaxBody
	ByReason ByReason `json:"by_reason"`
	Retries  ByReason `json:"retries"` // tries after the first of a fetch, also in ByReason
	Hedges   ByReason `json:"hedges"`  // sent beside one that was late, also in ByReason
}

// Add adds what another counts.
func (s *Sent) Add(o *Sent) {
	s.Requests, s.Errors, s.TooLarge = s.Requests+o.Requests, s.Errors+o.Errors, s.TooLarge+o.TooLarge
	s.ByReason.Add(&o.ByReason)
	s.Retries.Add(&o.Retries)
	s.Hedges.Add(&o.Hedges)
}

// SpendingStep is the span of one Spending, and SpendingKept how long they are kept.
const (
	SpendingStep = 5 * time.Minute
	SpendingKept = 24 * time.Hour
)

// Spending counts what a source was sent in one SpendingStep. A try of a fetch is one request. Its
// JSON, of an hour, is part of /-/stats: names are only added.
type Spending struct {
	From     time.Time `json:"from"`   // a multiple of SpendingStep
	Failed   int64     `json:"failed"` // those of ByReason that failed
	ByReason ByReason  `json:"by_reason"`
	// ByCaller are those of reason Waiting, by the name of the caller; "": of others, as
	// there are too many, or no caller that is known began it.
	ByCaller map[string]int64 `json:"by_caller"`
}

// Add adds what another counts.
func (s *Spending) Add(o *Spending) {
	s.ByReason.Add(&o.ByReason)
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
