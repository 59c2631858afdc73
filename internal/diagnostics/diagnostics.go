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
