// Feed: its parts and its routes.

// Package feed tells subscribers what changed.
//
//	store ---rows---> reader (one a source) ---ring---> subscribers
//	  ^                  ^                                  |
//	  |                wake: Ring, or a timer             gate, filters
//	  '--- one that is far behind reads by itself <---------'
//
// A change is written to the store with the page it came in. A notification only
// wakes the reader: a lost one costs latency, never a change.
package feed

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/jsonapi"
	"understudy/kit/limiter"
	"understudy/request"
	"understudy/spec"
)

// Store keeps the changes. store.DB does.
type Store interface {
	// Changes are the source's changes above a number, in order.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
	// LastChange is the number of the last change, or 0.
	ReadLastChange(ctx context.Context, source string) (int64, error)
}

// Callers finds the caller of a request.
type Callers interface {
	IdentifyPerson(r *http.Request) (understudy.Caller, error)
}

// Policy has the grants and webhooks of the settings in force.
type Policy struct {
	Gate    *access.Gate
	Callers Callers
	Hooks   []Hook // where changes are delivered to
}

// Limits bound the feed. A zero field is its default.
type Limits struct {
	Subscribers int           // streams and waiting requests at once; 1000
	Each        int           // of one caller; 500
	Buffer      int           // newest changes kept in memory, of each source; 4096
	Heartbeat   time.Duration // a sign of life on a silent stream; 15 s
	Stall       time.Duration // a subscriber that takes nothing for so long is let go; 30 s
	Wait        time.Duration // the longest a request may wait; 1 min
	Look        time.Duration // how often the store is read without a notification; 3 s
	Pause       time.Duration // a webhook that has failed for so long is paused; 24 h
}

func (l Limits) withDefaults() Limits {
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	or := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt(&l.Subscribers, 1000)
	orInt(&l.Each, 500)
	orInt(&l.Buffer, 4096)
	or(&l.Heartbeat, 15*time.Second)
	or(&l.Stall, 30*time.Second)
	or(&l.Wait, time.Minute)
	or(&l.Look, 3*time.Second)
	or(&l.Pause, 24*time.Hour)
	return l
}

// Options are what a Feed is made of.
type Options struct {
	Sources []*spec.Source
	Store   Store
	KV      understudy.KV
	Policy  Policy
	Limits  Limits
	// Enqueue makes a job, or finds the live one of its key; nil: webhooks are
	// not delivered.
	Enqueue func(ctx context.Context, jobs ...understudy.Job) ([]int64, error)
	// Audit lists what is done to webhooks, and who follows the feed; nil: nothing is
	// listed.
	Audit understudy.Auditor
	// Token lets a request from this machine that carries it see everything; "": no
	// request.
	Token string
	// Seen is called repeatedly while a source has a subscriber; nil: no call.
	Seen   func(source string)
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discard
}

// Feed serves /-/feed and delivers to webhooks. It is safe for concurrent use.
type Feed struct {
	o       Options
	readers map[string]*reader
	names   []string // of the sources, in order
	places  places
	limiter *limiter.Limiter // by caller
	slow    chan struct{}    // a slot for each read of the store by a subscriber that is behind
	mux     *http.ServeMux

	now     atomic.Pointer[policy]
	mu      sync.Mutex // changing now
	hooks   *hooks
	stalled atomic.Int64 // subscribers let go because they took nothing
}

// policy is one policy in force; what is made under it goes with it.
type policy struct {
	rules Policy
	over  chan struct{} // closed when another policy is in force, or the feed ends

	mu     sync.Mutex
	ended  bool
	groups map[roleGroupKey]*roleGroup
}

func newRegime(p Policy) *policy {
	return &policy{rules: p, over: make(chan struct{}), groups: map[roleGroupKey]*roleGroup{}}
}

// slowReads is how many subscribers that are behind read the store at once, because
// other readers need the store, too.
const slowReads = 2

// New makes a feed that begins at what the store holds. It begins nothing:
// Run does.
func New(ctx context.Context, o Options) (*Feed, error) {
	if o.Store == nil || o.KV == nil || o.Policy.Gate == nil || o.Policy.Callers == nil || len(o.Sources) == 0 {
		return nil, fmt.Errorf("feed: options need sources, a store, a gate and callers")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.Seen == nil {
		o.Seen = func(string) {}
	}
	o.Limits = o.Limits.withDefaults()
	f := &Feed{
		o: o, readers: map[string]*reader{}, slow: make(chan struct{}, slowReads),
		limiter: limiter.New(o.Limits.Subscribers, o.Limits.Each),
	}
	var err error
	if f.places.key, err = jsonapi.SealingKey(ctx, o.KV, "feed"); err != nil {
		return nil, err
	}
	heads := map[string]int64{}
	for _, s := range o.Sources {
		if f.readers[s.Name], err = newReader(ctx, s.Name, o.Store, o.Limits.Buffer); err != nil {
			return nil, err
		}
		f.names = append(f.names, s.Name)
		heads[s.Name] = f.readers[s.Name].head
	}
	if f.places.runs, err = openRuns(ctx, o.KV, o.Now().UnixMilli(), heads, o.Logger); err != nil {
		return nil, err
	}
	f.hooks = newHooks(f)
	first := newRegime(o.Policy)
	if err := f.hooks.set(ctx, first); err != nil {
		return nil, err
	}
	f.now.Store(first)
	f.route()
	return f, nil
}

// SetPolicy puts another policy in force. Streams that began under the former policy
// end. Their subscribers come back at their position, with their present grants.
func (f *Feed) SetPolicy(ctx context.Context, p Policy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := newRegime(p)
	if err := f.hooks.set(ctx, next); err != nil {
		return err
	}
	f.now.Swap(next).end()
	return nil
}

// End ends every stream and waiting request and refuses new ones: the server is about
// to stop.
func (f *Feed) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.Load().end()
}

// isOver reports whether another policy is in force, or the feed has ended.
func (r *policy) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

func (r *policy) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.ended = true
		close(r.over)
	}
}

// Ring says that a page with changes was saved. It never blocks.
func (f *Feed) Ring(l request.PageSaved) {
	if len(l.Changes) > 0 {
		f.RingSource(l.Changes[0].Source)
	}
}

// RingSource says that a source has new changes. It never blocks.
func (f *Feed) RingSource(source string) {
	if r := f.readers[source]; r != nil {
		r.ring()
	}
}

// Run reads new changes and starts deliveries to webhooks, until ctx ends. Then it ends
// every stream.
func (f *Feed) Run(ctx context.Context) error {
	defer f.End()
	var wg sync.WaitGroup
	for _, r := range f.readers {
		wg.Go(func() { f.follow(ctx, r) })
		wg.Go(func() { f.tend(ctx, r) })
	}
	wg.Wait()
	return nil
}

// follow keeps one source's reader at the newest change.
func (f *Feed) follow(ctx context.Context, r *reader) {
	look := time.NewTicker(f.o.Limits.Look)
	defer look.Stop()
	failing := false
	for {
		move := r.pass
		if f.followed(r.source) {
			move = r.pull
		}
		err := move(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			f.o.Logger.Error("feed: read changes", "source", r.source, "err", err)
		}
		failing = err != nil
		select {
		case r.read <- struct{}{}:
		default:
		}
		select {
		case <-r.rung:
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// followed reports whether anybody takes a source's changes as they come: a
// subscriber, of any source, or a webhook.
func (f *Feed) followed(source string) bool {
	return f.limiter.Load().InUse > 0 || slices.ContainsFunc(f.hooks.all(), func(one *hook) bool { return one.settings.Source == source })
}

// tend starts deliveries to a source's webhooks after each read of follow. It is
// another goroutine because enqueueing a job writes to the store, and streams must not
// wait for that.
func (f *Feed) tend(ctx context.Context, r *reader) {
	for {
		select {
		case <-r.read:
			f.hooks.look(ctx, r)
		case <-ctx.Done():
			return
		}
	}
}

// Forget drops the changes in memory, because names of fields were erased from those in
// the store. A reader that is behind reads the store again.
func (f *Feed) Forget(source string) {
	if r := f.readers[source]; r != nil {
		r.forget()
	}
}

// Load returns the subscribers there are and may be. Dropped are those that took nothing.
func (f *Feed) Load() request.Load {
	l := f.limiter.Load()
	return request.Load{Limit: int64(l.All), Now: int64(l.InUse), Refused: l.Refused + l.RefusedEach, Dropped: f.stalled.Load()}
}
