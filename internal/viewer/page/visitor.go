// Visitor: what all pages share, with the options it is made of.

// Package page is what every page of the viewer needs: the request and its caller,
// reads through the gate, cells and tables, and the way out.
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

// Mirror answers for upstream; mirror.Mirror fills it.
type Mirror interface {
	// Page is the newest fitting answer for a target. Its errors are those of
	// the root package.
	Answer(ctx context.Context, a request.Request) (*request.Response, error)
}

// Callers names the callers of requests; callers.Book fills it.
type Callers interface {
	// Person names the caller of a browser's request: ErrUnauthorized when
	// the caller is not known, ErrForbidden, with the line to add to the settings, when
	// the caller may not use the viewer.
	IdentifyPerson(r *http.Request) (understudy.Caller, error)
}

// Forecasts answer questions about sampled numbers; forecast.Forecasts fills it.
type Forecasts interface {
	// Series are the numbers of a source that are sampled.
	Series(source string) []understudy.Series
	// Shown reports whether a caller may see forecasts of one.
	Shown(gate *access.Gate, c understudy.Caller, s understudy.Series) bool
	Ask(ctx context.Context, q forecast.Question) (*forecast.Forecast, error)
	// Unit is the unit that a number had last, such as a currency; "": it is not known.
	Unit(ctx context.Context, s understudy.Series) string
}

// Annotations are what people write on records; store.DB fills it.
type Annotations interface {
	Annotation(source, kind, id string) *understudy.Annotation
	AnnotationsVersion() int64
	AddNote(ctx context.Context, source, kind, id string, n understudy.Note) error
	RemoveNote(ctx context.Context, source, kind, id string, number int64) error
	MarkHandled(ctx context.Context, source, kind, id string, m *understudy.Mark) error
}

// Trail is the audit log, read; audit.Log fills it.
type Trail interface {
	Search(ctx context.Context, f audit.Filter) (*audit.Found, error)
	Stats() audit.Stats
}

// Options are the viewer's settings and what it reads from.
type Options struct {
	Sources []*spec.Source
	Mirror  Mirror
	Gate    *access.Gate
	Callers Callers
	People  *signin.People     // they sign in; nil: nobody does
	Cookies *signin.Cookies    // keep what a form has done for the page that follows; nil: new ones
	Audit   understudy.Auditor // keeps what callers do; nil: nothing is kept
	Trail   Trail              // what was kept of it, for its page; nil: no page
	History History            // what was seen of records; nil: no timeline
	Jobs    Jobs               // promised work; nil: no page of it
	// Feed is the address of the feed of changes, "/-/feed"; with it a list's
	// newest page says how many records came since. "": it does not.
	Feed   string
	Search Search // finds records by words and conditions; nil: search opens ids and numbers alone
	Sums   Sums   // adds up what a search finds; nil: no page of sums
	Shelf  Shelf  // keeps searches under names; nil: none is kept
	Media  Media  // contents of records; nil: none is played or shown
	// Forecasts say when sampled numbers reach a level; nil: there are none.
	Forecasts Forecasts
	// Actions does what people ask for; nil: nothing can be done.
	Actions *actions.Runner
	// Annotations are shown to who may write them; nil: there are none.
	Annotations Annotations
	// Watches tell of what saved searches begin to find; nil: there are none.
	Watches *watch.Book
	Seals   *Seals // of their addresses; nil: new ones, as with every New
	// Lookups is how many numbers may be looked up, by source; nil: new ones, as with every New.
	Lookups map[string]*limiter.Pace

	Programs *Programs // credentials of programs; nil: no page of them
	Holders  []Holder  // who has which role, but for credentials that are made
	// Webhooks receive changes; nil: there are none.
	Webhooks Webhooks
	// Spending returns what a source was sent lately, in spans, oldest first; nil: it is not known.
	Spending func(source string) []request.Spending

	// Snapshot says how a source does; nil: nothing is known of any.
	Snapshot func(ctx context.Context, source string) Snapshot
	// Control answers everything under /-/ that is not the viewer's own (its
	// files and the timezone form). It checks its callers itself. nil: 404.
	Control http.Handler
	// PublicURL is the origin browsers know the viewer by, when a server in
	// front of it gives it another; forms from there are accepted. "": Host.
	PublicURL string
	// Zone is the timezone of a browser that has not said its own; nil: UTC.
	Zone *time.Location
	// Deadline bounds one request; 0: 30 s.
	Deadline time.Duration
	// ExportRows and ExportTime bound one export; 0: 1,000,000 rows, 10 min.
	ExportRows int
	ExportTime time.Duration
	// Exports admits exports; nil: 4 at once, 2 of one caller.
	Exports *export.Exports
	// Version is shown in the footer.
	Version string
	Logger  *slog.Logger     // nil: discard
	Now     func() time.Time // nil: time.Now
}

// The bounds of an export where Options set none.
const (
	mostExported  = 1_000_000        // rows
	exportTime    = 10 * time.Minute // all in all
	mostExporting = 4                // at a time, half of them of one caller
)

const (
	mostSearched = 500    // results of searches that are kept, of 20 records at most
	mostListed   = 50_000 // ids of lists that are kept, some 50 bytes each
)

// Visitor is what all pages share: the options, the plans and what is kept between
// requests. It is safe for concurrent use.
type Visitor struct {
	Options Options
	Planned []*plan.Source
	ByName  map[string]*plan.Source
	Files   *files
	pages   *pages
	// What pages keep between requests.
	Kept      *lru.Cache[Identity, []*Fragment]
	searched  *lru.Cache[Identity, *query.SearchResult]
	listed    *lru.Cache[idsKey, []string]
	Snapshots snapshots
	Seed      maphash.Seed // of what identities are made of
	zones     *zones
	Numbers   *numbers
	Forms     *http.CrossOriginProtection
	Glance    time.Duration // tests have less
}

// idsKey names the bytes of a list, its kind, and the role that sees them.
type idsKey struct {
	sum  [16]byte // of the bytes that the role sees
	kind *plan.Kind
	role string
}

// NewVisitor checks the options and plans the pages of every kind, drawn with
// assets. Close stops what it starts later.
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
	o.ExportRows = cmp.Or(o.ExportRows, mostExported)
	o.ExportTime = cmp.Or(o.ExportTime, exportTime)
	if o.Exports == nil {
		o.Exports = export.New(limiter.New(mostExporting, mostExporting/2), nil)
	}
	o.Version = cmp.Or(o.Version, "development")
	v := &Visitor{
		Options: o, ByName: map[string]*plan.Source{}, Kept: lru.New[Identity, []*Fragment](FragmentBytes),
		Seed:  maphash.MakeSeed(),
		zones: newZones(o.Zone), Glance: glance,
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
	v.searched = lru.New[Identity, *query.SearchResult](mostSearched)
	v.listed = lru.New[idsKey, []string](mostListed)
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

// All callers together look up so many numbers of a source at once, and then one in lookupEvery.
const (
	lookupsAtOnce = 10
	lookupEvery   = 2 * time.Second
)

// NewLookups makes the limits of sources. All callers share them: ten accounts guess numbers no
// faster than one.
func NewLookups(sources []*spec.Source) map[string]*limiter.Pace {
	all := map[string]*limiter.Pace{}
	for _, s := range sources {
		all[s.Name] = limiter.NewPace(lookupsAtOnce, lookupsAtOnce*lookupEvery)
	}
	return all
}

// Close ends the viewer's own reading and waits for it. Requests still running
// are not waited for; the server that runs them does that.
func (v *Visitor) Close() error {
	v.Numbers.close()
	return nil
}

// controlPrefix begins Understudy's own paths; no source is named "-".
const ControlPrefix = "/-/"

// SignInPath is the page on which people sign in.
const SignInPath = ControlPrefix + "sign-in"

// CallbackPath is where a provider sends people back to.
const CallbackPath = SignInPath + "/callback"

// Handler answers one request; an error becomes an error page.
type Handler func(*Exchange) error

// History keeps what was seen of records; store.DB fills it.
type History interface {
	// History is what was seen of a record, newest first and at most limit
	// versions, of all shapes, goings included; ErrNotFound: it was never seen.
	ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
	// ReadEdition says which records there are: while its numbers are the same, what
	// was made of a source's records is still right.
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
}

// Jobs does promised work; jobs.Runner fills it.
type Jobs interface {
	// Jobs are those the filter chooses, the newest first, with how far those
	// that run have come.
	ListJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error)
	// Cancel ends a live job: ErrNotFound when there is none of that number,
	// ErrInvalid when it is not live.
	Cancel(ctx context.Context, number int64) error
	// Replay makes a new job of an archived one and is its number; errors as
	// Cancel's.
	Replay(ctx context.Context, number int64) (int64, error)
}

// Credentials makes credentials of programs; the application does. What a method has done
// is in force when it returns. Errors are those of credentials.Book.
type Credentials interface {
	All() []credentials.Credential
	Make(ctx context.Context, name string, s credentials.Scope, once string) (credentials.Shown, error)
	Rotate(ctx context.Context, name string, overlap time.Duration) (credentials.Shown, error)
	Revoke(ctx context.Context, name string) error
}

// Programs is what the pages of credentials work with.
type Programs struct {
	Credentials                          // that are made
	Configured  []credentials.Credential // those of the settings
	DropIn      map[string]http.Handler  // what answers programs, by source
}

// Webhooks are receivers of changes; feed.Feed fills it.
type Webhooks interface {
	// Webhooks are the receivers of changes, by name.
	Webhooks() []request.Webhook
	// Resume sets a webhook going again, after a change's number when after is not nil.
	// Errors: ErrNotFound, ErrInvalid.
	Resume(ctx context.Context, name string, after *int64) error
	// Pause stops a webhook until it is resumed, and keeps by whom. Errors: ErrNotFound.
	Pause(ctx context.Context, name, by string) error
}

// Holder is a person, a group of people or a program that has a role.
type Holder struct{ Role, Name, How string }

// Shelf keeps searches under names; the search's room fills it.
type Shelf interface {
	// Saved are a caller's own searches and those others share, by name.
	Saved(ctx context.Context, c understudy.Caller) ([]query.SavedSearch, error)
	// Save keeps one as its caller's, in place of an own one of that name.
	// ErrInvalid says what is wrong with its name or that there are too many.
	Save(ctx context.Context, c understudy.Caller, s query.SavedSearch) error
	// Forget takes an own one away: ErrNotFound when there is none of that name.
	Forget(ctx context.Context, c understudy.Caller, name string) error
}

// Media opens the contents of records; mirror.Mirror fills it.
type Media interface {
	// Open is the content a media path names. Its errors are those of the root
	// package, and the context's. The Medium must be closed.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// MaxForm bounds the body of a form, in bytes.
const MaxForm = 64 << 10

// Route is a pattern, what answers it, and the forms of it that people and scripts use.
type Route struct {
	Pattern string
	Handler Handler
	Forms   []string
}
