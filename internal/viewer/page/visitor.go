// Visitor: what all pages share, and the options of the viewer.

// Package page has what every page of the viewer needs: the request with its caller, reads through the gate, cells
// and tables, and the response.
package page

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/actions"
	"understudy/internal/audit"
	"understudy/internal/credentials"
	"understudy/internal/export"
	"understudy/internal/forecast"
	"understudy/internal/push"
	"understudy/internal/query"
	"understudy/internal/signin"
	"understudy/internal/viewer/plan"
	"understudy/internal/watch"
	"understudy/kit/jsonhttp"
	"understudy/kit/limiter"
	"understudy/kit/lru"
	"understudy/request"
	"understudy/spec"
)

// Mirror answers requests from stored data or from upstream. mirror.Mirror implements it.
type Mirror interface {
	// Answer returns the newest answer for a target that the request accepts. Its errors are those of the root package.
	Answer(ctx context.Context, a request.Request) (*request.Response, error)
}

// Callers identifies the callers of requests. callers.Book implements it.
type Callers interface {
	// IdentifyPerson returns the caller of a browser's request. It returns ErrUnauthorized if the caller is not known. It
	// returns ErrForbidden if the caller may not use the viewer; the error then has the line to add to the settings.
	IdentifyPerson(r *http.Request) (understudy.Caller, error)
}

// Forecasts predicts the future values of sampled numbers. forecast.Forecasts implements it.
type Forecasts interface {
	// Series returns the sampled numbers of a source, such as the balance of its account.
	Series(source string) []understudy.Series
	// CanSee reports whether a caller may see the forecasts of a sampled number.
	CanSee(gate *access.Gate, c understudy.Caller, s understudy.Series) bool
	Ask(ctx context.Context, q forecast.Question) (*forecast.Forecast, error)
	// Unit returns the last known unit of a sampled number, such as a currency, or "".
	Unit(ctx context.Context, s understudy.Series) string
}

// Annotations stores the notes that people write about records. store.DB implements it.
type Annotations interface {
	Annotation(source, kind, id string) *understudy.Annotation
	AnnotationsVersion() int64
	AddNote(ctx context.Context, source, kind, id string, n understudy.Note) error
	RemoveNote(ctx context.Context, source, kind, id string, number int64) error
	MarkHandled(ctx context.Context, source, kind, id string, m *understudy.Mark) error
}

// Trail reads the audit log. audit.Log implements it.
type Trail interface {
	Search(ctx context.Context, f audit.Filter) (*audit.Found, error)
	Stats() audit.Stats
}

// Options are the settings of the viewer, and the parts of the server that it uses.
type Options struct {
	Sources []*spec.Source
	Mirror  Mirror
	Gate    *access.Gate
	Callers Callers
	People  *signin.People     // signs people in; nil if the viewer has no sign-in
	Cookies *signin.Cookies    // keeps the message of a form for the next page; if it is nil, New makes one
	Audit   understudy.Auditor // writes the audit log; nil if there is no log
	Trail   Trail              // reads the audit log; if it is nil, no page shows the log
	History History            // reads the stored versions of records; if it is nil, records have no timeline
	Jobs    Jobs               // manages background jobs; if it is nil, no page shows them
	// Feed is the address of the feed of changes, "/-/feed". The newest page of a list uses it to show how many
	// records have arrived since. If it is empty, the page does not show that.
	Feed   string
	Search Search // finds records by words and conditions; if it is nil, the search box accepts only ids and numbers
	Sums   Sums   // computes sums over the records of a search; if it is nil, there is no page of sums
	Shelf  Shelf  // saves searches under names; if it is nil, searches can't be saved
	Media  Media  // opens the audio and images of records; if it is nil, the viewer shows none
	// Forecasts predicts when sampled numbers reach a level. If it is nil, there are no forecasts.
	Forecasts Forecasts
	// Actions runs the actions that people start. If it is nil, nobody can start an action.
	Actions *actions.Runner
	// Annotations stores notes on records. Callers see them if they may write notes. If it is nil, there are no notes.
	Annotations Annotations
	// Watches notifies people of new records that match a saved search. If it is nil, nobody can watch a search.
	Watches *watch.Book
	// Push notifies the browsers and devices of people. If it is nil, there is no page of notifications.
	Push  *push.Book
	Seals *Seals // makes the tokens in the addresses of audio and images; if it is nil, New makes one
	// Lookups limits how many phone numbers may be looked up, by source. If it is nil, New makes the limits.
	Lookups map[string]*limiter.Pace

	Programs *Programs // the credentials of programs; if it is nil, no page shows them
	Holders  []Holder  // who has which role, except through credentials that were made on the viewer's page
	// Webhooks manages the receivers of changes. If it is nil, no page shows them.
	Webhooks Webhooks
	// Spending returns the number of recent requests to a source by time span, oldest first. It returns nil if the
	// numbers are not known.
	Spending func(source string) []request.Spending
	// Nodes returns the processes that share the database, and whether this one may answer from memory. It returns no
	// processes if there can be no others. Nodes may be nil.
	Nodes func() (all []request.Node, current bool)

	// Snapshot returns the state of a source. If it is nil, pages show no state.
	Snapshot func(ctx context.Context, source string) Snapshot
	// Control answers all paths under /-/ that are not the viewer's own (such as its files and forms). It identifies
	// its callers itself. If it is nil, these paths return 404.
	Control http.Handler
	// PublicURL is the origin under which browsers see the viewer behind a reverse proxy. Forms are accepted if they
	// come from this origin. If it is empty, the Host header decides.
	PublicURL string
	// Zone is the time zone for readers who have not chosen one. The default is UTC.
	Zone *time.Location
	// Deadline is the maximum time of one request. The default is 30 s.
	Deadline time.Duration
	// ExportRows and ExportTime limit the rows and the time of one export. The defaults are 1,000,000 rows and 10 minutes.
	ExportRows int
	ExportTime time.Duration
	// Exports decides whether an export may start. By default 4 exports may run at the same time, 2 of them for one caller.
	Exports *export.Exports
	// Version is the version of Understudy, shown in the footer.
	Version string
	Logger  *slog.Logger     // the log for errors and warnings; if it is nil, nothing is logged
	Now     func() time.Time // the clock; time.Now if it is nil
}

// The default limits of exports.
const (
	maxExportRows = 1_000_000        // the maximum number of rows in one export
	exportTime    = 10 * time.Minute // the maximum time of one export
	maxExports    = 4                // the maximum number of exports at the same time; half of them may belong to one caller
)

const (
	maxCachedSearches = 500    // the maximum number of cached search results, each of which has at most 20 records
	maxCachedIDs      = 50_000 // the maximum number of cached ids of rows, each of which takes about 50 bytes
)

// Visitor has what all pages share: the options, how the pages of each kind look, and the caches. It is safe for
// concurrent use.
type Visitor struct {
	Options Options
	Planned []*plan.Source
	ByName  map[string]*plan.Source
	Files   *files
	pages   *pages
	// The caches.
	FragmentCache *lru.Cache[Identity, []*Fragment]
	searchCache   *lru.Cache[Identity, *query.SearchResult]
	idCache       *lru.Cache[idsKey, []string]
	Snapshots     snapshots
	Seed          maphash.Seed // the seed for the hashes that identify cached fragments
	zones         *zones
	Numbers       *numbers
	Forms         *http.CrossOriginProtection
	PartTimeout   time.Duration // how long the read of one part of a page may take; tests make it shorter
}

// idsKey identifies a list by its bytes, its kind, and the role that sees it.
type idsKey struct {
	sum  [16]byte // a hash of the list as the role sees it
	kind *plan.Kind
	role string
}

// NewVisitor checks the options and decides how the pages of each kind look. assets are the templates and static
// files. Close stops the background reads.
func NewVisitor(o Options, assets *Assets) (*Visitor, error) {
	if o.Mirror == nil || o.Gate == nil || o.Callers == nil {
		return nil, fmt.Errorf("viewer: options need a mirror, a gate and callers")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.Snapshot == nil {
		o.Snapshot = func(context.Context, string) Snapshot { return Snapshot{} }
	}
	o.Zone = cmp.Or(o.Zone, time.UTC)
	o.Deadline = cmp.Or(o.Deadline, 30*time.Second)
	o.ExportRows = cmp.Or(o.ExportRows, maxExportRows)
	o.ExportTime = cmp.Or(o.ExportTime, exportTime)
	o.Exports = cmp.Or(o.Exports, export.New(limiter.New(maxExports, maxExports/2), nil))
	o.Version = cmp.Or(o.Version, "development")
	v := &Visitor{
		Options: o, ByName: map[string]*plan.Source{}, FragmentCache: lru.New[Identity, []*Fragment](FragmentBytes),
		Seed:  maphash.MakeSeed(),
		zones: newZones(o.Zone), PartTimeout: partTimeout,
	}
	for _, src := range o.Sources {
		p, err := plan.New(src)
		if err != nil {
			return nil, err
		}
		if v.ByName[p.Name] != nil {
			return nil, fmt.Errorf("viewer: source %s appears twice", p.Name)
		}
		v.Planned = append(v.Planned, p)
		v.ByName[p.Name] = p
	}
	v.searchCache = lru.New[Identity, *query.SearchResult](maxCachedSearches)
	v.idCache = lru.New[idsKey, []string](maxCachedIDs)
	v.Files, v.pages = assets.files, assets.pages
	var err error
	if v.Options.Cookies == nil {
		if v.Options.Cookies, err = signin.NewCookies(v.Options.Now); err != nil {
			return nil, fmt.Errorf("viewer: %w", err)
		}
	}
	if v.Options.Seals == nil {
		if v.Options.Seals, err = NewSeals(); err != nil {
			return nil, fmt.Errorf("viewer: %w", err)
		}
	}
	if v.Options.Lookups == nil {
		v.Options.Lookups = NewLookups(o.Sources)
	}
	for _, p := range v.Planned {
		if v.Options.Lookups[p.Name] == nil {
			return nil, fmt.Errorf("viewer: source %s has no limit of lookups", p.Name)
		}
	}
	if v.Forms, err = jsonhttp.NewFormProtection(o.PublicURL); err != nil {
		return nil, fmt.Errorf("viewer: public_url: %w", err)
	}
	v.Numbers = newNumbers(v)
	return v, nil
}

// All callers together may look up lookupBurst phone numbers of a source without a pause, and after that one number
// every lookupInterval.
const (
	lookupBurst    = 10
	lookupInterval = 2 * time.Second
)

// NewLookups returns the limits for looking up phone numbers, by source. All callers share the limit of a source, so
// that ten accounts guess numbers no faster than one.
func NewLookups(sources []*spec.Source) map[string]*limiter.Pace {
	all := map[string]*limiter.Pace{}
	for _, s := range sources {
		all[s.Name] = limiter.NewPace(lookupBurst, lookupBurst*lookupInterval)
	}
	return all
}

// Close cancels the viewer's background reads and waits for them. The HTTP server waits for requests, so Close does not.
func (v *Visitor) Close() error {
	v.Numbers.close()
	return nil
}

// ControlPrefix begins the paths of Understudy itself. No source can have the name "-".
const ControlPrefix = "/-/"

// RPCPrefix begins the paths of gRPC services, which have the name of a package of messages. No source can have such a name.
const RPCPrefix = "/understudy.feed."

// SignInPath is the path of the sign-in page.
const SignInPath = ControlPrefix + "sign-in"

// CallbackPath is the path to which an identity provider redirects people.
const CallbackPath = SignInPath + "/callback"

// Handler handles one request. If it returns an error, the viewer sends an error page.
type Handler func(*Exchange) error

// History reads the stored versions of records. store.DB implements it.
type History interface {
	// ReadHistory returns the stored versions of a record, newest first and at most limit of them. They include
	// versions of every shape, and deletions. It returns ErrNotFound if no version is stored.
	ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
	// ReadEdition returns two numbers that identify the current records of a source. A result computed from the
	// records stays valid as long as both numbers stay the same.
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
}

// Jobs manages the background jobs of the server. jobs.Runner implements it.
type Jobs interface {
	// ListJobs returns the jobs that match the filter, newest first. A running job includes its progress.
	ListJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error)
	// Cancel ends a job that is waiting or running. It returns ErrNotFound if no job has the number, and ErrInvalid
	// if the job has ended.
	Cancel(ctx context.Context, number int64) error
	// Replay starts a new job that repeats an ended job, and returns the new job's number. Its errors are those of Cancel.
	Replay(ctx context.Context, number int64) (int64, error)
}

// Credentials makes and revokes the credentials of programs. The application implements it. A change takes effect
// before its method returns. Errors are those of credentials.Book.
type Credentials interface {
	All() []credentials.Credential
	Make(ctx context.Context, name string, s credentials.Scope, once string) (credentials.Shown, error)
	Rotate(ctx context.Context, name string, overlap time.Duration) (credentials.Shown, error)
	Revoke(ctx context.Context, name string) error
}

// Programs is what the pages about programs and their credentials use.
type Programs struct {
	Credentials                          // the credentials that were made on the viewer's page
	Configured  []credentials.Credential // the credentials that the settings define
	DropIn      map[string]http.Handler  // the handlers for programs by source, which the page uses to try a request
}

// Webhooks manages the receivers of changes. feed.Feed implements it.
type Webhooks interface {
	// Webhooks returns all webhooks, ordered by name.
	Webhooks() []request.Webhook
	// Resume starts a paused webhook again. If after is not nil, the webhook continues with the change that follows
	// the change of that number. It returns ErrNotFound or ErrInvalid.
	Resume(ctx context.Context, name string, after *int64) error
	// Pause stops a webhook until Resume is called, and stores who paused it. It returns ErrNotFound if there is no
	// such webhook.
	Pause(ctx context.Context, name, by string) error
}

// Holder is a person, a group of people or a program that has a role, and how it got the role.
type Holder struct{ Role, Name, How string }

// Shelf saves searches under names. The package search implements it.
type Shelf interface {
	// ListSaved returns the searches that a caller has saved or that others share with the caller, ordered by name.
	ListSaved(ctx context.Context, c understudy.Caller) ([]query.SavedSearch, error)
	// Save stores a search of a caller. It replaces the caller's search of the same name. It returns ErrInvalid if
	// the name is not valid or if the caller has too many searches.
	Save(ctx context.Context, c understudy.Caller, s query.SavedSearch) error
	// Forget deletes a search of a caller. It returns ErrNotFound if the caller has no search of that name.
	Forget(ctx context.Context, c understudy.Caller, name string) error
}

// Media opens the audio and images of records. mirror.Mirror implements it.
type Media interface {
	// Open returns the audio or image that a media path names. Its errors are those of the root package and of the
	// context. The caller must close the response.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// MaxForm is the maximum size in bytes of a form that a browser sends.
const MaxForm = 64 << 10

// Route is a URL pattern with its handler and examples of addresses that match it.
type Route struct {
	Pattern string
	Handler Handler
	Forms   []string
}

// Origin returns the scheme and the host under which the browser of a request sees the viewer.
func (v *Visitor) Origin(r *http.Request) string {
	switch {
	case v.Options.PublicURL != "":
		return strings.TrimSuffix(v.Options.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
