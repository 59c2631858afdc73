// This file contains the feed with its options, limits and policy, and the goroutines that read new changes.

// Package feed sends changes to subscribers and webhooks.
//
//	store ---rows---> reader (one a source) ---buffer---> subscribers
//	  ^                  ^                                  |
//	  |             NotifyPage, or a timer                gate, filters
//	  '--- a subscriber that is far behind <----------------'
//
// The store saves a change together with the page that caused it. A notification only wakes the reader. If a
// notification is lost, the change is delivered later, but never lost.
package feed

import (
	"cmp"
	"context"
	"errors"
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

	"understudy/kit/lockwatch"
)

// Store keeps the changes. store.DB implements it.
type Store interface {
	// ReadChanges returns at most limit changes of a source above a number, in order.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
	// ReadLastChange returns the number of a source's last change, or 0.
	ReadLastChange(ctx context.Context, source string) (int64, error)
}

// Policy contains the grants and webhooks of the current settings.
type Policy struct {
	Gate    *access.Gate
	Callers jsonapi.Callers
	Hooks   []Hook // the webhooks that receive changes
}

// Limits are the limits of the feed. A zero field means its default.
type Limits struct {
	MaxSubscribers int           // the maximum number of streams and waiting requests; default 1000
	MaxEach        int           // the maximum number of streams and waiting requests of one caller; default 500
	MaxBuffered    int           // the number of newest changes of each source that are kept in memory; default 4096
	Heartbeat      time.Duration // the interval between heartbeats on a silent stream; default 15 s
	Stall          time.Duration // how long a subscriber may read nothing before it is disconnected; default 30 s
	Wait           time.Duration // the maximum of a request's parameter wait; default 1 min
	PollInterval   time.Duration // how often the store is read if there is no notification; default 3 s
	Pause          time.Duration // how long a receiver may fail before its webhook is paused; default 24 h
}

// withDefaults returns the limits with defaults in place of zero and negative values.
func (l Limits) withDefaults() Limits {
	l.MaxSubscribers = cmp.Or(max(l.MaxSubscribers, 0), 1000)
	l.MaxEach = cmp.Or(max(l.MaxEach, 0), 500)
	l.MaxBuffered = cmp.Or(max(l.MaxBuffered, 0), 4096)
	l.Heartbeat = cmp.Or(max(l.Heartbeat, 0), 15*time.Second)
	l.Stall = cmp.Or(max(l.Stall, 0), 30*time.Second)
	l.Wait = cmp.Or(max(l.Wait, 0), time.Minute)
	l.PollInterval = cmp.Or(max(l.PollInterval, 0), 3*time.Second)
	l.Pause = cmp.Or(max(l.Pause, 0), 24*time.Hour)
	return l
}

// Options are the dependencies and settings of a Feed.
type Options struct {
	Sources []*spec.Source
	Store   Store
	KV      understudy.SharedKV
	Policy  Policy
	Limits  Limits
	// Enqueue creates a job. If a job with the same key is waiting or running, it returns that job. If Enqueue is
	// nil, webhooks receive nothing.
	Enqueue func(ctx context.Context, jobs ...understudy.Job) ([]int64, error)
	// Audit records commands to webhooks and requests for the feed. If nil, nothing is recorded.
	Audit understudy.Auditor
	// Token gives a local request that carries it access to everything. An empty token gives no access.
	Token   string
	Sharing Sharing // whether other processes serve the same feed
	// OnSubscribed is called repeatedly while a source has a subscriber. It may be nil.
	OnSubscribed func(source string)
	Now          func() time.Time // the clock; nil means time.Now
	SharedNow    func() time.Time // the clock of what is saved about webhooks, which all processes share; nil means Now
	Logger       *slog.Logger     // receives log messages; nil means no log
}

// Feed serves /-/feed and delivers to webhooks. It is safe for concurrent use.
type Feed struct {
	o         Options
	readers   map[string]*reader
	names     []string // the names of the sources, in order
	places    places
	limiter   *limiter.Limiter // limits subscribers, in total and by caller
	slowReads chan struct{}    // limits how many subscribers read old changes from the store at once
	mux       *http.ServeMux

	current atomic.Pointer[policy]
	mu      lockwatch.Mutex // held while current is replaced
	hooks   *hooks
	dropped atomic.Int64 // the number of subscribers disconnected because they read nothing
}

// policy is a Policy that applies, with the role groups computed under it.
type policy struct {
	rules Policy
	done  chan struct{} // closed when the policy is replaced or the feed ends

	mu     lockwatch.Mutex
	ended  bool
	groups map[roleGroupKey]*roleGroup
}

func newPolicy(p Policy) *policy {
	return &policy{rules: p, done: make(chan struct{}), groups: map[roleGroupKey]*roleGroup{}}
}

// maxSlowReads is the maximum number of subscribers that read old changes from the store at once. It is low because
// other readers need the store too.
const maxSlowReads = 2

// New returns a Feed that begins after the changes already stored. It starts no goroutine; Run does.
func New(ctx context.Context, o Options) (*Feed, error) {
	if o.Store == nil || o.KV == nil || o.Policy.Gate == nil || o.Policy.Callers == nil || len(o.Sources) == 0 {
		return nil, fmt.Errorf("feed: options need sources, a store, a gate and callers")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.SharedNow == nil {
		o.SharedNow = o.Now
	}
	if o.OnSubscribed == nil {
		o.OnSubscribed = func(string) {}
	}
	o.Limits = o.Limits.withDefaults()
	f := &Feed{
		o: o, readers: map[string]*reader{}, slowReads: make(chan struct{}, maxSlowReads),
		limiter: limiter.New(o.Limits.MaxSubscribers, o.Limits.MaxEach),
	}
	var err error
	if f.places.key, err = jsonapi.LoadSealingKey(ctx, o.KV, "feed"); err != nil {
		return nil, err
	}
	heads := map[string]int64{}
	for _, s := range o.Sources {
		if f.readers[s.Name], err = newReader(ctx, s.Name, o.Store, o.Limits.MaxBuffered); err != nil {
			return nil, err
		}
		f.names = append(f.names, s.Name)
		heads[s.Name] = f.readers[s.Name].head
	}
	if f.places.runs, err = openRuns(ctx, o.KV, o.Now().UnixMilli(), heads, o.Sharing, o.Logger); err != nil {
		return nil, err
	}
	f.hooks = &hooks{f: f, byName: map[string]*hook{}}
	first := newPolicy(o.Policy)
	if err := errors.Join(o.KV.Watch(ctx, hookPrefix, f.hooks.receive), f.hooks.replaceAll(ctx, first)); err != nil {
		return nil, err
	}
	f.current.Store(first)
	f.addRoutes()
	return f, nil
}

// SetPolicy replaces the policy. Streams that began under the former policy end. Their subscribers reconnect at
// their position, with their current grants.
func (f *Feed) SetPolicy(ctx context.Context, p Policy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := newPolicy(p)
	if err := f.hooks.replaceAll(ctx, next); err != nil {
		return err
	}
	f.current.Swap(next).end()
	return nil
}

// End ends every stream and waiting request, and refuses new requests. The server calls it before it stops.
func (f *Feed) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current.Load().end()
}

// isOver reports whether the policy was replaced or the feed has ended.
func (r *policy) isOver() bool { return understudy.IsClosed(r.done) }

func (r *policy) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.ended = true
		close(r.done)
	}
}

// NotifyPage tells the feed that a page with changes was saved. It never blocks.
func (f *Feed) NotifyPage(l request.PageSaved) {
	if len(l.Changes) > 0 {
		f.NotifySource(l.Changes[0].Source)
	}
}

// NotifySource tells the feed that a source has new changes. It never blocks.
func (f *Feed) NotifySource(source string) {
	if r := f.readers[source]; r != nil {
		r.notify()
	}
}

// Run reads new changes and starts deliveries to webhooks until ctx ends. Then it ends every stream.
func (f *Feed) Run(ctx context.Context) error {
	defer f.End()
	var wg sync.WaitGroup
	for _, r := range f.readers {
		wg.Go(func() { f.follow(ctx, r) })
		wg.Go(func() { f.startDeliveries(ctx, r) })
	}
	wg.Wait()
	return nil
}

// follow makes the reader of a source read every new change.
func (f *Feed) follow(ctx context.Context, r *reader) {
	look := time.NewTicker(f.o.Limits.PollInterval)
	defer look.Stop()
	failing := false
	for {
		move := r.skipToNewest
		if f.hasFollower(r.source) {
			move = r.readNew
		}
		err := move(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			f.o.Logger.Error("feed: read changes", "source", r.source, "err", err)
		}
		failing = err != nil
		understudy.Wake(r.readDone)
		select {
		case <-r.wake:
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// hasFollower reports whether a source has a webhook, or any source has a subscriber. Then the reader must keep new
// changes.
func (f *Feed) hasFollower(source string) bool {
	return f.limiter.Load().InUse > 0 || slices.ContainsFunc(f.hooks.all(), func(one *hook) bool { return one.settings.Source == source })
}

// startDeliveries adds jobs that deliver changes to a source's webhooks, after each read of follow. It runs in its
// own goroutine, because adding a job writes to the store and streams must not wait for that.
func (f *Feed) startDeliveries(ctx context.Context, r *reader) {
	for {
		select {
		case <-r.readDone:
			f.hooks.enqueueDue(ctx, r)
		case <-ctx.Done():
			return
		}
	}
}

// Forget removes the changes from memory after field names in the stored changes were erased. Subscribers that are
// behind read the store again.
func (f *Feed) Forget(source string) {
	if r := f.readers[source]; r != nil {
		r.forget()
	}
}

// Load returns the number of subscribers, the limit, and how many subscribers were refused or disconnected.
func (f *Feed) Load() request.Load {
	l := f.limiter.Load()
	return request.Load{Limit: int64(l.All), Now: int64(l.InUse), Refused: l.Refused + l.RefusedEach, Dropped: f.dropped.Load()}
}
