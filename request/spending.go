// Spending: the number of upstream requests, since the process started and per period.

package request

import (
	"encoding/json"
	"time"
)

// ByReason counts requests by reason. Its JSON is an object with the names of all reasons.
type ByReason [ReasonCount]int64

// MarshalJSON implements json.Marshaler.
func (n ByReason) MarshalJSON() ([]byte, error) {
	names := map[string]int64{}
	for r, sent := range n {
		names[Reason(r).String()] = sent
	}
	return json.Marshal(names)
}

// Add adds the counts of o.
func (n *ByReason) Add(o *ByReason) {
	for r, sent := range o {
		n[r] += sent
	}
}

// SentCounts counts the upstream requests since the process started. Its JSON is part of /-/stats, where names are
// added but never removed.
type SentCounts struct {
	Requests int64    `json:"requests"` // the number of attempts, with or without an answer
	Errors   int64    `json:"errors"`   // the number of failed attempts, without those whose caller left
	TooLarge int64    `json:"-"`        // the number of attempts whose body was larger than MaxBody
	ByReason ByReason `json:"by_reason"`
	Retries  ByReason `json:"retries"` // the number of attempts after the first attempt of a fetch; they are also counted in ByReason
	Hedges   ByReason `json:"hedges"`  // the number of second requests sent because the first was late; they are also counted in ByReason
}

// Add adds the counts of o.
func (s *SentCounts) Add(o *SentCounts) {
	s.Requests, s.Errors, s.TooLarge = s.Requests+o.Requests, s.Errors+o.Errors, s.TooLarge+o.TooLarge
	s.ByReason.Add(&o.ByReason)
	s.Retries.Add(&o.Retries)
	s.Hedges.Add(&o.Hedges)
}

// SpendingStep is the period of one Spending. SpendingRetention is how long a Spending is stored.
const (
	SpendingStep      = 5 * time.Minute
	SpendingRetention = 24 * time.Hour
)

// Spending counts the requests to a source in one SpendingStep. Each attempt of a fetch is one request. Its JSON, for
// an hour, is part of /-/stats, where names are added but never removed.
type Spending struct {
	From     time.Time `json:"from"`   // the start of the period, a multiple of SpendingStep
	Failed   int64     `json:"failed"` // the number of the requests in ByReason that failed
	ByReason ByReason  `json:"by_reason"`
	// ByCaller is the number of requests of ReasonWaiting by the caller's name. "" stands for all other callers: those
	// without a name, and those beyond the maximum number of names.
	ByCaller map[string]int64 `json:"by_caller"`
}

// Add adds the counts of o.
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

// Requests returns the number of requests sent.
func (s *Spending) Requests() (n int64) {
	for _, sent := range s.ByReason {
		n += sent
	}
	return n
}
