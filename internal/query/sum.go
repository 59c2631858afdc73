// Sum: what searches add up, and the results.

package query

import "time"

// SumRequest adds up the matches of a search.
type SumRequest struct {
	// Search says what is added up: Text, Where, Source and Kinds. Its other fields are empty.
	Search SearchRequest
	// Sum is what is added up: SumCount, a field that holds numbers ("price"), or a time that
	// passes between two clocks of a record, by the name its spec gives it ("delivery").
	Sum string
	// By are one or two things the matches are put in groups by: "hour", "day", "week" or
	// "month" of their date, "kind", a field of choices, codes or phone numbers ("status"), or
	// the country of a phone number ("to.country"). None: all matches are one group.
	By    []string
	Zone  *time.Location // of hours, days, weeks and months; nil: UTC
	Limit int            // groups at most, the largest or of times the newest; 0 = MostSums, more is ErrInvalid
	// Wait is how long to wait for a complete answer; 0 = the default. What is counted until then is the answer.
	Wait time.Duration
}

// SumCount counts the matches.
const SumCount = "count"

// MostSums is how many groups an answer has at most, MostSumBy by how many things.
const (
	MostSums  = 1000
	MostSumBy = 2
)

// SumResult is what the matches of a search add up to, as its caller may see them. Nothing in
// it is of a record or a field that the caller does not see.
type SumResult struct {
	Query string   `json:"query"` // in its full form
	Sum   string   `json:"sum"`
	By    []string `json:"by"`
	Zone  string   `json:"zone"`
	Kinds []string `json:"kinds"` // those that have what is added up and put in groups by
	// Rows are the groups: of times the oldest first, else the largest first.
	Rows   []SumRow `json:"rows"`
	Others []SumRow `json:"others,omitempty"` // what is not among Rows, one for each unit
	Totals []SumRow `json:"totals"`           // of everything, one for each unit
	// Complete says that every match is in it. Otherwise counting goes on behind the answer,
	// or there was no room to count all; Notes say so.
	Complete bool     `json:"complete"`
	Notes    []string `json:"notes,omitempty"`
	// Unheld says which of Kinds are not known to be held whole; "" when all are.
	Unheld string `json:"unheld,omitempty"`
	// AsOf is the number of the last change that is in it, for a caller from whom nothing is
	// hidden; 0 when it is of several sources.
	AsOf int64 `json:"as_of,omitempty"`
}

// SumRow is the matches of one group and unit.
type SumRow struct {
	Key    []string `json:"key,omitempty"`  // one for each of By; "" for matches that have none
	Unit   string   `json:"unit,omitempty"` // of Sum, as the records say
	Count  int64    `json:"count"`          // matches
	Values int64    `json:"values"`         // of these, those that have a value to add up
	Sum    string   `json:"sum,omitempty"`  // exact; "" without values
	// Seconds are the mean and quantiles of times that passed.
	Seconds *SumTimes `json:"seconds,omitempty"`
	// Term is what to add to the query to find these matches alone; "" when it cannot be said.
	Term string `json:"term,omitempty"`
}

// SumTimes are lengths of time in seconds. Quantiles above 1024 are right to 1 %.
type SumTimes struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
}

// ReadySearch is a search that a spec brings along.
type ReadySearch struct {
	Source, Name string
	Title        string // for people
	About        string // what it shows, a sentence; may be ""
	Search       SearchRequest
	Sum          string // what is added up; "": the records are listed
	By           []string
}
