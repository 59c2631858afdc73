// the crawler: what it needs, its settings, how it starts and ends.

// Package crawl walks every list so that no record is missed.
//
// It fills up a kind from the newest record to the oldest (sync), follows its
// newest page (catch up), walks every stretch of it again and again to find
// what changed late or went (sweep), and looks again at records that are not
// final (check). Each of these is a job, safe to repeat; what is known between
// them lies in a note of the store.
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

// Mirror is what the crawler needs of the mirror room.
type Mirror interface {
	// Fill fetches a page and saves it. A refusal is a page with its status; a
	// 404 or 410 of an instance removes the record. Errors: ErrUnavailable,
	// ErrNotStored, ErrOutdated (come back later); that of Weigh; the context's.
	Fill(context.Context, request.Fill) (request.PageSaved, error)
}

// Store is what the crawler needs of the store room.
type Store interface {
	// Rows are the held records of a window, in its order.
	Rows(context.Context, query.RangeScan) ([]understudy.Row, error)
	// Record is the newest version of a record in one shape. ErrNotFound.
	Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error)
	// Changes are those of a source with numbers above after, in order.
	Changes(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
}

// Pages is what a Store may have besides: the newest page of a list is then looked
// at after a restart.
type Pages interface {
	Page(context.Context, understudy.Key) (*understudy.Page, error)
}

// Notes keeps small named values. ErrNotFound: there is none of that name.
type Notes interface {
	Note(ctx context.Context, name string) ([]byte, error)
	SetNote(ctx context.Context, name string, value []byte) error
}

// Jobs is what the crawler needs of the jobs room.
type Jobs interface {
	// Enqueue promises work; of a job whose key is live the number it has.
	Enqueue(context.Context, ...understudy.Job) ([]int64, error)
}

// Run is a job under way.
type Run interface {
	Job() understudy.Job
	Progress(done, total int64, note string)
	// SetMark keeps where the next run goes on.
	SetMark(context.Context, []byte) error
	// Weigh says how many bytes of memory the run takes now, without its pages.
	Weigh(ctx context.Context, bytes int64) error
	// Weigher is a page on its way: the function says how many bytes of memory it
	// takes from now on, and waits for room.
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
	return s
}

// Options are what a crawler is made of. Functions and Logger may be nil.
type Options struct {
	Sources []*spec.Source
	Mirror  Mirror
	Store   Store
	Notes   Notes
	Jobs    Jobs
	Remover Remover // nil: what has no path of its own is never removed
	Settings
	// Retention is how long records are kept, by source and kind: what is older
	// is not stored, so that no walk goes there.
	Retention map[string]map[string]time.Duration
	// Polls is told the kinds of a source whose newest page has to be kept
	// warm, besides those it polls anyway.
	Polls func(source string, kinds []string) error
	// Count is how many records are held of a kind; nil: what the last walk saw
	// is told instead.
	Count func(ctx context.Context, source, kind string) (int64, error)
	// Down says why a source cannot be asked now, "" when it can.
	Down func(source string) string
	Now  func() time.Time
	// Elapsed is the time since some moment by a clock that nobody sets. It tells by
	// how much Now was set back; nil: only what lies in the future tells that.
	Elapsed func() time.Duration
	Logger  *slog.Logger
}

// Crawler plans walks and runs them. Its methods may be called by any number of
// goroutines.
type Crawler struct {
	o     Options
	walks map[string]*kindCrawl // by SOURCE/KIND; does not change
	names []string              // its keys, in order
	wake  chan struct{}

	mu       sync.Mutex
	landed   map[string]*head     // newest pages that nobody has looked at yet
	changed  map[string]bool      // kinds under which something may have changed
	rechecks map[string]intervals // stretches that are walked again at once; From 0: the whole lists
	clocks   clockReading         // by the clocks, when they were last looked at
}

// kindCrawl is one kind that can be walked.
type kindCrawl struct {
	*plan
	tip      understudy.Key // of its newest page as it is polled
	shown    []string       // the shapes its lists show
	children []*kindCrawl   // kinds that lie under it

	// What Covered looks at: the state as it was last read or kept, never
	// changed; a newest page that leaves a gap and was not looked at yet; the last
	// that left none; the last change of the kind above.
	seen       atomic.Pointer[kindState]
	gap        atomic.Pointer[head]
	joined     atomic.Pointer[head]
	lastChange atomic.Int64

	mu    sync.Mutex
	state kindState
	kept  *kindState // what the store has of it; nil: it was not read yet
	now   pace       // of the sync under way
	stall stall      // what keeps its walks from going on
}

// New makes a crawler. Errors: what Options lack.
func New(o Options) (*Crawler, error) {
	if o.Mirror == nil || o.Store == nil || o.Notes == nil || o.Jobs == nil {
		return nil, errors.New("walk: a mirror, a store, notes and jobs must be given")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Down == nil {
		o.Down = func(string) string { return "" }
	}
	o.Settings = o.Settings.withDefaults()
	w := &Crawler{
		o: o, walks: map[string]*kindCrawl{}, wake: make(chan struct{}, 1),
		landed: map[string]*head{}, changed: map[string]bool{}, rechecks: map[string]intervals{},
	}
	for _, src := range o.Sources {
		for _, k := range src.Spec.Kinds {
			p, err := planOf(src, k)
			if err != nil {
				continue // Keep says why
			}
			x := &kindCrawl{plan: p, shown: p.shapes()}
			if t, err := p.newest(); err == nil {
				x.tip = t.Key
			}
			w.walks[p.name()] = x
			w.names = append(w.names, p.name())
		}
	}
	for _, x := range w.walks {
		if x.plan.parentKind != nil {
			above := w.walks[x.source.Name+"/"+x.plan.parentKind.Name]
			above.children = append(above.children, x)
		}
	}
	return w, nil
}

// find is a kind by its source and name. The error wraps ErrInvalid and says
// why it cannot be walked.
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
		if _, err := planOf(src, k); err != nil {
			return nil, fmt.Errorf("%w: %w", errNever, err)
		}
	}
	return nil, fmt.Errorf("%w: no source is called %q", understudy.ErrInvalid, source)
}

// errNever: the kind can never be complete.
var errNever = errors.New("cannot be synced")

// Never reports whether an error of Keep says that a kind cannot be synced.
func Never(err error) bool { return errors.Is(err, errNever) }

// clock is now in Unix seconds.
func (w *Crawler) clock() int64 { return w.o.Now().Unix() }
