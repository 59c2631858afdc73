// State: what packages tell frontends about themselves.

package request

import "time"

// Load is one limit: its value, how much of it is in use, and how often it was
// reached.
type Load struct {
	Limit     int64   `json:"limit"`
	Now       int64   `json:"now"`
	Refused   int64   `json:"refused"`               // turned away, or not begun
	Dropped   int64   `json:"dropped,omitempty"`     // idle ones that made room for others
	OldestMS  int64   `json:"oldest_ms,omitempty"`   // how long the oldest waiter has waited
	LongestMS int64   `json:"longest_ms,omitempty"`  // the longest wait so far
	AtOnce    int     `json:"at_once,omitempty"`     // requests that upstream takes well at once, as far as is known
	Why       string  `json:"at_once_why,omitempty"` // they are fewer than the settings allow
	Reserve   float64 `json:"reserve,omitempty"`     // tokens that other work leaves to readers
}

// ListScore is how one list of a source is answered, and how often records agreed
// with upstream. Its JSON is part of /-/stats: names are only added.
type ListScore struct {
	Kind       string    `json:"-"`
	Title      string    `json:"-"`                    // in words, as the spec has it
	Path       string    `json:"path"`                 // as the spec has it
	Answers    string    `json:"answers"`              // the setting: auto, upstream, records
	First      string    `json:"first"`                // what is asked first now: upstream, records
	Equal      int64     `json:"equal"`                // samples in a row without a difference
	Enough     int64     `json:"enough"`               // so many of them make it records first
	Samples    int64     `json:"samples"`              // all
	Differing  int64     `json:"differing"`            // of these
	Field      string    `json:"field,omitempty"`      // that differed last, or what else in parentheses
	Where      string    `json:"where,omitempty"`      // it stood
	DifferedAt time.Time `json:"differed_at,omitzero"` // it did; zero: it never did
}

// RecordsFirst reports whether the list is made from records before upstream is
// asked.
func (s *ListScore) RecordsFirst() bool { return s.First == "records" }

// Pinned reports whether the settings say what is asked first.
func (s *ListScore) Pinned() bool { return s.Answers != "auto" }

// Known reports whether there is anything to tell: a sample, or another order
// than the usual one.
func (s *ListScore) Known() bool { return s.Samples > 0 || s.RecordsFirst() || s.Pinned() }

// Hot is the mirror's memory, bookkeeping counted. Its JSON is part of /-/stats: names are only added.
type Hot struct {
	Bytes int64 `json:"bytes"` // in use
	Limit int64 `json:"limit"`
	Pages int64 `json:"pages"`
}

// Media counts answers with contents (audio, images), and says what is held of them. What is held is of all sources: it is
// 0 in the counts of one. Its JSON is part of /-/stats: names are only added.
type Media struct {
	Requests  int64 `json:"requests"` // contents asked for
	Warm      int64 `json:"warm"`     // from a file
	Stale     int64 `json:"stale"`    // from a file past fresh
	Cold      int64 `json:"cold"`     // from upstream, or from a file just brought
	Failed    int64 `json:"failed"`   // ended in an error
	Kept      int64 `json:"kept"`     // brought whole and kept
	NotKept   int64 `json:"not_kept"` // brought, and too large or no room
	Files     int64 `json:"files"`    // held now
	Bytes     int64 `json:"bytes"`
	Limit     int64 `json:"limit"`
	FileLimit int64 `json:"file_limit"` // of one of them
	Evicted   int64 `json:"evicted"`    // removed to stay under the limit
	Forgotten int64 `json:"forgotten"`  // removed with their records
}

// Add adds the answers that another counts.
func (m *Media) Add(o *Media) {
	m.Requests, m.Warm, m.Stale, m.Cold = m.Requests+o.Requests, m.Warm+o.Warm, m.Stale+o.Stale, m.Cold+o.Cold
	m.Failed, m.Kept, m.NotKept = m.Failed+o.Failed, m.Kept+o.Kept, m.NotKept+o.NotKept
}

// Progress is how far a sync has come, in records. Its JSON is part of /-/stats and /-/sync: names are only added.
type Progress struct {
	Done    int64  `json:"done"`
	Total   *int64 `json:"total"`          // null: not known
	ETA     int64  `json:"eta,omitempty"`  // seconds; 0: not known, or nothing is under way
	Walk    string `json:"walk,omitempty"` // which walk of how many, "1 of 2"
	Running bool   `json:"running,omitempty"`
}

// Webhook is the state of one webhook. Its JSON is part of /-/stats and of
// /-/webhooks: names are only added.
type Webhook struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"`
	State     string    `json:"state"` // ok, failing, paused
	Why       string    `json:"why,omitempty"`
	Failing   time.Time `json:"failing_since,omitzero"`
	After     int64     `json:"after"`     // everything up to this change is delivered
	Behind    int64     `json:"behind"`    // changes after it, wanted or not
	Delivered int64     `json:"delivered"` // changes, ever
	At        time.Time `json:"delivered_at,omitzero"`
}
