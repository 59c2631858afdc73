// This file contains the crawler with its dependencies and settings.

// Package crawl walks every list so that no record is missed.
//
// The crawler runs four jobs, all safe to repeat. Sync fetches a kind from the newest record to the oldest. Catch-up
// follows the kind's newest page. Sweep repeats the walk of every time range to find late changes and removed records.
// Check fetches records that are not final again. The state of each kind between jobs is a value of the store.
package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/lockwatch"
	"understudy/kit/suggest"
	"understudy/request"
	"understudy/spec"
)

// Store is the part of package store that the crawler needs.
type Store interface {
	// ReadRows returns the stored records of a range, in its order.
	ReadRows(context.Context, query.RangeScan) ([]understudy.Row, error)
	// Record returns the newest version of a record in one shape, or ErrNotFound.
	Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error)
	// ReadChanges returns the changes of a source with numbers above after, in order.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
}

// Pages is an optional interface of a Store. With it, the crawler reads the newest page of a list after a restart.
type Pages interface {
	ReadPage(context.Context, understudy.Key) (*understudy.Page, error)
}

// Source is the part of package mirror that the crawler needs. Its counterpart is mirror.Coverage.
type Source interface {
	// Fill fetches a page and saves it. A refusal is returned as a page with its status; a 404 or 410 of an
	// instance deletes the record. Errors: ErrUnavailable, ErrNotStored, ErrOutdated (try later), the error
	// of Reserve, the context's error.
	Fill(context.Context, request.Fill) (request.PageSaved, error)
	// PollSynced sets the lists of a source whose newest page must stay fresh. Entries are as in
	// Source.Polls. Lists that the settings poll are not affected.
	PollSynced(source string, entries []string) error
	// Remove deletes a stored record that upstream no longer shows and that has no path of its own.
	Remove(ctx context.Context, source, kind, id string) error
}

// Jobs is the part of package jobs that the crawler needs.
type Jobs interface {
	// Enqueue adds jobs and returns their numbers. For a key with a live job it returns the number of that job.
	Enqueue(context.Context, ...understudy.Job) ([]int64, error)
}

// Run is a running job.
type Run interface {
	Job() understudy.Job
	SetProgress(done, total int64, note string)
	// SetMark saves the position from which the next run continues.
	SetMark(context.Context, []byte) error
	// Weigh sets how many bytes of memory the run uses now, without its pages.
	Weigh(ctx context.Context, bytes int64) error
	// Weigher counts the memory of one page in transfer. The function sets how many
	// bytes the page uses from now on, and waits until that memory is free.
	Weigher() func(ctx context.Context, bytes int64) error
}

// Settings are the settings of walks. Zero fields take the defaults.
type Settings struct {
	Horizon time.Duration // how far back walks go; 0 means as far as upstream allows
	Sweep   time.Duration // records not walked for this long do not count as complete; default 24 h
	Window  time.Duration // how long records that are not final are fetched again; default 7 days
	Slice   time.Duration // the time range of one walk; default 28 days
	Overlap time.Duration // the overlap of time ranges; default 24 h
	Slices  int           // time ranges walked in parallel; default 4
	Page    int           // records requested at once; 0 means upstream's maximum
	Pages   int           // maximum number of pages of one list; a longer list counts as endless; default 100,000
}

// withDefaults returns the settings with defaults for fields that are not positive.
func (s Settings) withDefaults() Settings {
	s.Sweep = cmp.Or(max(s.Sweep, 0), 24*time.Hour)
	s.Window = cmp.Or(max(s.Window, 0), 7*24*time.Hour)
	s.Slice = cmp.Or(max(s.Slice, 0), 28*24*time.Hour)
	s.Overlap = cmp.Or(max(s.Overlap, 0), 24*time.Hour)
	s.Slices = cmp.Or(max(s.Slices, 0), 4)
	s.Pages = cmp.Or(max(s.Pages, 0), 100_000)
	return s
}

// Options are the dependencies and settings of a Crawler. The functions and the Logger may be nil.
type Options struct {
	Sources  []*spec.Source
	Mirror   Source
	Store    Store
	KV       understudy.SharedKV
	Jobs     Jobs
	Settings Settings
	// Retention is how long records are kept, by source and kind. Older records are not stored, so no walk fetches them.
	Retention map[string]map[string]time.Duration
	// Count returns how many records of a kind are stored. If it is nil, the number of records of the last walk is
	// reported.
	Count counter
	// Down returns why a source cannot be reached now, or "" if it can be reached.
	Down func(source string) string
	Now  func() time.Time
	// Elapsed returns the time since a fixed moment by a monotonic clock. It shows by how much the clock Now was
	// set back. If Elapsed is nil, only times in the future show that.
	Elapsed func() time.Duration
	Logger  *slog.Logger
}

// Crawler plans and runs walks. It is safe for concurrent use.
type Crawler struct {
	o       Options
	walks   map[string]*kindCrawl // walks by SOURCE/KIND; the map does not change after New
	names   []string              // the keys of walks, sorted
	wake    chan struct{}
	repoll  atomic.Bool // whether the kinds that are kept complete have changed
	bounds  *bounds
	states  *states
	steps   *clockSteps
	status  *status
	nesting *nesting
	checks  *checks
	queue   *queue
	roots   *roots

	mu       lockwatch.Mutex
	unread   map[*kindCrawl]*tipPage // saved newest pages of lists that are not handled yet
	changed  map[string]bool         // the kinds (SOURCE/KIND) whose records have changed since the last look
	rechecks map[string]intervals    // time ranges to walk again at once, by kind; a range with From 0 means the whole lists
}

// kindCrawl is the walk of one kind in one root.
type kindCrawl struct {
	plan     *plan
	tip      understudy.Key // the cache key of the list's newest page, as the poller requests it
	shapes   []string       // the shapes of records that the kind's lists show
	parent   *kindCrawl     // the parent kind, in the root of the source's user; nil if the kind has none
	children []*kindCrawl   // the kinds whose parent is this kind
	// roots are the walks of the kind in roots other than the user's; nil if there are none.
	roots atomic.Pointer[map[string]*kindCrawl]

	state      atomic.Pointer[kindState] // the state as last read or written; the struct never changes; Coverage may read it at any time
	gapTip     atomic.Pointer[tipPage]   // a newest page that leaves a gap and is not handled yet
	joinedTip  atomic.Pointer[tipPage]   // the last newest page without a gap
	lastChange atomic.Int64              // number of the last change of the parent kind

	pace atomic.Pointer[pace] // the speed of the running sync; nil if none runs

	stored atomic.Pointer[kindState] // the state in the store; nil if it was not read yet

	mu    lockwatch.Mutex
	stall stall // why the kind's walks cannot continue
}

// New returns a crawler. It returns an error if a required option is missing.
func New(o Options) (*Crawler, error) {
	if o.Mirror == nil || o.Store == nil || o.KV == nil || o.Jobs == nil {
		return nil, errors.New("walk: a mirror, a store, notes and jobs must be given")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.Down == nil {
		o.Down = func(string) string { return "" }
	}
	o.Settings = o.Settings.withDefaults()
	w := &Crawler{
		o: o, walks: map[string]*kindCrawl{}, wake: make(chan struct{}, 1),
		unread: map[*kindCrawl]*tipPage{}, changed: map[string]bool{}, rechecks: map[string]intervals{},
	}
	b := &bounds{settings: o.Settings, retention: o.Retention, now: o.Now}
	s := &states{kv: o.KV, bounds: b, log: o.Logger}
	s.kept = func() { w.repoll.Store(true); understudy.Wake(w.wake) }
	w.bounds, w.states, w.steps = b, s, &clockSteps{states: s, bounds: b, elapsed: o.Elapsed, log: o.Logger}
	w.status = &status{states: s, bounds: b, down: o.Down}
	w.nesting = &nesting{bounds: b, store: o.Store}
	w.checks = &checks{bounds: b, store: o.Store}
	w.queue = &queue{jobs: o.Jobs, states: s, bounds: b, checks: w.checks}
	w.roots = &roots{crawler: w, requested: map[*spec.Source]map[string]bool{}}
	for _, src := range o.Sources {
		for _, k := range src.Spec.Kinds {
			p, err := newPlan(src, k, "")
			if err != nil {
				continue // Keep returns this error when the kind is requested
			}
			x := newCrawl(p)
			if p.isRooted() && len(src.Roots) > 0 {
				x.roots.Store(&map[string]*kindCrawl{})
			}
			w.walks[p.name()] = x
			w.names = append(w.names, p.name())
		}
	}
	for _, x := range w.walks {
		if x.plan.parentKind != nil {
			x.parent = w.walks[x.plan.source.Name+"/"+x.plan.parentKind.Name]
			x.parent.children = append(x.parent.children, x)
		}
	}
	return w, nil
}

// newCrawl returns the walk of a plan, with an unknown state.
func newCrawl(p *plan) *kindCrawl {
	x := &kindCrawl{plan: p, shapes: p.shapes()}
	if t, err := p.buildNewestTarget(); err == nil {
		x.tip = t.Key
	}
	return x
}

// find returns a kind by its source and name. The error wraps ErrInvalid and says why the kind cannot be walked.
func (w *Crawler) find(source, kind string) (*kindCrawl, error) {
	if x := w.walks[source+"/"+kind]; x != nil {
		return x, nil
	}
	src := spec.FindSource(w.o.Sources, source)
	if src == nil {
		return nil, fmt.Errorf("%w: no source is called %q", understudy.ErrInvalid, source)
	}
	k := src.Spec.Kind(kind)
	if k == nil {
		return nil, fmt.Errorf("%w: %s has no kind %q%s", understudy.ErrInvalid, src.Spec.Title, kind,
			suggest.Hint(kind, src.Spec.KindNames()))
	}
	_, err := newPlan(src, k, "")
	return nil, fmt.Errorf("%w: %w", errNever, err)
}

// errNever means that a kind can never be synced completely.
var errNever = errors.New("cannot be synced")

// IsNeverSynced reports whether an error of Keep says that a kind cannot be synced.
func IsNeverSynced(err error) bool { return errors.Is(err, errNever) }
