// Visitor: what all pages share, and the options.

// Package page has what every page of the viewer needs: the request and its caller, reads through the gate, cells
// and tables, and the response.
package page

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/actions"
	"understudy/internal/audit"
	"understudy/internal/credentials"
	"understudy/internal/export"
	"understudy/internal/forecast"
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

// Mirror answers in place of upstream. mirror.Mirror implements it.
type Mirror interface {
	// Answer returns the newest acceptable answer for a target. Its errors are those of the root package.
	Answer(ctx context.Context, a request.Request) (*request.Response, error)
}

// Callers finds the callers of requests. callers.Book implements it.
type Callers interface {
	// Person returns the caller of a browser's request. It returns ErrUnauthorized if the caller is not known. It
	// returns ErrForbidden if the caller may not use the viewer; the error has the line to add to the settings.
	IdentifyPerson(r *http.Request) (understudy.Caller, error)
}

// Forecasts predicts sampled numbers. forecast.Forecasts implements it.
type Forecasts interface {
	// Series returns the sampled numbers of a source.
	Series(source string) []understudy.Series
	// Shown reports whether a caller may see the forecasts of a series.
	CanSee(gate *access.Gate, c understudy.Caller, s understudy.Series) bool
	Ask(ctx context.Context, q forecast.Question) (*forecast.Forecast, error)
	// Unit returns the last known unit of a number, such as a currency, or "".
	Unit(ctx context.Context, s understudy.Series) string
}

// Annotations stores what people write about records. store.DB implements it.
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

// Options are the viewer's settings, and the parts of the server it reads from.
type Options struct {
	Sources []*spec.Source
	Mirror  Mirror
	Gate    *access.Gate
	Callers Callers
	People  *signin.People     // signs people in; nil if nobody can sign in
	Cookies *signin.Cookies    // keeps the message of a form for the next page; New makes one if it is nil
	Audit   understudy.Auditor // logs what callers do; nil for no log
	Trail   Trail              // reads the audit log for its page; nil for no page
	History History            // the stored versions of records; nil for no timeline
	Jobs    Jobs               // the server's jobs; nil for no page
	// Feed is the address of the feed of changes, "/-/feed". With it, the newest page of a list shows how many
	// records have arrived since. It may be empty.
	Feed   string
	Search Search // finds records by words and conditions; if it is nil, the search box opens only ids and numbers
	Sums   Sums   // computes sums over the matches of a search; nil for no page of sums
	Shelf  Shelf  // saves searches under names; nil if none can be saved
	Media  Media  // the audio and images of records; nil if they are not served
	// Forecasts predicts when sampled numbers reach a level. It may be nil.
	Forecasts Forecasts
	// Actions runs the actions that people start. If it is nil, there are none.
	Actions *actions.Runner
	// Annotations are shown to callers that may write them. It may be nil.
	Annotations Annotations
	// Watches notifies people of new matches of saved searches. It may be nil.
	Watches *watch.Book
	Seals   *Seals // seals the addresses of contents; New makes one if it is nil
	// Lookups limits how many numbers may be looked up, by source. New makes the limits if it is nil.
	Lookups map[string]*limiter.Pace

	Programs *Programs // the credentials of programs; nil for no page
	Holders  []Holder  // who has which role, without the credentials that are made on the page
	// Webhooks are the receivers of changes. It may be nil.
	Webhooks Webhooks
	// Spending returns the recent requests to a source by time span, oldest first. It returns nil if they are not
	// known.
	Spending func(source string) []request.Spending

	// Snapshot returns the state of a source. If it is nil, no state is known.
	Snapshot func(ctx context.Context, source string) Snapshot
	// Control answers all paths under /-/ that are not the viewer's own (its files and the time zone form). It
	// checks its callers itself. If it is nil, these paths return 404.
	Control http.Handler
	// PublicURL is the origin under which browsers see the viewer behind a reverse proxy. Forms from this origin
	// are accepted. If it is empty, the Host header decides.
	PublicURL string
	// Zone is the time zone for browsers that have not chosen one. The default is UTC.
	Zone *time.Location
	// Deadline is the longest time of one request. The default is 30 s.
	Deadline time.Duration
	// ExportRows and ExportTime limit one export. The defaults are 1,000,000 rows and 10 minutes.
	ExportRows int
	ExportTime time.Duration
	// Exports admits exports. By default 4 may run at once, 2 of them for one caller.
	Exports *export.Exports
	// Version is shown in the footer.
	Version string
	Logger  *slog.Logger     // the log; if it is nil, nothing is logged
	Now     func() time.Time // the clock; time.Now if it is nil
}

// The default limits of exports.
const (
	maxExportRows = 1_000_000        // the largest number of rows in one export
	exportTime    = 10 * time.Minute // the longest time of one export
	maxExports    = 4                // exports at a time; one caller may run half of them
)

const (
	maxCachedSearches = 500    // cached search results, each of at most 20 records
	maxCachedIDs      = 50_000 // cached ids of lists, of about 50 bytes each
)

// Visitor has what all pages share: the options, the plans and the caches. It is safe for concurrent use.
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
	Seed          maphash.Seed // the seed of the hashes in identities
	zones         *zones
	Numbers       *numbers
	Forms         *http.CrossOriginProtection
	PartTimeout   time.Duration // how long the read of a part may take; shorter in tests
}

// idsKey identifies the bytes of a list, its kind, and the role that sees them.
type idsKey struct {
	sum  [16]byte // a hash of the bytes that the role sees
	kind *plan.Kind
	role string
}

// NewVisitor checks the options and plans the pages of every kind. The assets have the templates. Close stops the
// background reads.
func NewVisitor(o Options, assets *Assets) (*Visitor, error) {
	if o.Mirror == nil || o.Gate == nil || o.Callers == nil {
		return nil, fmt.Errorf("viewer: options need a mirror, a gate and callers")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.Snapshot == nil {
		o.Snapshot = func(context.Context, string) Snapshot { return Snapshot{} }
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	o.Deadline = cmp.Or(o.Deadline, 30*time.Second)
	o.ExportRows = cmp.Or(o.ExportRows, maxExportRows)
	o.ExportTime = cmp.Or(o.ExportTime, exportTime)
	if o.Exports == nil {
		o.Exports = export.New(limiter.New(maxExports, maxExports/2), nil)
	}
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
			return nil, fmt.Errorf("viewer: source %s is there twice", p.Name)
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

// All callers together may look up lookupsAtOnce numbers of a source at once, and after that one number every
// lookupEvery.
const (
	lookupsAtOnce = 10
	lookupEvery   = 2 * time.Second
)

// NewLookups returns the limits of lookups by source. All callers share them, so ten accounts guess numbers no
// faster than one.
func NewLookups(sources []*spec.Source) map[string]*limiter.Pace {
	all := map[string]*limiter.Pace{}
	for _, s := range sources {
		all[s.Name] = limiter.NewPace(lookupsAtOnce, lookupsAtOnce*lookupEvery)
	}
	return all
}

// Close cancels the viewer's background reads and waits for them. It does not wait for requests; the HTTP server
// does.
func (v *Visitor) Close() error {
	v.Numbers.close()
	return nil
}

// ControlPrefix begins Understudy's own paths. No source is named "-".
const ControlPrefix = "/-/"

// SignInPath is the path of the sign-in page.
const SignInPath = ControlPrefix + "sign-in"

// CallbackPath is the path to which an identity provider redirects people.
const CallbackPath = SignInPath + "/callback"

// Handler answers one request. If it returns an error, an error page is shown.
type Handler func(*Exchange) error

// History stores the versions of records that were seen. store.DB implements it.
type History interface {
	// History returns the stored versions of a record, newest first and at most limit. They include all shapes, and
	// deletions. It returns ErrNotFound if the record was never seen.
	ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
	// ReadEdition identifies the current records of a source. What was computed from them stays valid while both
	// numbers are the same.
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
}

// Jobs runs background work. jobs.Runner implements it.
type Jobs interface {
	// ListJobs returns the jobs that match the filter, newest first. Running jobs have their progress.
	ListJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error)
	// Cancel ends a live job. It returns ErrNotFound if there is no job of that number, and ErrInvalid if the job
	// has ended.
	Cancel(ctx context.Context, number int64) error
	// Replay makes a new job from an ended job and returns its number. Its errors are those of Cancel.
	Replay(ctx context.Context, number int64) (int64, error)
}

// Credentials makes credentials of programs; the application implements it. A change is in force when its method
// returns. Errors are those of credentials.Book.
type Credentials interface {
	All() []credentials.Credential
	Make(ctx context.Context, name string, s credentials.Scope, once string) (credentials.Shown, error)
	Rotate(ctx context.Context, name string, overlap time.Duration) (credentials.Shown, error)
	Revoke(ctx context.Context, name string) error
}

// Programs is what the pages about credentials use.
type Programs struct {
	Credentials                          // the credentials that were made on the pages
	Configured  []credentials.Credential // the credentials of the settings
	DropIn      map[string]http.Handler  // the handlers for programs, by source
}

// Webhooks manages the receivers of changes. feed.Feed implements it.
type Webhooks interface {
	// Webhooks returns the receivers of changes, ordered by name.
	Webhooks() []request.Webhook
	// Resume starts a paused webhook again. If after is not nil, it continues after the change of that number. It
	// returns ErrNotFound or ErrInvalid.
	Resume(ctx context.Context, name string, after *int64) error
	// Pause stops a webhook until Resume, and stores who paused it. It returns ErrNotFound.
	Pause(ctx context.Context, name, by string) error
}

// Holder is a person, a group of people or a program that has a role.
type Holder struct{ Role, Name, How string }

// Shelf saves searches under names. The search package implements it.
type Shelf interface {
	// Saved returns the searches that a caller has saved or that others share, ordered by name.
	ListSaved(ctx context.Context, c understudy.Caller) ([]query.SavedSearch, error)
	// Save stores a search for its caller and replaces the caller's search of the same name. It returns ErrInvalid
	// if the name is not valid or if the caller has too many searches.
	Save(ctx context.Context, c understudy.Caller, s query.SavedSearch) error
	// Forget deletes a search of the caller. It returns ErrNotFound if the caller has none of that name.
	Forget(ctx context.Context, c understudy.Caller, name string) error
}

// Media opens the contents of records. mirror.Mirror implements it.
type Media interface {
	// Open returns the content that a media path names. Its errors are those of the root package and of the
	// context. The caller must close the response.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// MaxForm is the largest body of a form, in bytes.
const MaxForm = 64 << 10

// Route is a URL pattern, its handler, and the address forms of the pattern that people and scripts use.
type Route struct {
	Pattern string
	Handler Handler
	Forms   []string
}
