// This file contains the requests that search all records by words, and their results.

package query

import (
	"encoding/json"
	"fmt"
	"time"

	"understudy"
)

// SearchRequest is the request for a search: the text of the query, and options for its answer. Every field except
// Text may be zero.
type SearchRequest struct {
	// Text is the query, in the grammar of docs/reference/search.md. The text "" finds every record that the caller
	// may see.
	Text  string
	Where []FieldCondition // further conditions; a record must match all of them
	// Number replaces Text and Where. It finds the records with this exact phone number ("+15551234567") in any
	// field of class phone, even where the field is hidden from the caller. The caller needs the permission to
	// look up numbers. A Number is never saved.
	Number string
	Source string   // the only source to search; "" means every source that the caller may use
	Kinds  []string // the kinds to search; none means every kind that the caller sees; a hidden kind is ErrForbidden
	// Sort is the order of the hits: "" or "newest", "oldest", "rank" (best match first), or the name of a field,
	// with a minus before it for the largest value first. For "rank" and fields, only the newest matches are sorted
	// (see SearchResult.Window).
	Sort   string
	Facets bool // whether to count the matches also by kind, status, direction and time
	// CountOnly is true if only the total and the facets are requested. No record is read.
	CountOnly bool
	Cursor    string // the field Next of an earlier answer to the same search for the same role; "" starts at the beginning
	Limit     int    // the maximum number of hits; 0 means DefaultHits, more than MaxHits is ErrInvalid
}

// FieldCondition is a condition of a search on one field. The grammar writes it as the field's name, the
// comparison and the value.
type FieldCondition struct {
	Field      string
	Comparison Comparison
	Value      string // the value to compare with; never empty
	Prefix     bool   // whether the value is only the beginning of a word
}

// Comparison says how a field is compared with a value. Its text is the sign in the grammar.
type Comparison string

// The ways to compare a field with a value.
const (
	CompareIs      Comparison = ":" // compares as the field's type requires: by value, by words or by day
	CompareSame    Comparison = "="
	CompareLess    Comparison = "<"
	CompareAtMost  Comparison = "<="
	CompareMore    Comparison = ">"
	CompareAtLeast Comparison = ">="
)

// Limits of the number of hits in an answer.
const (
	DefaultHits = 50
	MaxHits     = 500
)

// SearchResult is the answer to a search, as its caller may see it. Fields that are hidden from the caller's role
// are not matched, counted, used for the order or shown.
type SearchResult struct {
	Query string `json:"query"` // the query as it was understood, in its full form
	// Named is the single record or phone number ("+1555…") that the whole search text names. Its fields are empty
	// if the text names neither. A record in it exists, and the caller may see it.
	Named NamedTarget `json:"meant,omitzero"`
	Hits  []SearchHit `json:"hits"`
	// Near is the circle of the first near:, or nil.
	Near *Circle `json:"-"`
	Next string  `json:"next,omitempty"` // the cursor of the following hits; "" if there are none
	// Partial is true if the time limit or another limit ended the search before Limit hits were found. Next
	// continues there.
	Partial bool `json:"partial,omitempty"`
	// Window is the number of newest matches that were sorted, or 0 if all matches are in order. More is true if
	// there are older matches, which were not sorted.
	Window int      `json:"window,omitempty"`
	More   bool     `json:"more,omitempty"`
	Notes  []string `json:"notes,omitempty"` // sentences for the caller about the result
	// Incomplete is a sentence that names the searched kinds of which some records may not be stored. It is "" if
	// all kinds are complete.
	Incomplete string `json:"unheld,omitempty"`
	// Total and Facets are set if they were requested.
	Total  *Count        `json:"total,omitempty"`
	Facets []SearchFacet `json:"facets,omitempty"`
	// Columns are the names of the fields that a table of a kind should show, by source/kind. They are sent only in
	// JSON answers.
	Columns map[string][]string `json:"columns,omitempty"`
}

// NamedTarget is the record or the phone number that a search text names.
type NamedTarget struct {
	Source string `json:"source,omitempty"`
	Kind   string `json:"kind,omitempty"`
	ID     string `json:"id,omitempty"`
	Number string `json:"number,omitempty"` // the number in the search text without separators: + and digits
}

// SearchHit is one record found, as the caller sees it.
type SearchHit struct {
	Source string   `json:"source"`
	Kind   string   `json:"kind"`
	Shape  string   `json:"-"`
	ID     string   `json:"id,omitempty"`    // the id of the record; "" if the role does not see the fields of the id
	URL    string   `json:"url,omitempty"`   // the path of the record's page in the viewer; "" without an ID
	Exact  bool     `json:"exact,omitempty"` // whether the search text is this record's id; such a hit comes first
	Clock  UnixTime `json:"at,omitzero"`     // the time of the record; 0 if there is none or the role does not see it
	// Body is the record as the role sees it: hidden values are null, and masked values are masked. It must not be changed.
	Body     json.RawMessage `json:"record"`
	Snippets []SearchSnippet `json:"snippets,omitempty"`
	// Notes and Handled are what people wrote on the record, for callers that may see it.
	Notes   []understudy.Note `json:"notes,omitempty"`
	Handled *understudy.Mark  `json:"handled,omitempty"`
}

// UnixTime is a time in Unix seconds. 0 means no time. JSON uses RFC 3339.
type UnixTime int64

// Time returns the time in UTC.
func (t UnixTime) Time() time.Time { return time.Unix(int64(t), 0).UTC() }

// MarshalJSON writes the time as RFC 3339.
func (t UnixTime) MarshalJSON() ([]byte, error) { return t.Time().MarshalJSON() }

// UnmarshalJSON reads a time in the form of MarshalJSON.
func (t *UnixTime) UnmarshalJSON(text []byte) error {
	var at time.Time
	if err := at.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("query: time: %w", err)
	}
	*t = UnixTime(at.Unix())
	return nil
}

// SearchSnippet is the part of a field in which words were found.
type SearchSnippet struct {
	Field string `json:"field"` // the dotted name of the field
	Text  string `json:"text"`
	// Marks are the positions of the found words in Text, as byte ranges from [0] up to but not including [1]. They
	// are sorted and do not overlap.
	Marks [][2]int `json:"marks"`
	// Before and After are true if the field has more text before or after the snippet.
	Before bool `json:"before,omitempty"`
	After  bool `json:"after,omitempty"`
}

// SearchFacet counts the matches by the values of a field.
type SearchFacet struct {
	// Name says by what the matches are counted: "kind", the name of a field ("status"), "day" or "month" (of the
	// clock, in UTC).
	Name   string        `json:"name"`
	Values []SearchValue `json:"values"`         // the values with the most frequent first; days and months with the newest first
	More   bool          `json:"more,omitempty"` // whether more values exist than are returned
}

// SearchValue is one value of a facet.
type SearchValue struct {
	Value   string `json:"value"`
	N       int64  `json:"n"`
	AtLeast bool   `json:"at_least,omitempty"` // whether counting stopped early, so that N is a minimum
	Term    string `json:"term"`               // the text that restricts the query to these matches, such as "status:failed"
}

// SavedSearch is a search that is stored under a name: its text and parameters, but no answer. A caller that opens
// it searches with its own grant.
type SavedSearch struct {
	Name    string // the name of the search, 1 to 60 characters, unique for its owner
	Owner   string // the name of the caller that saved the search
	Shared  bool   // whether every caller that may search can see it; only the owner may change it
	Request SearchRequest
	At      time.Time
}

// SyntaxError is an error in a query: the query cannot be parsed, or names something that the caller may not use.
// It wraps ErrInvalid or ErrForbidden.
type SyntaxError struct {
	Text      string // the text of the query
	At, End   int    // the byte range of the error in Text
	Character int    // the position At, counted in characters
	Why       string // one sentence: what is wrong and what to do
	Kind      error  // the wrapped error, ErrInvalid or ErrForbidden
}

// Error returns the position of the error and its reason in one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("search: %v: character %d: %s", e.Kind, e.Character+1, e.Why)
}

// Unwrap returns ErrInvalid or ErrForbidden.
func (e *SyntaxError) Unwrap() error { return e.Kind }
