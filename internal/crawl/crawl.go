// The crawler: its dependencies, its settings, its start and end.

// Package crawl walks every list so that no record is missed.
//
// The crawler has four jobs, all safe to repeat. Sync fetches a kind from the
// newest record to the oldest. Catch-up follows its newest page. Sweep repeats
// the walk of every interval to find late changes and removed records. Check
// fetches records that are not final again. The state between jobs is a value of
// the store.
package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/suggest"
	"understudy/request"
	"understudy/spec"
)

// Store is what the crawler needs of package store.
type Store interface {
	// Rows are the held records of a window, in its order.
	Rows(context.Context, query.RangeScan) ([]understudy.Row, error)
	// Record is the newest version of a record in one shape. ErrNotFound.
	Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error)
	// Changes are those of a source with numbers above after, in order.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
}

// Pages is an optional interface of a Store. With it, the crawler reads the newest
// page of a list after a restart.
type Pages interface {
	Page(context.Context, understudy.Key) (*understudy.Page, error)
}

// Source is what the crawler needs of package mirror. It is the counterpart of
// mirror.Coverage, which the crawler fills.
type Source interface {
	// Fill fetches a page and saves it. A refusal is a page with its status; a
	// 404 or 410 of an instance removes the record. Errors: ErrUnavailable,
	// ErrNotStored, ErrOutdated (come back later); that of Weigh; the context's.
	Fill(context.Context, request.Fill) (request.PageSaved, error)
	// PollSynced gets the lists of a source whose newest page has to stay warm, as in
	// Source.Polls, besides those that are polled anyway.
	PollSynced(source string, entries []string) error
	// Remove removes a record that upstream shows no more and that has no path of
	// its own.
	Remove(ctx context.Context, source, kind, id string) error
}

// Jobs is what the crawler needs of package jobs.
type Jobs interface {
	// Enqueue adds jobs and returns their numbers. For a key with a live job it
	// returns the number of that job.
	Enqueue(context.Context, ...understudy.Job) ([]int64, error)
}

// Run is a job under way.
type Run interface {
	Job() understudy.Job
	Progress(done, total int64, note string)
	// SetMark saves the position from which the next run continues.
	SetMark(context.Context, []byte) error
	// Weigh sets how many bytes of memory the run uses now, without its pages.
	Weigh(ctx context.Context, bytes int64) error
	// Weigher counts the memory of one page in transfer. The function sets how many
	// bytes the page uses from now on, and waits until that memory is free.
	Weigher() func(ctx context.Context, bytes int64) error
}

// Settings are the numbers of the walks. Zero fields take the defaults.
type Settings struct {
	Horizon time.Duration // how far back is walked; 0 = all that upstream gives
	Sweep   time.Duration // what was not walked for so long is not complete; default 24 h
	Window  time.Duration // how long records that are not final are looked at again; default 7 days
	Slice   time.Duration // the stretch of time one walk covers; default 28 days
	Overlap time.Duration // by which stretches overlap; default 24 h
	Slices  int           // walked beside each other; default 4
	Page    int           // records asked for at once; 0 = the most that upstream gives
	Pages   int           // of one walk over one list; one with more has no end; default 100,000
}

func (s Settings) withDefaults() Settings {
	or := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	or(&s.Sweep, 24*time.Hour)
	or(&s.Window, 7*24*time.Hour)
	or(&s.Slice, 28*24*time.Hour)
	or(&s.Overlap, 24*time.Hour)
	if s.Slices <= 0 {
		s.Slices = 4
	}
	if s.Pages <= 0 {
		s.Pages = 100_000
	}
	return s
}

// Options are what a crawler is made of. Functions and Logger may be nil.
type Options struct {
	Sources  []*spec.Source
	Mirror   Source
	Store    Store
	KV       understudy.KV
	Jobs     Jobs
	Settings Settings
	// Retention is how long records are kept, by source and kind. Older records are
	// not stored, so no walk fetches them.
	Retention map[string]map[string]time.Duration
	// Count returns how many records of a kind are held; nil: the count of the last
	// walk is reported instead.
	Count counter
	// Down says why a source cannot be asked now, "" when it can.
	Down func(source string) string
	Now  func() time.Time
	// Elapsed is the time since a fixed moment, by a monotonic clock. It shows by how
	// much Now was set back; nil: only times in the future show that.
	Elapsed func() time.Duration
	Logger  *slog.Logger
}

// Crawler plans walks and runs them. Its methods may be called by any number of
// goroutines.
type Crawler struct {
	o       Options
	walks   map[string]*kindCrawl // by SOURCE/KIND; does not change
	names   []string              // its keys, in order
	wake    chan struct{}
	bounds  *bounds
	states  *states
	steps   *clockSteps
	status  *status
	nesting *nesting
	checks  *checks
	queue   *queue
	roots   *roots

	mu       sync.Mutex
	unread   map[*kindCrawl]*head // newest pages that were not looked at yet
	changed  map[string]bool      // kinds under which something may have changed
	rechecks map[string]intervals // stretches that are walked again at once; From 0: the whole lists
}

// kindCrawl is one kind that can be walked.
type kindCrawl struct {
	plan     *plan
	tip      understudy.Key // of its newest page as it is polled
	shown    []string       // the shapes its lists show
	above    *kindCrawl     // the kind it lies under, in the root of the source's user; nil: none
	children []*kindCrawl   // kinds that lie under it
	// roots are its walks in other roots than the user's; nil: it is walked in no other.
	roots atomic.Pointer[map[string]*kindCrawl]

	// What Covered reads, at any time:
	seen       atomic.Pointer[kindState] // as last read or written; what it points at never changes
	gap        atomic.Pointer[head]      // a newest page that leaves a gap and was not handled yet
	joined     atomic.Pointer[head]      // the last newest page without a gap
	lastChange atomic.Int64              // of the parent kind

	now atomic.Pointer[pace] // of the sync under way; nil: there is none

	mu    sync.Mutex
	kept  *kindState // what the store has of it; nil: it was not read yet
	stall stall      // what keeps its walks from going on
}

// New makes a crawler. Errors: what Options lack.
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
		unread: map[*kindCrawl]*head{}, changed: map[string]bool{}, rechecks: map[string]intervals{},
	}
	b := &bounds{settings: o.Settings, retention: o.Retention, now: o.Now}
	s := &states{kv: o.KV, bounds: b, log: o.Logger}
	w.bounds, w.states, w.steps = b, s, &clockSteps{states: s, bounds: b, elapsed: o.Elapsed, log: o.Logger}
	w.status = &status{states: s, bounds: b, down: o.Down}
	w.nesting = &nesting{bounds: b, store: o.Store}
	w.checks = &checks{bounds: b, store: o.Store}
	w.queue = &queue{jobs: o.Jobs, states: s, bounds: b, checks: w.checks}
	w.roots = &roots{crawler: w, asked: map[*spec.Source]map[string]bool{}}
	for _, src := range o.Sources {
		for _, k := range src.Spec.Kinds {
			p, err := planOf(src, k, "")
			if err != nil {
				continue // Keep says why
			}
			x := newCrawl(p)
			if p.rooted() && len(src.Roots) > 0 {
				x.roots.Store(&map[string]*kindCrawl{})
			}
			w.walks[p.name()] = x
			w.names = append(w.names, p.name())
		}
	}
	for _, x := range w.walks {
		if x.plan.parentKind != nil {
			x.above = w.walks[x.plan.source.Name+"/"+x.plan.parentKind.Name]
			x.above.children = append(x.above.children, x)
		}
	}
	return w, nil
}

// newCrawl is a walk of a plan, of which nothing is known yet.
func newCrawl(p *plan) *kindCrawl {
	x := &kindCrawl{plan: p, shown: p.shapes()}
	if t, err := p.newest(); err == nil {
		x.tip = t.Key
	}
	return x
}

// find returns a kind by its source and name. The error wraps ErrInvalid and says
// why the kind cannot be walked.
func (w *Crawler) find(source, kind string) (*kindCrawl, error) {
	if x := w.walks[source+"/"+kind]; x != nil {
		return x, nil
	}
	for _, src := range w.o.Sources {
		if src.Name != source {
			continue
		}
		k := src.Spec.Kind(kind)
		if k == nil {
			var known []string
			for _, k := range src.Spec.Kinds {
				known = append(known, k.Name)
			}
			return nil, fmt.Errorf("%w: %s has no kind %q%s", understudy.ErrInvalid, src.Spec.Title, kind, suggest.Hint(kind, known))
		}
		if _, err := planOf(src, k, ""); err != nil {
			return nil, fmt.Errorf("%w: %w", errNever, err)
		}
	}
	return nil, fmt.Errorf("%w: no source is called %q", understudy.ErrInvalid, source)
}

// errNever: the kind can never be complete.
var errNever = errors.New("cannot be synced")

// Never reports whether an error of Keep says that a kind cannot be synced.
func Never(err error) bool { return errors.Is(err, errNever) }
