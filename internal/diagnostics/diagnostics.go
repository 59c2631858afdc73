// Diagnostics: the snapshot that health and stats are made from.

// Package diagnostics says how the house is (health and counters), and lets who
// holds its token forget things.
package diagnostics

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
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
	Store     Store             `json:"store"`
	Sources   map[string]Source `json:"sources"`
	Limits    map[string]Limit  `json:"limits"` // of the whole house, by name
	Faces     map[string]Face   `json:"faces"`  // by name
	Process   Process           `json:"process"`
	Media     Media             `json:"media"`
	Settings  Settings          `json:"settings"`
	Jobs      Jobs              `json:"jobs"`
	Webhooks  []Webhook         `json:"webhooks,omitempty"`
	Erasing   Waiting           `json:"erasing"` // listed and not erased yet
}

// Jobs counts promised work. Done to Lost count since the process began.
type Jobs struct {
	Waiting   int64  `json:"waiting"`   // now, over all processes
	Running   int64  `json:"running"`   // now, over all processes
	Archived  int64  `json:"archived"`  // now
	Gathering int64  `json:"gathering"` // of those that run here, waiting for room in memory
	Weight    int64  `json:"weight"`    // bytes of those that run here
	Memory    int64  `json:"memory"`    // bytes they may weigh
	Begun     int64  `json:"begun"`     // runs
	Done      int64  `json:"done"`
	Failed    int64  `json:"failed"`
	Cancelled int64  `json:"cancelled"`
	Expired   int64  `json:"expired"`
	Again     int64  `json:"again"` // runs after which the job waits again
	Lost      int64  `json:"lost"`  // leases
	Trouble   string `json:"trouble,omitempty"`
}

// Webhook is how one webhook out does.
type Webhook struct {
	Name      string     `json:"name"`
	Source    string     `json:"source"`
	State     string     `json:"state"` // ok, failing, paused
	Why       string     `json:"why,omitempty"`
	Failing   *time.Time `json:"failing_since,omitempty"`
	After     int64      `json:"after"`     // everything up to this change is delivered
	Behind    int64      `json:"behind"`    // changes after it, wanted or not
	Delivered int64      `json:"delivered"` // changes, ever
	At        *time.Time `json:"delivered_at,omitempty"`
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

// Media counts contents (audio, images), over all sources, and says what is
// held of them.
type Media struct {
	Requests  int64 `json:"requests"`
	Warm      int64 `json:"warm"`
	Stale     int64 `json:"stale"`
	Cold      int64 `json:"cold"`
	Failed    int64 `json:"failed"`
	Kept      int64 `json:"kept"`
	NotKept   int64 `json:"not_kept"` // too large, or no room
	Files     int64 `json:"files"`    // held now
	Bytes     int64 `json:"bytes"`
	Limit     int64 `json:"limit"`
	FileLimit int64 `json:"file_limit"` // of one of them
	Evicted   int64 `json:"evicted"`    // went to stay under the limit
	Forgotten int64 `json:"forgotten"`  // went with their records
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

// Store is what the store takes on disk, in bytes, and what had to go for it.
type Store struct {
	File            int64      `json:"file"`
	Log             int64      `json:"log"`
	Free            int64      `json:"free"`  // inside the file
	Limit           int64      `json:"limit"` // of file and log; 0: none
	EvictedPages    int64      `json:"evicted_pages"`
	EvictedVersions int64      `json:"evicted_versions"`
	EvictedAt       *time.Time `json:"evicted_at,omitempty"` // the last time
	Trouble         string     `json:"trouble,omitempty"`    // why nothing can be saved
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
	Complete   bool       `json:"complete"`               // no record upstream has is missing
	Why        string     `json:"why,omitempty"`          // why it is not, of a kind that is synced
	CaughtUpTo *time.Time `json:"caught_up_to,omitempty"` // its newest page was read then; of a kind that is synced: no record before is missing
	Swept      *time.Time `json:"swept,omitempty"`        // every part of it was walked since
	Sync       *Sync      `json:"sync,omitempty"`         // of a kind that is synced
	Lists      []List     `json:"lists,omitempty"`        // those of which it is known how well records tell what upstream says
}

// List is how one list is answered, and how well records tell what upstream
// says.
type List struct {
	Path       string     `json:"path"`                  // as the spec has it
	Answers    string     `json:"answers"`               // as it is set: auto, upstream, records
	First      string     `json:"first"`                 // who is asked first now: upstream, records
	Equal      int64      `json:"equal"`                 // samples in a row without a difference
	Enough     int64      `json:"enough"`                // so many of them make it records first
	Samples    int64      `json:"samples"`               // all
	Differing  int64      `json:"differing"`             // of these
	Field      string     `json:"field,omitempty"`       // that differed last
	Where      string     `json:"where,omitempty"`       // it stood
	DifferedAt *time.Time `json:"differed_at,omitempty"` // it did
}

// Sync is how far a walk over a whole kind has come, in records.
type Sync struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`         // 0: not known yet
	ETA   int64 `json:"eta,omitempty"` // seconds; 0: not known, or none is under way
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
	// All reports whether a caller sees every record of every source; nil: who
	// has the role all does.
	All func(understudy.Caller) bool
	// Sees reports whether a caller sees anything of a kind; nil: only who sees
	// all does.
	Sees func(c understudy.Caller, source, kind string) bool
	// Bound reports whether a caller may find some records alone, anywhere; nil:
	// nobody is.
	Bound func(understudy.Caller) bool
	// Purge forgets; an error that wraps understudy.ErrInvalid says that what
	// is named is not known.
	Purge func(context.Context, Purge) (Purged, error)
	// Erase lists for erasing, or only says what it would; errors as of Purge.
	Erase func(context.Context, Erase) (Erasing, error)
	// Receipts reads receipts with numbers below before (0: all), the newest
	// first.
	Receipts func(ctx context.Context, before int64, limit int) (Receipts, error)
	// Index says how far the indexes are; with anew it first empties them, to be
	// made anew. nil: there are none.
	Index func(ctx context.Context, anew bool) (Indexed, error)
	// Token is what who purges or erases has to bear; "": nobody may.
	Token  string
	Logger *slog.Logger // nil: discard
}

// Diagnostics answers /-/health, /-/stats and /-/purge. It is safe for
// concurrent use.
type Diagnostics struct {
	o          Options
	unreadable atomic.Bool // the store; it is logged once
}

// New makes the handlers. Every function of Options must be set but those that
// say what nil means.
func New(o Options) *Diagnostics {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.All == nil {
		o.All = func(c understudy.Caller) bool { return c.Role() == understudy.RoleAll }
	}
	if o.Sees == nil {
		o.Sees = func(understudy.Caller, string, string) bool { return false }
	}
	if o.Bound == nil {
		o.Bound = func(understudy.Caller) bool { return false }
	}
	if o.Loads == nil {
		o.Loads = func() Settings { return Settings{} }
	}
	return &Diagnostics{o: o}
}

// Routes are the patterns Handler serves.
func Routes() []string {
	return []string{"/-/health", "/-/stats", "/-/purge", "/-/erase", "/-/erasures", "/-/index"}
}

// Handler serves all of them; any other path is 404.
func (d *Diagnostics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /-/health", d.Health())
	mux.HandleFunc("GET /-/stats", d.stats)
	mux.HandleFunc("POST /-/purge", d.purge)
	mux.HandleFunc("POST /-/erase", d.erase)
	mux.HandleFunc("GET /-/erasures", d.receipts)
	mux.HandleFunc("GET /-/index", d.index)
	mux.HandleFunc("POST /-/index", d.index)
	return mux
}
