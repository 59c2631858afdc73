// The viewer: its options, its start, and the path of one request through it.

// Package viewer shows people the records they may see, as web pages that need
// no JavaScript.
//
// Every page is rendered on the server from a view of the gate: nothing that a
// caller may not see reaches a template. What is held is sent at once and whole;
// a part of the page that has to be waited for comes behind it, to its place
// (parts.go).
//
// HTML and the JSON beside it are compressed when the browser takes gzip. That
// is safe here (BREACH needs a secret and reflected text in one body): no page
// holds a token, a cookie's value or a credential, and the forms are guarded by
// the Sec-Fetch-Site and Origin headers, not by a token.
package viewer

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/places"
	"understudy/kit/recent"
)

// Mirror answers for upstream; mirror.Mirror fills it.
type Mirror interface {
	// Page is the newest fitting answer for a target. Its errors are those of
	// the root package.
	Page(ctx context.Context, a understudy.Ask) (*understudy.Answer, error)
}

// Callers knows who is asking.
type Callers interface {
	// Person names the caller of a browser's request: ErrUnauthorized when
	// nobody we know asks, ErrForbidden with the line to add when somebody may
	// not.
	Person(r *http.Request) (understudy.Caller, error)
}

// Options are the viewer's settings and what it reads from.
type Options struct {
	Sources []*understudy.Source
	Mirror  Mirror
	Gate    *access.Gate
	Callers Callers
	History History // what was seen of records; nil: no timeline
	Jobs    Jobs    // promised work; nil: no page of it
	// Feed is the address of the feed of changes, "/-/feed"; with it a list's
	// newest page says how many records came since. "": it does not.
	Feed   string
	Search Search // finds records by words and conditions; nil: search opens ids and numbers alone
	Shelf  Shelf  // keeps searches under names; nil: none is kept
	Media  Media  // contents of records; nil: none is played or shown
	Seals  *Seals // of their addresses; nil: new ones, as with every New

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
	// Exports are the places of exports, by the caller's name. nil: 4, 2 of one
	// caller. Viewers that follow one another share them.
	Exports *places.Places
	// Until says when an export of a caller must end: over is closed when what the
	// caller may see is another matter. done is called at its end. nil: never.
	Until func(c understudy.Caller) (over <-chan struct{}, done func())
	// Version is shown in the footer.
	Version string
	Logger  *slog.Logger     // nil: discard
	Now     func() time.Time // nil: time.Now
}

// mostSearched bounds the results of searches that are kept, of 20 records at most.
const mostSearched = 500

// Viewer is the web face, an http.Handler. It is safe for concurrent use.
type Viewer struct {
	Options
	sources   []*plan.Source
	byName    map[string]*plan.Source
	mux       *http.ServeMux
	own       *http.ServeMux // the viewer's part of /-/
	files     *files
	pages     *pages
	kept      *recent.Cache[identity, []*fragment]
	searched  *recent.Cache[identity, *understudy.SearchResult]
	seed      maphash.Seed // of what identities are made of
	zones     *zones
	numbers   *numbers
	snapshots snapshots
	works     lately[*work]
	forms     *http.CrossOriginProtection
	glance    time.Duration // tests have less
}

// New checks the options, plans the pages of every kind and reads the
// templates. Close stops what it starts later.
func New(o Options) (*Viewer, error) {
	if o.Mirror == nil || o.Gate == nil || o.Callers == nil {
		return nil, fmt.Errorf("viewer: options need a mirror, a gate and callers")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Deadline == 0 {
		o.Deadline = 30 * time.Second
	}
	if o.ExportRows == 0 {
		o.ExportRows = mostExported
	}
	if o.ExportTime == 0 {
		o.ExportTime = exportTime
	}
	if o.Until == nil {
		o.Until = func(understudy.Caller) (<-chan struct{}, func()) { return nil, func() {} }
	}
	if o.Exports == nil {
		o.Exports = places.New(mostExporting, mostExporting/2)
	}
	if o.Version == "" {
		o.Version = "development"
	}
	v := &Viewer{
		Options: o, byName: map[string]*plan.Source{}, kept: recent.New[identity, []*fragment](fragmentBytes), seed: maphash.MakeSeed(), zones: newZones(o.Zone), glance: glance,
	}
	for _, src := range o.Sources {
		p, err := plan.New(src)
		if err != nil {
			return nil, err
		}
		if v.byName[p.Name] != nil {
			return nil, fmt.Errorf("viewer: source %s is there twice", p.Name)
		}
		v.sources = append(v.sources, p)
		v.byName[p.Name] = p
	}
	v.searched = recent.New[identity, *understudy.SearchResult](mostSearched)
	var err error
	if v.files, err = readFiles(); err != nil {
		return nil, fmt.Errorf("viewer: %w", err)
	}
	if v.pages, err = readPages(v.files); err != nil {
		return nil, fmt.Errorf("viewer: %w", err)
	}
	if v.Seals == nil {
		if v.Seals, err = NewSeals(); err != nil {
			return nil, fmt.Errorf("viewer: %w", err)
		}
	}
	v.forms = http.NewCrossOriginProtection()
	if o.PublicURL != "" {
		if err := v.forms.AddTrustedOrigin(strings.TrimSuffix(o.PublicURL, "/")); err != nil {
			return nil, fmt.Errorf("viewer: public_url: %w", err)
		}
	}
	v.numbers = newNumbers(v)
	v.route()
	return v, nil
}

// Close ends the viewer's own reading and waits for it. Requests still running
// are not waited for; the server that runs them does that.
func (v *Viewer) Close() error {
	v.numbers.close()
	return nil
}

// ServeHTTP answers a browser.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if strings.HasPrefix(r.URL.Path, controlPrefix) {
		if _, pattern := v.own.Handler(r); pattern != "" {
			v.own.ServeHTTP(w, r)
			return
		}
		if v.Control != nil {
			v.Control.ServeHTTP(w, r)
			return
		}
	}
	v.mux.ServeHTTP(w, r)
}

// policy lets a page load its own files and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// secure sets the headers every answer carries.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
