// Sum: requests that add up the matches of a search, and their results.

package query

import "time"

// SumRequest adds up the matches of a search.
type SumRequest struct {
	// Search selects the matches with Text, Where, Source and Kinds. Its other fields are empty.
	Search SearchRequest
	// Sum is what to add up: SumCount, a numeric field ("price"), or a time between two clocks of a record, by
	// its name in the spec ("delivery").
	Sum string
	// By are one or two groupings: "hour", "day", "week" or "month" of the match's date, "kind", a field of
	// choices, codes or phone numbers ("status"), or the country of a phone number ("to.country"). Without By
	// all matches form one group.
	By    []string
	Zone  *time.Location // time zone of hours, days, weeks and months; nil means UTC
	Limit int            // largest number of groups (the largest, or of times the newest); 0 means MaxSums, more is ErrInvalid
	// Wait is how long to wait for a complete answer; 0 means the default. After that, the answer contains what
	// has been counted.
	Wait time.Duration
}

// SumCount counts the matches.
const SumCount = "count"

// MaxSums is the largest number of groups in an answer, MaxSumGroupings the largest number of entries in By.
const (
	MaxSums         = 1000
	MaxSumGroupings = 2
)

// SumResult is the sum of a search's matches, as its caller may see it. It contains nothing from records or
// fields that the caller does not see.
type SumResult struct {
	Query string   `json:"query"` // the query in its full form
	Sum   string   `json:"sum"`
	By    []string `json:"by"`
	Zone  string   `json:"zone"`
	Kinds []string `json:"kinds"` // kinds that have the value to add up and the groupings
	// Rows are the groups: times with the oldest first, others with the largest first.
	Rows   []SumRow `json:"rows"`
	Others []SumRow `json:"others,omitempty"` // everything that is not in Rows, one row per unit
	Totals []SumRow `json:"totals"`           // everything, one row per unit
	// Complete means that every match is included. Otherwise counting continues after the answer, or there was
	// not enough memory to count all. Notes say which.
	Complete bool     `json:"complete"`
	Notes    []string `json:"notes,omitempty"`
	// Incomplete says for which of Kinds some records may not be stored. It is "" if all kinds are complete.
	Incomplete string `json:"unheld,omitempty"`
	// AsOf is the number of the last change included, for a caller from whom nothing is hidden. It is 0 if the
	// sum covers several sources.
	AsOf int64 `json:"as_of,omitempty"`
}

// SumRow is the matches of one group and unit.
type SumRow struct {
	Key    []string `json:"key,omitempty"`  // one value for each entry of By; "" for matches that have none
	Unit   string   `json:"unit,omitempty"` // unit of Sum, as the records state it
	Count  int64    `json:"count"`          // number of matches
	Values int64    `json:"values"`         // number of matches that have a value to add up
	Sum    string   `json:"sum,omitempty"`  // exact sum; "" without values
	// Seconds are the mean and the quantiles of times.
	Seconds *SumTimes `json:"seconds,omitempty"`
	// Term is the text that restricts the query to these matches, or "" if there is none.
	Term string `json:"term,omitempty"`
}

// SumTimes are durations in seconds. Quantiles above 1024 are exact to 1 %.
type SumTimes struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
}

// PredefinedSearch is a search that a spec defines.
type PredefinedSearch struct {
	Source, Name string
	Title        string // title for people
	About        string // one sentence that says what the search shows; may be ""
	Search       SearchRequest
	Sum          string // value to add up; "" lists the records
	By           []string
}
