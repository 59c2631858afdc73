// Diagnostics: the snapshot for health and stats.

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

// Snapshot is the state of the process at one moment. Its JSON is /-/stats. Names are only added, and counters only rise.
type Snapshot struct {
	Traffic                          // the traffic of all sources
	Hot      request.Hot             `json:"hot"`
	Store    store.Space             `json:"store"`
	Sources  map[string]Source       `json:"sources"`
	Limits   map[string]request.Load `json:"limits"` // the limits of the whole process, by name
	Ports    map[string]Port         `json:"faces"`  // ports by name
	Process  Process                 `json:"process"`
	Media    request.Media           `json:"media"`
	Settings Settings                `json:"settings"`
	LogMoved bool                    `json:"log_moved,omitempty"` // log.access names another file than the open one
	Jobs     jobs.Stats              `json:"jobs"`
	Webhooks []request.Webhook       `json:"webhooks,omitempty"`
	Erasing  erase.Waiting           `json:"erasing"` // records that wait for erasure
	Audit    *audit.Stats            `json:"audit,omitempty"`
}

// Traffic counts responses by their outcome, and the requests to the upstream for them.
type Traffic struct {
	Requests  int64              `json:"requests"`
	Warm      int64              `json:"warm"`
	Stale     int64              `json:"stale"`
	Cold      int64              `json:"cold"`
	Composed  int64              `json:"composed"`
	Coalesced int64              `json:"coalesced"`
	NotStored int64              `json:"not_stored"`
	Upstream  request.SentCounts `json:"upstream"`
}

// Add adds the counts of o.
func (t *Traffic) Add(o *Traffic) {
	t.Requests, t.Coalesced, t.NotStored = t.Requests+o.Requests, t.Coalesced+o.Coalesced, t.NotStored+o.NotStored
	t.Warm, t.Stale, t.Cold, t.Composed = t.Warm+o.Warm, t.Stale+o.Stale, t.Cold+o.Cold, t.Composed+o.Composed
	t.Upstream.Add(&o.Upstream)
}

// Port describes a listening port.
type Port struct {
	Limits  map[string]request.Load `json:"limits"`
	Express int64                   `json:"express"`           // responses of the express lane
	Tunnels *connect.Stats          `json:"tunnels,omitempty"` // the counts of the CONNECT proxy; nil for other ports
}

// Process describes the resources that the process uses.
type Process struct {
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"fds"`
	Resident    int64 `json:"rss"` // resident memory of the process, in bytes
}

// Settings says when the settings were last read.
type Settings struct {
	LoadedAt    time.Time `json:"loaded_at,omitzero"` // when the settings in force were read
	NeedRestart []string  `json:"need_restart,omitempty"`
	FailedAt    time.Time `json:"failed_at,omitzero"` // when reading failed, if the last reading failed
	Error       string    `json:"error,omitempty"`
	Policy      int64     `json:"policy"` // rises with every policy that is put in force
}

// Times are the response times of the upstream for reads of one kind and one reason, since the process began.
type Times struct {
	Kind    string `json:"kind"` // "" = paths that the spec does not name
	Reason  string `json:"reason"`
	Answers int64  `json:"answers"`
	Lost    int64  `json:"lost"`       // tries without any response
	First   Spread `json:"first_byte"` // the time from sending the request to the response header
	Whole   Spread `json:"whole"`      // the time from sending the request to the last byte
}

// Spread summarises durations, in milliseconds.
type Spread struct {
	Mean      float64 `json:"mean_ms"`
	Deviation float64 `json:"deviation_ms"`
	Min       float64 `json:"min_ms"`
	Max       float64 `json:"max_ms"`
	Range     float64 `json:"range_ms"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

// Source is the state of a source.
type Source struct {
	State     string          `json:"state"` // ok, down, credential or limited
	Why       string          `json:"why,omitempty"`
	Since     time.Time       `json:"since,omitzero"`
	NextProbe time.Time       `json:"next_probe,omitzero"`
	Kinds     map[string]Kind `json:"kinds"`

	Limits map[string]request.Load `json:"limits"`
	Times  []Times                 `json:"times,omitempty"` // figures by kind and reason; only for callers who see everything
	Spent  []request.Spending      `json:"spent,omitempty"` // figures by hour; only for callers who see everything

	// Traffic replaces the traffic of all sources for a caller who sees only this source.
	Traffic Traffic `json:"-"`
}

// Kind says how much of a kind is stored.
type Kind struct {
	Records    int64               `json:"records"`
	Complete   bool                `json:"complete"`      // whether every record of the upstream is stored
	Why        string              `json:"why,omitempty"` // why the kind is not complete, if it is synced
	CaughtUpTo time.Time           `json:"caught_up_to,omitzero"`
	Swept      time.Time           `json:"swept,omitzero"`     // when the oldest part of the kind was last walked
	Sync       *request.Progress   `json:"sync,omitempty"`     // the progress of the sync, if the kind is synced
	Lists      []request.ListScore `json:"lists,omitempty"`    // the lists whose agreement with the upstream was measured
	NoClock    int64               `json:"no_clock,omitempty"` // records without a readable time, counted up to 1,000
}

// Options are the functions that the handlers call. They are called concurrently and must honour their context.
type Options struct {
	// Snapshot reads the counters.
	Snapshot func(ctx context.Context) (Snapshot, error)
	// Readable returns an error if the store cannot be read.
	Readable func(ctx context.Context) error
	// Ending reports whether shutdown has begun.
	Ending func() bool
	// Loads returns when the settings were read; nil: unknown.
	Loads func() Settings
	// Person returns the caller of stats; health needs no caller.
	Person func(*http.Request) (understudy.Caller, error)
	// All reports whether a caller sees every record of every source; nil: callers with the role all.
	All func(understudy.Caller) bool
	// Sees reports whether a caller sees anything of a kind; nil: only callers who see everything.
	Sees func(c understudy.Caller, source, kind string) bool
	// Bound reports whether row rules restrict a caller in any source; nil: they restrict no caller.
	Bound func(understudy.Caller) bool
	// Purge removes a page or a record. Its error wraps understudy.ErrInvalid for an unknown name.
	Purge func(context.Context, Purge) (Purged, error)
	// Erase lists records for erasing, or with Dry only counts them. Its errors are like those of Purge.
	Erase func(context.Context, Erase) (Erasing, error)
	// Receipts returns receipts with numbers below before (0: all), the newest first.
	Receipts func(ctx context.Context, before int64, limit int) (Receipts, error)
	// Index returns how far the indexes are. With anew it empties them first, so that they are built again.
	// nil: there are no indexes.
	Index func(ctx context.Context, anew bool) (Indexed, error)
	// Reload reads the settings again and returns those that need a restart; nil: there is no settings file.
	Reload func(context.Context) (restart []string, err error)
	// Credentials manages the credentials of programs; nil: none can be created.
	Credentials Credentials
	// Now returns the time from which the duration of a credential counts.
	Now func() time.Time
	// Explain returns what a role sees of a record; nil: not available. Its errors are those of
	// access.Gate.ExplainRecord.
	Explain func(role, source, kind, id string) (*access.RecordExplanation, error)
	// Audit records what commands do, before they do it; nil: nothing is recorded.
	Audit understudy.Auditor
	// Token is the token that purge, erase and reload requests need; "": they are refused.
	Token string
	// Profiles takes profiles; nil: profiles are not available.
	Profiles *profile.Recorder
	// ProfilePage shows the page of profiles to an admitted caller; nil: there is only JSON.
	ProfilePage func(w http.ResponseWriter, r *http.Request, page *ProfilePage)
	// ProfileRefused shows a browser why its caller was not admitted; nil: the error is sent as JSON.
	ProfileRefused func(w http.ResponseWriter, r *http.Request, err error)
	// PublicURL is the viewer's origin if a server in front of it changes the origin. Forms from that origin are accepted.
	PublicURL string
	Logger    *slog.Logger // nil means no log
}

// Diagnostics has the handlers of /-/health, /-/stats, /-/purge and others (see Routes). It is safe for
// concurrent use.
type Diagnostics struct {
	o          Options
	unreadable atomic.Bool // whether the store could not be read; the error is logged once
	forms      *http.CrossOriginProtection
}

// New returns the handlers. Every function of Options must be set, except those that say what nil means.
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

// Routes returns the patterns that Handler serves.
func Routes() []string {
	return []string{
		"/-/health", "/-/stats", "/-/stats/figures", "/-/purge", "/-/reload", "/-/credentials", "/-/credentials/{name}/rotate",
		"/-/credentials/{name}/revoke", "/-/erase", "/-/erasures", "/-/explain", "/-/index",
		"/-/profile", "/-/profile/stop", "/-/profile/allocs", "/-/profile/cpu", "/-/profile/kept/{id}",
	}
}

// Handler returns the handler of all routes; any other path gets status 404.
func (d *Diagnostics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /-/health", d.Health())
	known := &jsonapi.Options{Identify: func(r *http.Request) (understudy.Caller, error) { return jsonapi.IdentifyPerson(r, "", d.o.Person) }}
	mux.Handle("GET /-/stats", jsonapi.Handle(known, d.showStats))
	mux.Handle("GET /-/stats/figures", jsonapi.Handle(known, showFigures))
	mux.Handle("POST /-/purge", jsonapi.HandleBody(d.command(purgeTimeout, maxPurge), d.purge))
	mux.Handle("POST /-/reload", jsonapi.Handle(d.command(reloadTimeout, 0), d.reload))
	made := d.command(purgeTimeout, maxCredential)
	if d.o.Credentials != nil {
		mux.Handle("GET /-/credentials", jsonapi.Handle(made, d.listCredentials))
		mux.Handle("POST /-/credentials", jsonapi.HandleBody(made, d.makeCredential))
		mux.Handle("POST /-/credentials/{name}/rotate", jsonapi.HandleBody(made, d.rotateCredential))
		mux.Handle("POST /-/credentials/{name}/revoke", jsonapi.Handle(made, d.revokeCredential))
	}
	if d.o.Explain != nil {
		mux.Handle("GET /-/explain", jsonapi.Handle(made, d.explain))
	}
	mux.Handle("POST /-/erase", jsonapi.HandleBody(d.command(eraseTimeout, maxErase), d.erase))
	receipts := &jsonapi.Options{Identify: d.admitUnrestricted(receiptsForAll), Timeout: receiptTimeout}
	mux.Handle("GET /-/erasures", jsonapi.Handle(receipts, d.listReceipts))
	index := jsonapi.Handle(d.command(indexTimeout, 0), d.index)
	mux.Handle("GET /-/index", index)
	mux.Handle("POST /-/index", index)
	mux.HandleFunc("GET /-/profile", d.profiles(d.showProfiles))
	mux.HandleFunc("POST /-/profile", d.profiles(d.startProfile))
	mux.HandleFunc("POST /-/profile/stop", d.profiles(d.stopProfile))
	mux.HandleFunc("GET /-/profile/allocs", d.profiles(d.take(profile.Allocs)))
	mux.HandleFunc("GET /-/profile/cpu", d.profiles(d.take(profile.CPU)))
	mux.HandleFunc("GET /-/profile/kept/{id}", d.profiles(d.sendKeptProfile))
	return mux
}
