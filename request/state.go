// State: what packages report about themselves to frontends.

package request

import "time"

// Load is one limit: its value, how much of it is in use, and how often it was reached.
type Load struct {
	Limit     int64   `json:"limit"`
	Now       int64   `json:"now"`
	Refused   int64   `json:"refused"`               // refused, or not started
	Dropped   int64   `json:"dropped,omitempty"`     // idle entries that made room for others
	OldestMS  int64   `json:"oldest_ms,omitempty"`   // how long the longest waiting request has waited, in ms
	LongestMS int64   `json:"longest_ms,omitempty"`  // longest wait so far, in ms
	AtOnce    int     `json:"at_once,omitempty"`     // number of concurrent requests that the upstream handles well, if known
	Why       string  `json:"at_once_why,omitempty"` // why AtOnce is lower than the settings allow
	Reserve   float64 `json:"reserve,omitempty"`     // tokens that other work leaves to readers
}

// ListScore says how one list of a source is answered, and how often records agreed with the upstream. Its JSON
// is part of /-/stats, where names are only ever added.
type ListScore struct {
	Kind       string    `json:"-"`
	Title      string    `json:"-"`                    // title of the list in the spec
	Path       string    `json:"path"`                 // path of the list in the spec
	Answers    string    `json:"answers"`              // the setting: auto, upstream, records
	First      string    `json:"first"`                // which is tried first now: upstream or records
	Equal      int64     `json:"equal"`                // number of successive samples without a difference
	Enough     int64     `json:"enough"`               // value of Equal at which records are used first
	Samples    int64     `json:"samples"`              // number of samples
	Differing  int64     `json:"differing"`            // number of samples with a difference
	Field      string    `json:"field,omitempty"`      // field that differed last, or another reason in parentheses
	Where      string    `json:"where,omitempty"`      // place of the last difference
	DifferedAt time.Time `json:"differed_at,omitzero"` // time of the last difference; zero if none
}

// IsRecordsFirst reports whether the list is made from records before the upstream is asked.
func (s *ListScore) IsRecordsFirst() bool { return s.First == "records" }

// IsPinned reports whether the settings decide what is used first.
func (s *ListScore) IsPinned() bool { return s.Answers != "auto" }

// IsNotable reports whether there is anything to report: a sample, or an order other than the usual one.
func (s *ListScore) IsNotable() bool { return s.Samples > 0 || s.IsRecordsFirst() || s.IsPinned() }

// Hot is the mirror's memory use, including bookkeeping. Its JSON is part of /-/stats, where names are only
// ever added.
type Hot struct {
	Bytes int64 `json:"bytes"` // bytes in use
	Limit int64 `json:"limit"`
	Pages int64 `json:"pages"`
}

// Media counts answers with contents (audio, images) and the stored contents. The stored contents are those of
// all sources, and 0 in the counts of a single source. Its JSON is part of /-/stats, where names are only ever
// added.
type Media struct {
	Requests  int64 `json:"requests"` // contents requested
	Warm      int64 `json:"warm"`     // answered from a file
	Stale     int64 `json:"stale"`    // answered from a stale file
	Cold      int64 `json:"cold"`     // answered from the upstream, or from a file that was just downloaded
	Failed    int64 `json:"failed"`   // ended in an error
	Kept      int64 `json:"kept"`     // downloaded completely and stored
	NotKept   int64 `json:"not_kept"` // downloaded but not stored: too large or no space
	Files     int64 `json:"files"`    // files stored now
	Bytes     int64 `json:"bytes"`
	Limit     int64 `json:"limit"`
	FileLimit int64 `json:"file_limit"` // largest size of one file
	Evicted   int64 `json:"evicted"`    // removed to stay below the limit
	Forgotten int64 `json:"forgotten"`  // removed with their records
}

// Add adds the answers that o counts.
func (m *Media) Add(o *Media) {
	m.Requests, m.Warm, m.Stale, m.Cold = m.Requests+o.Requests, m.Warm+o.Warm, m.Stale+o.Stale, m.Cold+o.Cold
	m.Failed, m.Kept, m.NotKept = m.Failed+o.Failed, m.Kept+o.Kept, m.NotKept+o.NotKept
}

// Progress says how far a sync is, in records. Its JSON is part of /-/stats and /-/sync, where names are only
// ever added.
type Progress struct {
	Done    int64  `json:"done"`
	Total   *int64 `json:"total"`          // null if not known
	ETA     int64  `json:"eta,omitempty"`  // remaining time in seconds; 0 if not known or nothing is running
	Walk    string `json:"walk,omitempty"` // current walk and number of walks, "1 of 2"
	Running bool   `json:"running,omitempty"`
}

// Webhook is the state of one webhook. Its JSON is part of /-/stats and of /-/webhooks, where names are only
// ever added.
type Webhook struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"`
	State     string    `json:"state"` // ok, failing or paused
	Why       string    `json:"why,omitempty"`
	Failing   time.Time `json:"failing_since,omitzero"`
	After     int64     `json:"after"`     // number of the last change before which everything is delivered
	Behind    int64     `json:"behind"`    // number of changes after that, wanted or not
	Delivered int64     `json:"delivered"` // number of changes ever delivered
	At        time.Time `json:"delivered_at,omitzero"`
}
