// Diagnostics: the snapshot that health and stats are made from.

// Package diagnostics says how the house is: health and counters.
package diagnostics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"understudy"
)

// Snapshot is how the house is at one moment. Its JSON is /-/stats: names are
// only added and counters only rise.
type Snapshot struct {
	Requests  int64             `json:"requests"`
	Warm      int64             `json:"warm"`
	Stale     int64             `json:"stale"`
	Cold      int64             `json:"cold"`
	Composed  int64             `json:"composed"`
	Coalesced int64             `json:"coalesced"`
	NotStored int64             `json:"not_stored"`
	Upstream  Upstream          `json:"upstream"`
	Hot       Hot               `json:"hot"`
	Sources   map[string]Source `json:"sources"`
	Limits    map[string]Limit  `json:"limits"` // of the whole house, by name
	Faces     map[string]Face   `json:"faces"`  // by name
	Process   Process           `json:"process"`
	Settings  Settings          `json:"settings"`
}

// Limit is one bound: what it is, what is in use of it, and how often it bit.
type Limit struct {
	Limit     int64 `json:"limit"`
	Now       int64 `json:"now"`
	Refused   int64 `json:"refused"`              // turned away, or not begun
	Dropped   int64 `json:"dropped,omitempty"`    // idle ones that made room for others
	OldestMS  int64 `json:"oldest_ms,omitempty"`  // how long the one who waits longest has waited
	LongestMS int64 `json:"longest_ms,omitempty"` // the longest anybody has
}

// Face is one listening port.
type Face struct {
	Limits map[string]Limit `json:"limits"`
}

// Process is what the process holds.
type Process struct {
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"fds"`
	Resident    int64 `json:"rss"` // bytes
}

// Settings say when the settings were last read.
type Settings struct {
	LoadedAt    *time.Time `json:"loaded_at,omitempty"` // and applied
	NeedRestart []string   `json:"need_restart,omitempty"`
	FailedAt    *time.Time `json:"failed_at,omitempty"` // the last reading, if it failed
	Error       string     `json:"error,omitempty"`
}

// Upstream counts requests that went out, over all sources.
type Upstream struct {
	Requests int64            `json:"requests"`
	Errors   int64            `json:"errors"`
	ByReason map[string]int64 `json:"by_reason"`
}

// Hot is the mirror's memory.
type Hot struct {
	Bytes int64 `json:"bytes"` // in use
	Limit int64 `json:"limit"`
	Pages int64 `json:"pages"`
}

// Source is one source: "ok", or why it is not.
type Source struct {
	State     string          `json:"state"` // ok, down, credential, limited
	Why       string          `json:"why,omitempty"`
	Since     *time.Time      `json:"since,omitempty"`
	NextProbe *time.Time      `json:"next_probe,omitempty"`
	Kinds     map[string]Kind `json:"kinds"`

	Limits map[string]Limit `json:"limits"`
}

// Kind is how much is held of a kind.
type Kind struct {
	Records    int64      `json:"records"`
	Complete   bool       `json:"complete"`
	CaughtUpTo *time.Time `json:"caught_up_to,omitempty"` // its newest page was read then
}

// Options are what the handlers ask. All functions are called by many requests
// at once and must honour their context.
type Options struct {
	// Snapshot reads the counters.
	Snapshot func(ctx context.Context) (Snapshot, error)
	// Readable fails when the store cannot be read.
	Readable func(ctx context.Context) error
	// Ending reports that shutdown has begun.
	Ending func() bool
	// Loads says when the settings were read; nil: nobody knows.
	Loads func() Settings
	// Person names who asks for stats; health needs nobody.
	Person func(*http.Request) (understudy.Caller, error)
	Logger *slog.Logger // nil: discard
}

// Diagnostics answers /-/health and /-/stats. It is safe for concurrent use.
type Diagnostics struct{ o Options }

// New makes the handlers. Every function of Options must be set.
func New(o Options) *Diagnostics {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Loads == nil {
		o.Loads = func() Settings { return Settings{} }
	}
	return &Diagnostics{o: o}
}

// Routes are the patterns Handler serves.
func Routes() []string { return []string{"/-/health", "/-/stats"} }

// Handler serves both pages; any other path is 404.
func (d *Diagnostics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /-/health", d.Health())
	mux.HandleFunc("GET /-/stats", d.stats)
	return mux
}
