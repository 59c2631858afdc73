// Search: requests that search every record by words, and their results.

package query

import (
	"encoding/json"
	"fmt"
	"time"

	"understudy"
)

// SearchRequest is a search: a query's text and how its answer is wanted. The zero
// value of every field but Text is a good one.
type SearchRequest struct {
	// Text is the query, in the grammar of docs/reference/search.md; "" finds everything that the caller sees.
	Text  string
	Where []FieldCondition // conditions beside the text; all of them must hold
	// Number, in place of a text and conditions, finds the records with this whole number
	// ("+15551234567") in any field of class phone, also where the caller is not shown it. The
	// caller needs the permission to look up numbers. It is never saved.
	Number string
	Source string   // every source that the caller may ask
	Kinds  []string // none = every kind the caller sees; one it does not see is ErrForbidden
	// Sort is the order of the hits: "" or "newest", "oldest", "rank" (best first), or a field by its name, a minus
	// before it for the largest first. All but the first two look at the newest matches alone (see
	// SearchResult.Window).
	Sort   string
	Facets bool // count the matches also by kind, status, direction and time
	// CountOnly wants the total and the facets alone: no record is read.
	CountOnly bool
	Cursor    string // SearchResult.Next of an answer to the same ask by the same role; "" = from the beginning
	Limit     int    // hits at most; 0 = DefaultHits, above MostHits is ErrInvalid
}

// FieldCondition is a condition of a search on one field, which the grammar writes
// as the field's name, the comparison and the value.
type FieldCondition struct {
	Field      string
	Comparison Comparison
	Value      string // not empty
	Prefix     bool   // the value is the beginning of a word
}

// Comparison is how a field is compared with a value: its sign in the grammar.
type Comparison string

// The comparisons.
const (
	CompareIs      Comparison = ":" // as the type of the field has it: the value, the words, the day
	CompareSame    Comparison = "="
	CompareLess    Comparison = "<"
	CompareAtMost  Comparison = "<="
	CompareMore    Comparison = ">"
	CompareAtLeast Comparison = ">="
)

// How many hits an answer has.
const (
	DefaultHits = 50
	MostHits    = 500
)

// SearchResult is the answer to a search, as its caller may see it. Fields that the
// caller's role hides are not matched, counted, used for the order or shown.
type SearchResult struct {
	Query string `json:"query"` // the query as it was understood, in its full form
	// Meant is the one record whose id, or the one number ("+1555…"), the whole text is.
	// Both are empty when it is neither. A record in it exists and the caller sees it.
	Meant SearchMeant `json:"meant,omitzero"`
	Hits  []SearchHit `json:"hits"`
	Next  string      `json:"next,omitempty"` // the cursor of the hits after these; "" = there are no more
	// Partial says that time or a limit ended the search before Limit hits were found; Next goes on from there.
	Partial bool `json:"partial,omitempty"`
	// Window, when it is not 0, is how many of the newest matches were sorted. More says
	// that there are older ones, which were not.
	Window int      `json:"window,omitempty"`
	More   bool     `json:"more,omitempty"`
	Notes  []string `json:"notes,omitempty"` // notes for the caller, in sentences
	// Unheld says, where there are no more hits, which of the kinds looked in are not known to
	// be held whole; "" when all are.
	Unheld string `json:"unheld,omitempty"`
	// Total and Facets are there when they were asked for.
	Total  *Count        `json:"total,omitempty"`
	Facets []SearchFacet `json:"facets,omitempty"`
	// Columns are the fields a table of a kind shows best, by source/kind. Only programs get them.
	Columns map[string][]string `json:"columns,omitempty"`
}

// SearchMeant is the record or the number that a text names.
type SearchMeant struct {
	Source string `json:"source,omitempty"`
	Kind   string `json:"kind,omitempty"`
	ID     string `json:"id,omitempty"`
	Number string `json:"number,omitempty"` // as typed, its marks taken out: + and digits
}

// SearchHit is one record found, as the caller sees it.
type SearchHit struct {
	Source string   `json:"source"`
	Kind   string   `json:"kind"`
	Shape  string   `json:"-"`
	ID     string   `json:"id,omitempty"`    // "" when the role does not see the fields it is made of
	URL    string   `json:"url,omitempty"`   // the viewer's page of it, a path; "" without an ID
	Exact  bool     `json:"exact,omitempty"` // its id is the text itself: it stands before all others
	Clock  UnixTime `json:"at,omitzero"`     // 0 also when the role does not see it
	// Body is the record as the role sees it: hidden values are null, masked ones masked. It must not be changed.
	Body     json.RawMessage `json:"record"`
	Snippets []SearchSnippet `json:"snippets,omitempty"`
	// Notes and Handled are what people wrote on the record, for those who see it.
	Notes   []understudy.Note `json:"notes,omitempty"`
	Handled *understudy.Mark  `json:"handled,omitempty"`
}

// UnixTime is a time in Unix seconds, 0 for none. In JSON it is RFC 3339.
type UnixTime int64

// Time is the time in UTC.
func (t UnixTime) Time() time.Time { return time.Unix(int64(t), 0).UTC() }

// MarshalJSON writes the time as RFC 3339.
func (t UnixTime) MarshalJSON() ([]byte, error) { return t.Time().MarshalJSON() }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *UnixTime) UnmarshalJSON(text []byte) error {
	var at time.Time
	if err := at.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("query: time: %w", err)
	}
	*t = UnixTime(at.Unix())
	return nil
}

// SearchSnippet is a piece of a field in which words were found.
type SearchSnippet struct {
	Field string `json:"field"` // dotted
	Text  string `json:"text"`
	// Marks are the places of the words in Text, in bytes: from each [0] to before [1], in order, none overlapping.
	Marks [][2]int `json:"marks"`
	// Before and After say that the field goes on there.
	Before bool `json:"before,omitempty"`
	After  bool `json:"after,omitempty"`
}

// SearchFacet counts the matches by the values of a field.
type SearchFacet struct {
	// Name is what the values are of: "kind", the name of a field ("status"),
	// "day" or "month" (of the clock, in UTC).
	Name   string        `json:"name"`
	Values []SearchValue `json:"values"`         // the most frequent first; days and months in order, the newest first
	More   bool          `json:"more,omitempty"` // there are values that are not listed
}

// SearchValue is one value of a facet.
type SearchValue struct {
	Value   string `json:"value"`
	N       int64  `json:"n"`
	AtLeast bool   `json:"at_least,omitempty"` // counting stopped early: there are this many or more
	Term    string `json:"term"`               // what to add to the query to see these alone: "status:failed"
}

// SavedSearch is a query kept under a name: text and parameters, never an answer. A
// caller that opens it searches with its own grant.
type SavedSearch struct {
	Name    string // 1 to 60 characters, unique among its owner's
	Owner   string // the caller's name
	Shared  bool   // every caller that may search sees it; only its owner changes it
	Request SearchRequest
	At      time.Time
}

// SyntaxError is a query that cannot be understood, or a name in it that the
// caller may not use. It wraps ErrInvalid or ErrForbidden.
type SyntaxError struct {
	Text      string // the query
	At, End   int    // where in it, in bytes
	Character int    // At in characters
	Why       string // what is wrong there and what to do, a sentence
	Kind      error  // ErrInvalid or ErrForbidden
}

// Error says where and why in one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("search: %v: character %d: %s", e.Kind, e.Character+1, e.Why)
}

// Unwrap is the kind of error.
func (e *SyntaxError) Unwrap() error { return e.Kind }
