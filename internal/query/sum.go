// This file contains the requests that sum up the matches of a search, and their results.

package query

import "time"

// SumRequest is the request to sum up the matches of a search.
type SumRequest struct {
	// Search selects the matches with its fields Text, Where, Source and Kinds. Its other fields must be empty.
	Search SearchRequest
	// Sum says what to sum up: SumCount, a numeric field ("price"), or a time between two clocks of a record, by
	// its name in the spec ("delivery").
	Sum string
	// By are at most two groupings: "hour", "day", "week" or "month" of the match's date, "kind", a field of
	// choices, codes or phone numbers ("status"), or the country of a phone number ("to.country"). Without By all
	// matches are in one group.
	By   []string
	Zone *time.Location // the time zone of hours, days, weeks and months; nil means UTC
	// the maximum number of groups, of which the largest (of times the newest) are returned; 0 means MaxSums, more
	// is ErrInvalid
	Limit int
	// Wait is how long to wait for a complete answer; 0 means the default. After that time, the answer contains
	// what has been counted so far.
	Wait time.Duration
}

// SumCount is the value of SumRequest.Sum that counts the matches.
const SumCount = "count"

// MaxSums is the maximum number of groups in an answer. MaxSumGroupings is the maximum number of entries in By.
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
	Kinds []string `json:"kinds"` // the kinds that have the value to sum up and the groupings
	// Rows are the groups. Times have the oldest first; other groups have the largest first.
	Rows   []SumRow `json:"rows"`
	Others []SumRow `json:"others,omitempty"` // the sums of all groups that are not in Rows, one row per unit
	Totals []SumRow `json:"totals"`           // the sums of all groups, one row per unit
	// Complete is true if every match is included. Otherwise counting continues after the answer, or there was not
	// enough memory to count all matches. Notes say which of the two.
	Complete bool     `json:"complete"`
	Notes    []string `json:"notes,omitempty"`
	// Incomplete is a sentence that names those of Kinds of which some records may not be stored. It is "" if all
	// kinds are complete.
	Incomplete string `json:"unheld,omitempty"`
	// AsOf is the number of the last change that the sum includes, for a caller from whom nothing is hidden. It is
	// 0 if the sum covers several sources.
	AsOf int64 `json:"as_of,omitempty"`
}

// SumRow is the sum of the matches of one group with the same unit.
type SumRow struct {
	Key    []string `json:"key,omitempty"`  // one value for each entry of By; "" for matches without a value
	Unit   string   `json:"unit,omitempty"` // the unit of Sum, as the records state it
	Count  int64    `json:"count"`          // the number of matches
	Values int64    `json:"values"`         // the number of matches that have a value to sum up
	Sum    string   `json:"sum,omitempty"`  // the exact sum; "" if no match has a value
	// Seconds are the mean and the quantiles, if times are summed up.
	Seconds *SumTimes `json:"seconds,omitempty"`
	// Term is the text that restricts the query to these matches, or "" if no text can.
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
	Title        string // the title of the search for people
	About        string // one sentence that says what the search shows; may be ""
	Search       SearchRequest
	Sum          string // what to sum up, as in SumRequest; "" if the search lists records
	By           []string
}
