// Recorder: takes one profile at a time and keeps it.

// Package profile takes profiles of this process, keeps them in a bounded folder
// and tells what they say: by function, package, entry, job and credential.
package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	rt "runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"

	"understudy"
)

// The profiles there are.
const (
	// Allocs is what was allocated, sampled by the runtime all the time: one
	// sample for each 512 KiB, unless GODEBUG=memprofilerate says otherwise.
	Allocs = "allocs"
	// CPU is where processors spent their time, 100 samples for each second.
	CPU = "cpu"
)

// The lengths a profile may have.
const (
	Shortest = 100 * time.Millisecond
	Longest  = 10 * time.Minute
)

// Options are a recorder's settings.
type Options struct {
	Dir     string        // where profiles are kept; made when it is missing
	Limit   int64         // bytes they may take together; 0: 16 MiB
	Every   time.Duration // how often Run keeps what was allocated since; 0: 1h
	Version string        // of this program, kept with each
	Now     func() time.Time
	Logger  *slog.Logger // nil: discard
}

const (
	defaultLimit = 16 << 20
	defaultEvery = time.Hour
	// leastKept is the shortest life of a process whose allocations are kept at
	// its end.
	leastKept = 10 * time.Minute
)

// Recorder takes and keeps profiles. It is safe for concurrent use. A process
// has one: the runtime takes one CPU profile at a time.
type Recorder struct {
	o      Options
	began  time.Time
	onCPU  atomic.Bool
	mu     sync.Mutex
	taking *Taking // nil: none
	ring   sync.Mutex
}

// Taking is a profile under way.
type Taking struct {
	Kind  string    `json:"kind"`
	By    string    `json:"by"` // the caller that takes it
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	stop  chan struct{}
}

// BusyError is Take's while another profile is being taken.
type BusyError struct{ Taking Taking }

// Error names the caller that takes it, and the time it ends.
func (e *BusyError) Error() string {
	return fmt.Sprintf("profile: a profile of %s is being taken for %s since %s; it ends at %s: try again then, or stop it",
		e.Taking.Kind, e.Taking.By, e.Taking.From.UTC().Format(time.TimeOnly), e.Taking.Until.UTC().Format(time.TimeOnly))
}

// New makes a recorder. Now must be set.
func New(o Options) *Recorder {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	understudy.SetDefaults(&o.Logger, nil)
	return &Recorder{o: o, began: o.Now()}
}

// Now is the time by the recorder's clock.
func (r *Recorder) Now() time.Time { return r.o.Now() }

// OnCPU reports whether a CPU profile is being taken: only then are labels of any
// use.
func (r *Recorder) OnCPU() bool { return r != nil && r.onCPU.Load() }

// Taking is the profile under way; nil: none is.
func (r *Recorder) Taking() *Taking {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking == nil {
		return nil
	}
	t := *r.taking
	return &t
}

// Handler lets the requests a handler answers bear labels while a CPU profile is
// being taken, and no longer than they are answered.
func (r *Recorder) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.OnCPU() {
			h.ServeHTTP(w, req)
			return
		}
		rt.Do(req.Context(), rt.Labels(), func(context.Context) { h.ServeHTTP(w, req) })
	})
}

// Known labels the goroutine that answers a request with the caller, while a CPU
// profile is being taken. Goroutines it begins have the label too.
func (r *Recorder) Known(req *http.Request, c understudy.Caller) {
	if r.OnCPU() {
		rt.SetGoroutineLabels(rt.WithLabels(req.Context(), rt.Labels(CredentialLabel, c.Name)))
	}
}

// Stop ends the profile under way; Take returns what came so far. It reports
// whether there was one.
func (r *Recorder) Stop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking == nil {
		return false
	}
	select {
	case <-r.taking.stop: // stopped already
	default:
		close(r.taking.stop)
	}
	return true
}

// Take profiles this process for so long, or until Stop, and keeps the result. by names
// the caller. While another one is under way the error is a *BusyError; for an unknown
// kind or length, ErrInvalid. When ctx ends first, nothing is kept.
func (r *Recorder) Take(ctx context.Context, kind string, length time.Duration, by string) (*Kept, error) {
	switch {
	case kind != Allocs && kind != CPU:
		return nil, fmt.Errorf("profile: %w: there are allocs and cpu", understudy.ErrInvalid)
	case length < Shortest || length > Longest:
		return nil, fmt.Errorf("profile: %w: it takes from %v to %v", understudy.ErrInvalid, Shortest, Longest)
	}
	from := r.o.Now()
	t := &Taking{Kind: kind, By: by, From: from, Until: from.Add(length), stop: make(chan struct{})}
	r.mu.Lock()
	if r.taking != nil {
		defer r.mu.Unlock()
		return nil, &BusyError{*r.taking}
	}
	r.taking = t
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.taking = nil
		r.mu.Unlock()
	}()
	var p *profile.Profile
	var err error
	if kind == CPU {
		p, err = r.cpu(ctx, t, length)
	} else {
		p, err = r.allocs(ctx, t, length)
	}
	if err != nil {
		return nil, err
	}
	return r.keep(kind, from, p)
}

// wait waits for the end of a profile.
func (t *Taking) wait(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.stop:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// cpu samples running goroutines.
func (r *Recorder) cpu(ctx context.Context, t *Taking, length time.Duration) (*profile.Profile, error) {
	var b bytes.Buffer
	if err := rt.StartCPUProfile(&b); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	r.onCPU.Store(true)
	err := t.wait(ctx, length)
	r.onCPU.Store(false)
	rt.StopCPUProfile()
	if err != nil {
		return nil, err
	}
	return profile.Parse(&b)
}

// allocs is the difference between two readings of what the runtime has sampled
// since the process began. The runtime publishes with each collection, so there
// is one before each reading.
func (r *Recorder) allocs(ctx context.Context, t *Taking, length time.Duration) (*profile.Profile, error) {
	runtime.GC()
	before, err := allocated()
	if err != nil {
		return nil, err
	}
	if err := t.wait(ctx, length); err != nil {
		return nil, err
	}
	runtime.GC()
	after, err := allocated()
	if err != nil {
		return nil, err
	}
	return between(before, after, r.o.Now().Sub(t.From))
}

// allocated is what was allocated since the process began.
func allocated() (*profile.Profile, error) {
	var b bytes.Buffer
	if err := rt.Lookup("allocs").WriteTo(&b, 0); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return profile.Parse(&b)
}

// between is what was allocated between two readings, with what was held at the
// second: alloc_objects and alloc_space are the difference, inuse_objects and
// inuse_space the later value. before is changed.
func between(before, after *profile.Profile, took time.Duration) (*profile.Profile, error) {
	ratios := make([]float64, len(before.SampleType))
	for i, t := range before.SampleType {
		if t.Type == "alloc_objects" || t.Type == "alloc_space" {
			ratios[i] = -1
		}
	}
	p, err := minus(before, after, ratios)
	if err == nil {
		p.DurationNanos = int64(took)
	}
	return p, err
}

// minus adds before, times ratios, to after. before is changed.
func minus(before, after *profile.Profile, ratios []float64) (*profile.Profile, error) {
	if err := before.ScaleN(ratios); err != nil {
		return nil, fmt.Errorf("profile: compare: %w", err)
	}
	p, err := profile.Merge([]*profile.Profile{after, before})
	if err != nil {
		return nil, fmt.Errorf("profile: compare: %w", err)
	}
	p.TimeNanos, p.DurationNanos = after.TimeNanos, after.DurationNanos
	return p, nil
}

// Run keeps, at Options.Every and at the end, what was allocated since the last
// time, so that there is something to compare with; it forces no collection. It
// ends with ctx, and so does the profile under way.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(r.o.Every)
	defer tick.Stop()
	var last *profile.Profile
	from := r.began
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.Stop()
			if r.o.Now().Sub(from) < leastKept {
				return nil
			}
		}
		now, err := allocated()
		if err == nil {
			err = r.keepSince(last, now, from)
			last, from = now, r.o.Now()
		}
		if err != nil {
			r.o.Logger.Error("a profile was not kept", "err", err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// keepSince keeps what was allocated between two readings; a nil last is the start of
// the process. now is not changed.
func (r *Recorder) keepSince(last, now *profile.Profile, from time.Time) error {
	p := now.Copy()
	p.DurationNanos = int64(r.o.Now().Sub(from))
	if last != nil {
		var err error
		if p, err = between(last, p, r.o.Now().Sub(from)); err != nil {
			return err
		}
	}
	_, err := r.keep(Allocs, from, p)
	return err
}

// errNone is what a name that names no kept profile gets.
var errNone = errors.New("no profile of that name is kept")
