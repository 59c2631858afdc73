// Diagnostics: the snapshot that health and stats are made from.

// Package diagnostics reports the state of the process: health, counters and
// profiles. It also purges and erases data for callers with its token.
package diagnostics

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/audit"
	"understudy/internal/connect"
	"understudy/internal/diagnostics/profile"
	"understudy/internal/jobs"
	"understudy/internal/jsonapi"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// Snapshot is the state of the process at one moment. Its JSON is /-/stats. Names
// are only added, and counters only rise.
type Snapshot struct {
	Traffic                          // of all sources
	Hot      request.Hot             `json:"hot"`
	Store    store.Space             `json:"store"`
	Sources  map[string]Source       `json:"sources"`
	Limits   map[string]request.Load `json:"limits"` // of the whole process, by name
	Ports    map[string]Port         `json:"faces"`  // by name
	Process  Process                 `json:"process"`
	Media    request.Media           `json:"media"`
	Settings Settings                `json:"settings"`
	LogMoved bool                    `json:"log_moved,omitempty"` // log.access names another file than the one that is written
	Jobs     jobs.Stats              `json:"jobs"`
	Webhooks []request.Webhook       `json:"webhooks,omitempty"`
	Erasing  erase.Waiting           `json:"erasing"` // listed and not erased yet
	Audit    *audit.Stats            `json:"audit,omitempty"`
}

// Traffic counts answers by how they came, and what went out for them.
type Traffic struct {
	Requests  int64        `json:"requests"`
	Warm      int64        `json:"warm"`
	Stale     int64        `json:"stale"`
	Cold      int64        `json:"cold"`
	Composed  int64        `json:"composed"`
	Coalesced int64        `json:"coalesced"`
	NotStored int64        `json:"not_stored"`
	Upstream  request.Sent `json:"upstream"`
}

// Add adds what another counts.
func (t *Traffic) Add(o *Traffic) {
	t.Requests, t.Coalesced, t.NotStored = t.Requests+o.Requests, t.Coalesced+o.Coalesced, t.NotStored+o.NotStored
	t.Warm, t.Stale, t.Cold, t.Composed = t.Warm+o.Warm, t.Stale+o.Stale, t.Cold+o.Cold, t.Composed+o.Composed
	t.Upstream.Add(&o.Upstream)
}

// Port is one listening port.
type Port struct {
	Limits  map[string]request.Load `json:"limits"`
	Express int64                   `json:"express"`           // answers of the express lane
	Tunnels *connect.Stats          `json:"tunnels,omitempty"` // of the proxy; nil: the port is none
}

// Process is what the process holds.
type Process struct {
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"fds"`
	Resident    int64 `json:"rss"` // bytes
}

// Settings say when the settings were last read.
type Settings struct {
	LoadedAt    time.Time `json:"loaded_at,omitzero"` // and applied
	NeedRestart []string  `json:"need_restart,omitempty"`
	FailedAt    time.Time `json:"failed_at,omitzero"` // the last reading, if it failed
	Error       string    `json:"error,omitempty"`
	Policy      int64     `json:"policy"` // rises with every policy that is put in force
}

// Times are what upstream's answers to reads of one kind for one reason took,
// since the process began.
type Times struct {
	Kind    string `json:"kind"` // "" = paths the spec does not name
	Reason  string `json:"reason"`
	Answers int64  `json:"answers"`
	Lost    int64  `json:"lost"`       // tries that ended in silence
	First   Spread `json:"first_byte"` // from the sending to the head
	Whole   Spread `json:"whole"`      // to the last byte
}

// Spread is how long something took, in milliseconds.
type Spread struct {
	Mean      float64 `json:"mean_ms"`
	Deviation float64 `json:"deviation_ms"`
	Min       float64 `json:"min_ms"`
	Max       float64 `json:"max_ms"`
	Range     float64 `json:"range_ms"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

// Source is one source: "ok", or why it is not.
type Source struct {
	State     string          `json:"state"` // ok, down, credential, limited
	Why       string          `json:"why,omitempty"`
	Since     time.Time       `json:"since,omitzero"`
	NextProbe time.Time       `json:"next_probe,omitzero"`
	Kinds     map[string]Kind `json:"kinds"`

	Limits map[string]request.Load `json:"limits"`
	Times  []Times                 `json:"times,omitempty"` // by kind and reason; only for callers that see everything
	Spent  []request.Spending      `json:"spent,omitempty"` // by hour; likewise

	// Traffic replaces the traffic of all sources for a caller of this source alone.
	Traffic Traffic `json:"-"`
}

// Kind is how much is held of a kind.
type Kind struct {
	Records    int64               `json:"records"`
	Complete   bool                `json:"complete"`      // no record upstream has is missing
	Why        string              `json:"why,omitempty"` // why it is not, of a kind that is synced
	CaughtUpTo time.Time           `json:"caught_up_to,omitzero"`
	Swept      time.Time           `json:"swept,omitzero"`     // every part of it was walked since
	Sync       *request.Progress   `json:"sync,omitempty"`     // of a kind that is synced
	Lists      []request.ListScore `json:"lists,omitempty"`    // those whose agreement with upstream was measured
	NoClock    int64               `json:"no_clock,omitempty"` // records that have no time, or none that can be read, up to 1,000
}

// Options are what the handlers call. Many requests call the functions at once, and
// they must honour their context.
type Options struct {
	// Snapshot reads the counters.
	Snapshot func(ctx context.Context) (Snapshot, error)
	// Readable fails when the store cannot be read.
	Readable func(ctx context.Context) error
	// Ending reports that shutdown has begun.
	Ending func() bool
	// Loads returns when the settings were read; nil: not known.
	Loads func() Settings
	// Person returns the caller of stats; health needs no caller.
	Person func(*http.Request) (understudy.Caller, error)
	// All reports whether a caller sees every record of every source; nil: callers
	// with the role all.
	All func(understudy.Caller) bool
	// Sees reports whether a caller sees anything of a kind; nil: only callers that
	// see everything.
	Sees func(c understudy.Caller, source, kind string) bool
	// Bound reports whether row rules bind a caller in any source; nil: they bind no
	// caller.
	Bound func(understudy.Caller) bool
	// Purge forgets a key or a record. An error that wraps understudy.ErrInvalid says that
	// the name is not known.
	Purge func(context.Context, Purge) (Purged, error)
	// Erase lists records for erasing, or with dry only counts them; errors as of Purge.
	Erase func(context.Context, Erase) (Erasing, error)
	// Receipts reads receipts with numbers below before (0: all), the newest
	// first.
	Receipts func(ctx context.Context, before int64, limit int) (Receipts, error)
	// Index says how far the indexes are; with anew it first empties them, to be
	// made anew. nil: there are none.
	Index func(ctx context.Context, anew bool) (Indexed, error)
	// Reload reads the settings again and names those that wait for a restart; nil: there
	// are none to read.
	Reload func(context.Context) (restart []string, err error)
	// Credentials makes those of programs; nil: none is made.
	Credentials Credentials
	// Now is the time from which a credential that ends after a duration counts.
	Now func() time.Time
	// Explain says what a role sees of a record; nil: it is not told. Errors are those of
	// access.Gate.ExplainRecord.
	Explain func(role, source, kind, id string) (*access.Explained, error)
	// Audit lists what commands do, before they do it; nil: nothing is listed.
	Audit understudy.Auditor
	// Token is the token that purge, erase and reload requests need; "": they are refused.
	Token string
	// Profiles takes profiles; nil: profiles are not available.
	Profiles *profile.Recorder
	// ProfilePage shows their page to a caller that was admitted; nil: it is there as JSON alone.
	ProfilePage func(w http.ResponseWriter, r *http.Request, page *ProfilePage)
	// ProfileRefused tells a browser why its caller was not; nil: it is told in JSON.
	ProfileRefused func(w http.ResponseWriter, r *http.Request, err error)
	// PublicURL is the viewer's origin, when a server in front gives it another;
	// forms from there are taken.
	PublicURL string
	Logger    *slog.Logger // nil: discard
}

// Diagnostics answers /-/health, /-/stats and /-/purge. It is safe for
// concurrent use.
type Diagnostics struct {
	o          Options
	unreadable atomic.Bool // the store; it is logged once
	forms      *http.CrossOriginProtection
}

// New makes the handlers. Every function of Options must be set but those that
// say what nil means.
func New(o Options) *Diagnostics {
	understudy.SetDefaults(&o.Logger, nil)
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
	forms, _ := jsonhttp.NewFormProtection(o.PublicURL) // a malformed URL adds no origin
	return &Diagnostics{o: o, forms: forms}
}

// Routes are the patterns Handler serves.
func Routes() []string {
	return []string{
		"/-/health", "/-/stats", "/-/stats/figures", "/-/purge", "/-/reload", "/-/credentials", "/-/credentials/{name}/rotate",
		"/-/credentials/{name}/revoke", "/-/erase", "/-/erasures", "/-/explain", "/-/index",
		"/-/profile", "/-/profile/stop", "/-/profile/allocs", "/-/profile/cpu", "/-/profile/kept/{id}",
	}
}

// Handler serves all of them; any other path is 404.
func (d *Diagnostics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /-/health", d.Health())
	known := &jsonapi.Options{Who: func(r *http.Request) (understudy.Caller, error) { return jsonapi.Person(r, "", d.o.Person) }}
	mux.Handle("GET /-/stats", jsonapi.Handle(known, d.stats))
	mux.Handle("GET /-/stats/figures", jsonapi.Handle(known, figures))
	mux.Handle("POST /-/purge", jsonapi.HandleBody(d.command(purgeTime, maxPurge), d.purge))
	mux.Handle("POST /-/reload", jsonapi.Handle(d.command(reloadTime, 0), d.reload))
	made := d.command(purgeTime, maxCredential)
	if d.o.Credentials != nil {
		mux.Handle("GET /-/credentials", jsonapi.Handle(made, d.listCredentials))
		mux.Handle("POST /-/credentials", jsonapi.HandleBody(made, d.makeCredential))
		mux.Handle("POST /-/credentials/{name}/rotate", jsonapi.HandleBody(made, d.rotateCredential))
		mux.Handle("POST /-/credentials/{name}/revoke", jsonapi.Handle(made, d.revokeCredential))
	}
	if d.o.Explain != nil {
		mux.Handle("GET /-/explain", jsonapi.Handle(made, d.explain))
	}
	mux.Handle("POST /-/erase", jsonapi.HandleBody(d.command(eraseTime, maxErase), d.erase))
	receipts := &jsonapi.Options{Who: d.whoSeesAll(receiptsForAll), Time: receiptTime}
	mux.Handle("GET /-/erasures", jsonapi.Handle(receipts, d.receipts))
	index := jsonapi.Handle(d.command(indexTime, 0), d.index)
	mux.Handle("GET /-/index", index)
	mux.Handle("POST /-/index", index)
	mux.HandleFunc("GET /-/profile", d.profiles(d.profilePage))
	mux.HandleFunc("POST /-/profile", d.profiles(d.startProfile))
	mux.HandleFunc("POST /-/profile/stop", d.profiles(d.stopProfile))
	mux.HandleFunc("GET /-/profile/allocs", d.profiles(d.take(profile.Allocs)))
	mux.HandleFunc("GET /-/profile/cpu", d.profiles(d.take(profile.CPU)))
	mux.HandleFunc("GET /-/profile/kept/{id}", d.profiles(d.keptProfile))
	return mux
}
