// This file declares the states that packages report about themselves to frontends.

package request

import "time"

// Load is one limit: its value, how much of it is in use, and how often it was reached.
type Load struct {
	Limit     int64   `json:"limit"`
	Now       int64   `json:"now"`
	Refused   int64   `json:"refused"`               // the number of requests that were refused or not started
	Dropped   int64   `json:"dropped,omitempty"`     // the number of idle entries that were removed to make room for others
	OldestMS  int64   `json:"oldest_ms,omitempty"`   // how long the longest waiting request has waited until now, in ms
	LongestMS int64   `json:"longest_ms,omitempty"`  // the longest wait of a request so far, in ms
	AtOnce    int     `json:"at_once,omitempty"`     // the number of concurrent requests that the upstream handles well, if known
	Why       string  `json:"at_once_why,omitempty"` // why AtOnce is lower than the settings allow
	Reserve   float64 `json:"reserve,omitempty"`     // the number of tokens that requests without a reader leave to readers
}

// ListScore says how one list of a source is answered, and how often an answer from records agreed with the upstream.
// Its JSON is part of /-/stats, where names are added but never removed.
type ListScore struct {
	Kind    string `json:"-"`
	Title   string `json:"-"`       // the title of the list in the spec
	Path    string `json:"path"`    // the path of the list in the spec
	Answers string `json:"answers"` // the setting for the list: auto, upstream or records
	First   string `json:"first"`   // the way of answering that is tried first now: upstream or records
	Equal   int64  `json:"equal"`   // the number of successive samples without a difference
	// The number of successive samples without a difference from which records are used first
	Enough     int64     `json:"enough"`
	Samples    int64     `json:"samples"`              // the number of samples
	Differing  int64     `json:"differing"`            // the number of samples with a difference
	Field      string    `json:"field,omitempty"`      // the field that differed last, or another reason in parentheses
	Where      string    `json:"where,omitempty"`      // the place of the last difference
	DifferedAt time.Time `json:"differed_at,omitzero"` // the time of the last difference, or zero if there was none
}

// IsRecordsFirst reports whether the list is made from records before the upstream is asked.
func (s *ListScore) IsRecordsFirst() bool { return s.First == "records" }

// IsPinned reports whether the settings decide what is used first.
func (s *ListScore) IsPinned() bool { return s.Answers != "auto" }

// IsNotable reports whether there is anything to report: a sample, or that records are used first, or a setting.
func (s *ListScore) IsNotable() bool { return s.Samples > 0 || s.IsRecordsFirst() || s.IsPinned() }

// Hot is the mirror's memory use, including bookkeeping. Its JSON is part of /-/stats, where names are added but never
// removed.
type Hot struct {
	Bytes int64 `json:"bytes"` // bytes in use
	Limit int64 `json:"limit"`
	Pages int64 `json:"pages"`
}

// Media counts answers with contents (audio, images) and the stored contents. The stored contents are those of all
// sources, and 0 in the counts of a single source. Its JSON is part of /-/stats, where names are added but never
// removed.
type Media struct {
	Requests int64 `json:"requests"` // the number of requests for contents
	Warm     int64 `json:"warm"`     // the number of answers from a fresh file
	Stale    int64 `json:"stale"`    // the number of answers from a stale file
	Cold     int64 `json:"cold"`     // the number of answers from the upstream, or from a file that was just downloaded
	Failed   int64 `json:"failed"`   // the number of requests that ended in an error
	Kept     int64 `json:"kept"`     // the number of contents that were downloaded completely and stored
	// The number of contents that were downloaded but not stored, because they were too large or there was no space
	NotKept   int64 `json:"not_kept"`
	Files     int64 `json:"files"` // the number of files that are stored now
	Bytes     int64 `json:"bytes"`
	Limit     int64 `json:"limit"`
	FileLimit int64 `json:"file_limit"` // the maximum size of one file in bytes
	Evicted   int64 `json:"evicted"`    // the number of files removed to stay below the limit
	Forgotten int64 `json:"forgotten"`  // the number of files removed together with their records
}

// Add adds the answers that o counts.
func (m *Media) Add(o *Media) {
	m.Requests, m.Warm, m.Stale, m.Cold = m.Requests+o.Requests, m.Warm+o.Warm, m.Stale+o.Stale, m.Cold+o.Cold
	m.Failed, m.Kept, m.NotKept = m.Failed+o.Failed, m.Kept+o.Kept, m.NotKept+o.NotKept
}

// Progress says how far a sync is, in records. Its JSON is part of /-/stats and /-/sync, where names are added but
// never removed.
type Progress struct {
	Done    int64  `json:"done"`
	Total   *int64 `json:"total"`          // the number of all records, or null if it is not known
	ETA     int64  `json:"eta,omitempty"`  // the remaining time in seconds, or 0 if it is not known or nothing is running
	Walk    string `json:"walk,omitempty"` // the current walk and the number of walks, as in "1 of 2"
	Running bool   `json:"running,omitempty"`
}

// Webhook is the state of one webhook. Its JSON is part of /-/stats and /-/webhooks, where names are added but never
// removed.
type Webhook struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"`
	State     string    `json:"state"` // the state of the webhook: ok, failing or paused
	Why       string    `json:"why,omitempty"`
	Failing   time.Time `json:"failing_since,omitzero"`
	After     int64     `json:"after"`     // the number of the last change up to which every change was delivered
	Behind    int64     `json:"behind"`    // the number of changes after that change, whether the webhook wants them or not
	Delivered int64     `json:"delivered"` // the number of changes delivered so far
	At        time.Time `json:"delivered_at,omitzero"`
}

// Node is the state of one of the processes that share a database.
type Node struct {
	ID      string `json:"id"`
	Self    bool   `json:"self,omitempty"` // whether this process is the one that answers
	URL     string `json:"url,omitempty"`  // where other processes reach it
	Version string `json:"version"`
	Lease   int64  `json:"lease_ms"` // for how many milliseconds it may still answer from memory; 0 if its lease has ended
	Behind  int64  `json:"behind"`   // the number of changes of others that its memory does not contain yet
}
