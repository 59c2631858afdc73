// This file contains the snapshot of the process for health and stats.

// Package diagnostics reports the state of the process: health, counters and profiles. For callers with the token
// of run.json, it also purges and erases data.
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
	"understudy/internal/certificate"
	"understudy/internal/connect"
	"understudy/internal/diagnostics/profile"
	"understudy/internal/jobs"
	"understudy/internal/jsonapi"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/tracing"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// Snapshot is the state of the process at one moment. Its JSON is the response to /-/stats. Names are only added,
// and counters only increase.
type Snapshot struct {
	Traffic                                   // the traffic of all sources
	Hot          request.Hot                  `json:"hot"`
	Store        store.Space                  `json:"store"`
	Sources      map[string]Source            `json:"sources"`
	Limits       map[string]request.Load      `json:"limits"` // the limits of the whole process, by name
	Ports        map[string]Port              `json:"faces"`  // the ports by name
	Process      Process                      `json:"process"`
	Media        request.Media                `json:"media"`
	Settings     Settings                     `json:"settings"`
	LogMoved     bool                         `json:"log_moved,omitempty"` // whether log.access names another file than the open one
	Jobs         jobs.Stats                   `json:"jobs"`
	Webhooks     []request.Webhook            `json:"webhooks,omitempty"`
	Erasing      erase.Waiting                `json:"erasing"` // the records that wait for erasure
	Audit        *audit.Stats                 `json:"audit,omitempty"`
	Backup       *LastBackup                  `json:"backup,omitempty"`       // nil if there are no regular backups
	Nodes        []request.Node               `json:"nodes,omitempty"`        // the processes that share the database
	Certificates map[string]certificate.State `json:"certificates,omitempty"` // by host
}

// LastBackup is the state of regular backups.
type LastBackup struct {
	At    time.Time `json:"at,omitzero"`     // when the last complete backup was begun; zero if there is none
	Late  bool      `json:"late"`            // whether it is too old
	Error string    `json:"error,omitempty"` // why the last run failed
}

// Traffic counts responses by their outcome, and the requests to the upstream that these responses needed.
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
	Express int64                   `json:"express"`           // the number of responses of the express lane
	Tunnels *connect.Stats          `json:"tunnels,omitempty"` // the counters of the forward proxy; nil for other ports
}

// Process describes the resources that the process uses.
type Process struct {
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"fds"`
	Resident    int64 `json:"rss"` // the resident memory of the process, in bytes
}

// Settings says when the settings were last read.
type Settings struct {
	LoadedAt    time.Time `json:"loaded_at,omitzero"` // when the current settings were read
	NeedRestart []string  `json:"need_restart,omitempty"`
	FailedAt    time.Time `json:"failed_at,omitzero"` // when reading the settings failed; zero if the last attempt succeeded
	Error       string    `json:"error,omitempty"`
	Policy      int64     `json:"policy"` // a number that increases with every policy that is applied
}

// Times are the response times of the upstream for reads of one kind with one reason, since the process began.
type Times struct {
	Kind    string `json:"kind"` // the kind's name, or "" for paths that the spec does not name
	Reason  string `json:"reason"`
	Answers int64  `json:"answers"`
	Lost    int64  `json:"lost"`       // the number of attempts without any response
	First   Spread `json:"first_byte"` // the times from sending a request to the response header
	Whole   Spread `json:"whole"`      // the times from sending a request to the last byte of the response
}

// Spread summarises durations in milliseconds.
type Spread struct {
	Mean      float64 `json:"mean_ms"`
	Deviation float64 `json:"deviation_ms"`
	Min       float64 `json:"min_ms"`
	Max       float64 `json:"max_ms"`
	Range     float64 `json:"range_ms"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Sum       int64   `json:"sum_us"` // in microseconds, because a counter is a whole number
}

// Source is the state of a source.
type Source struct {
	State     string          `json:"state"` // the state of the upstream: ok, down, credential or limited
	Why       string          `json:"why,omitempty"`
	Since     time.Time       `json:"since,omitzero"`
	NextProbe time.Time       `json:"next_probe,omitzero"`
	Kinds     map[string]Kind `json:"kinds"`

	Limits map[string]request.Load `json:"limits"`
	Times  []Times                 `json:"times,omitempty"` // the response times by kind and reason; only for callers who see everything
	Spent  []request.Spending      `json:"spent,omitempty"` // the requests sent in each hour; only for callers who see everything

	Use *Use `json:"use,omitempty"` // how the source was used; only for callers who see everything

	// Traffic is the traffic of this source. A caller who sees only this source gets it in place of the traffic of
	// all sources.
	Traffic Traffic `json:"-"`
}

// Use says how a source was used since the process began.
type Use struct {
	Traffic     Traffic               `json:"traffic"`
	Times       map[string]Answered   `json:"times"`       // the times of answers, by where they came from: stored or upstream
	Credentials map[string]Credential `json:"credentials"` // by name; "" stands for requests without a valid credential
}

// Answered describes the times in which requests were answered.
type Answered struct {
	Answers int64  `json:"answers"`
	Whole   Spread `json:"whole"` // from the request to the last byte
}

// Credential says how a credential was used, and how many requests it may still send if it has a rate.
type Credential struct {
	Requests map[string]int64 `json:"requests"` // the counts of understudy.Usage
	Rate     *int64           `json:"rate,omitempty"`
	Left     *int64           `json:"rate_left,omitempty"`
}

// Kind says how many records of a kind are stored, and how complete they are.
type Kind struct {
	Records    int64     `json:"records"`
	Complete   bool      `json:"complete"`      // whether every record of the upstream is stored
	Why        string    `json:"why,omitempty"` // why the kind is not complete, if it is synced
	CaughtUpTo time.Time `json:"caught_up_to,omitzero"`
	// when that part of the kind was walked that was not walked for the longest time
	Swept   time.Time           `json:"swept,omitzero"`
	Sync    *request.Progress   `json:"sync,omitempty"`     // the progress of the sync, if the kind is synced
	Lists   []request.ListScore `json:"lists,omitempty"`    // the lists whose agreement with the upstream was measured
	NoClock int64               `json:"no_clock,omitempty"` // the number of records without a readable time, counted up to 1,000
}

// Options are the functions that the handlers call, and other options. The functions are called concurrently and
// must honour their context.
type Options struct {
	// Snapshot reads the counters of the process.
	Snapshot func(ctx context.Context) (Snapshot, error)
	// Readable returns an error if the store cannot be read.
	Readable func(ctx context.Context) error
	// Nodes returns the processes that share the database, and whether this one may answer from memory. It needs no
	// database. If it is nil, there can be no other process.
	Nodes func() (all []request.Node, current bool)
	// IsEnding reports whether the shutdown of the process has begun.
	IsEnding func() bool
	// SettingsStatus returns when the settings were read. If it is nil, this is unknown.
	SettingsStatus func() Settings
	// Person returns the caller of a request to /-/stats. /-/health needs no caller.
	Person func(*http.Request) (understudy.Caller, error)
	// SeesAll reports whether a caller sees every record of every source. If it is nil, these are the callers with the
	// role all.
	SeesAll func(understudy.Caller) bool
	// SeesKind reports whether a caller sees anything of a kind. If it is nil, only callers who see everything do.
	SeesKind func(c understudy.Caller, source, kind string) bool
	// Program returns the caller of a request to /-/metrics, also a caller without a role (see understudy.Grant.Service).
	Program func(*http.Request) (understudy.Caller, error)
	// HasRowRules reports whether row rules restrict a caller in any source. If it is nil, they restrict no caller.
	HasRowRules func(understudy.Caller) bool
	// Purge removes a page or a record. Its error wraps understudy.ErrInvalid for an unknown name.
	Purge func(context.Context, Purge) (Purged, error)
	// Erase schedules records for erasure. If Dry is true, it only counts them. Its errors are like those of Purge.
	Erase func(context.Context, Erase) (Erasing, error)
	// Receipts returns the receipts with numbers below before, the newest first. If before is 0, it returns all.
	Receipts func(ctx context.Context, before int64, limit int) (Receipts, error)
	// Index returns how many records the indexes have. If anew is true, it empties them first, so that they are
	// built again. If Index is nil, there are no indexes.
	Index func(ctx context.Context, anew bool) (Indexed, error)
	// Shrink returns the state of the newest run that shrinks the database. If begin is true, it begins a run.
	Shrink func(ctx context.Context, begin bool) (Shrunk, error)
	// Backup returns the state of the newest backup. If begin is not nil, it begins a backup.
	Backup func(ctx context.Context, begin *Backup) (BackedUp, error)
	// Resume ends the pause of a restored data folder, and starts the server again.
	Resume func() error
	// IsPaused is true if the server sends nothing by itself, because its data folder was restored.
	IsPaused bool
	// Reload reads the settings again and returns the names of those that need a restart. If it is nil, there is no
	// settings file.
	Reload func(context.Context) (restart []string, err error)
	// Compare returns the response to GET /-/reload, without secrets: what a reload or a restart would change. If it is nil, there
	// is no settings file.
	Compare func(context.Context) (any, error)
	// Restart begins a restart, if the next program can start. If it is nil, there is no such program.
	Restart func(context.Context) error
	// Credentials manages the credentials that are created at run time. If it is nil, no credential can be created.
	Credentials Credentials
	// Now returns the current time, from which the duration of a credential counts.
	Now func() time.Time
	// Explain returns what a role sees of a record. Its errors are those of access.Gate.ExplainRecord. If Explain
	// is nil, the command is not available.
	Explain func(role, source, kind, id string) (*access.RecordExplanation, error)
	// Audit records what commands do, before they do it. If it is nil, nothing is recorded.
	Audit understudy.Auditor
	// Token is the token that requests for purge, erase and reload must carry. If it is "", such requests are refused.
	Token string
	// Profiles takes profiles. If it is nil, profiles are not available.
	Profiles *profile.Recorder
	// ListSlow returns the recent slow requests.
	ListSlow func() []tracing.Request
	// Page shows a page to an admitted caller. If it is nil, profiles, slow requests and locks are shown only as JSON.
	Page func(w http.ResponseWriter, r *http.Request, name, title string, main any)
	// ProfileRefused shows a browser why its caller was not admitted. If it is nil, the error is sent as JSON.
	ProfileRefused func(w http.ResponseWriter, r *http.Request, err error)
	// PublicURL is the viewer's origin if a server in front of it changes the origin. Forms from that origin are accepted.
	PublicURL string
	Logger    *slog.Logger // receives log messages; nil means no log
}

// Diagnostics contains the handlers of /-/health, /-/stats, /-/purge and others (see Routes). It is safe for
// concurrent use.
type Diagnostics struct {
	o          Options
	unreadable atomic.Bool // whether the store could not be read at the last check, so that the error is logged once
	forms      *http.CrossOriginProtection
}

// New returns a Diagnostics. Every function of Options must be set, except those whose comment says what nil means.
func New(o Options) *Diagnostics {
	understudy.SetDefaults(&o.Logger, nil)
	if o.SeesAll == nil {
		o.SeesAll = func(c understudy.Caller) bool { return c.Role() == understudy.RoleAll }
	}
	if o.SeesKind == nil {
		o.SeesKind = func(understudy.Caller, string, string) bool { return false }
	}
	if o.HasRowRules == nil {
		o.HasRowRules = func(understudy.Caller) bool { return false }
	}
	if o.SettingsStatus == nil {
		o.SettingsStatus = func() Settings { return Settings{} }
	}
	if o.Nodes == nil {
		o.Nodes = func() ([]request.Node, bool) { return nil, true }
	}
	forms, _ := jsonhttp.NewFormProtection(o.PublicURL) // an error is ignored, because a malformed URL adds no origin
	return &Diagnostics{o: o, forms: forms}
}

// Routes returns the patterns that Handler serves.
func Routes() []string {
	return []string{
		"/-/health", readyPath, "/-/stats", "/-/stats/figures", MetricsPath, "/-/purge", "/-/reload", "/-/restart", "/-/credentials",
		"/-/credentials/{name}/rotate",
		"/-/credentials/{name}/revoke", "/-/erase", "/-/erasures", "/-/explain", "/-/index", "/-/shrink", "/-/backup", "/-/resume",
		"/-/slow", "/-/profile", "/-/profile/stop", "/-/profile/allocs", "/-/profile/cpu", "/-/profile/kept/{id}", "/-/locks",
	}
}

// Handler returns the handler of all routes. It answers any other path with status 404.
func (d *Diagnostics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /-/health", d.Health())
	mux.Handle("GET "+readyPath, d.Health())
	mux.Handle("GET "+MetricsPath, d.Metrics(d.authorizeMetrics))
	known := &jsonapi.Options{Identify: func(r *http.Request) (understudy.Caller, error) {
		return jsonapi.IdentifyPerson(r, d.o.Token, d.o.Person)
	}}
	mux.Handle("GET /-/stats", jsonapi.Handle(known, d.showStats))
	mux.Handle("GET /-/stats/figures", jsonapi.Handle(known, showFigures))
	mux.Handle("POST /-/purge", jsonapi.HandleBody(d.command(purgeTimeout, maxPurge), d.purge))
	mux.Handle("GET /-/reload", jsonapi.Handle(d.command(reloadTimeout, 0), d.compare))
	mux.Handle("POST /-/reload", jsonapi.Handle(d.command(reloadTimeout, 0), d.reload))
	mux.Handle("POST /-/restart", jsonapi.Handle(d.command(reloadTimeout, 0), d.restart))
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
	shrink := jsonapi.Handle(d.command(indexTimeout, 0), d.shrink)
	mux.Handle("GET /-/shrink", shrink)
	mux.Handle("POST /-/shrink", shrink)
	backup := jsonapi.HandleBody(d.command(indexTimeout, maxPurge), d.saveBackup)
	mux.Handle("GET /-/backup", backup)
	mux.Handle("POST /-/backup", backup)
	mux.Handle("POST /-/resume", jsonapi.Handle(d.command(indexTimeout, 0), d.resume))
	mux.HandleFunc("GET /-/slow", d.profiles(d.showSlow))
	mux.HandleFunc("GET /-/locks", d.profiles(d.showLocks))
	mux.HandleFunc("POST /-/locks", d.profiles(d.watchLocks))
	mux.HandleFunc("GET /-/profile", d.profiles(d.showProfiles))
	mux.HandleFunc("POST /-/profile", d.profiles(d.startProfile))
	mux.HandleFunc("POST /-/profile/stop", d.profiles(d.stopProfile))
	mux.HandleFunc("GET /-/profile/allocs", d.profiles(d.take(profile.Allocs)))
	mux.HandleFunc("GET /-/profile/cpu", d.profiles(d.take(profile.CPU)))
	mux.HandleFunc("GET /-/profile/kept/{id}", d.profiles(func(w http.ResponseWriter, r *http.Request, _ string) error {
		return d.sendProfile(w, r.PathValue("id"))
	}))
	return mux
}
