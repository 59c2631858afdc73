// This file takes one profile at a time and stores it.

// Package profile takes profiles of this process and stores them in a folder of limited size. It summarises a
// profile by function, package, entry function, job and credential.
package profile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	rt "runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"

	"understudy"
	"understudy/kit/lockwatch"
)

// The kinds of profiles that can be taken.
const (
	// Allocs is a profile of memory allocations. The runtime samples them all the time: one sample for each 512
	// KiB, unless GODEBUG=memprofilerate says otherwise.
	Allocs = "allocs"
	// CPU is a profile of processor time, with 100 samples for each second.
	CPU = "cpu"
)

// The limits of a profile's duration.
const (
	Shortest = 100 * time.Millisecond
	Longest  = 10 * time.Minute
)

// Options are the options of a recorder.
type Options struct {
	Dir     string        // the folder of the profiles; it is created if missing
	Limit   int64         // the maximum size of all stored profiles in bytes; 0 means 16 MiB
	Every   time.Duration // how often Run stores a profile of allocations; 0 means 1h
	Version string        // the version of Understudy, stored with each profile
	Now     func() time.Time
	Logger  *slog.Logger // receives log messages; nil means no log
}

const (
	defaultLimit = 16 << 20
	defaultEvery = time.Hour
	// minLifetime is the minimum lifetime of a process whose allocations are stored when it ends.
	minLifetime = 10 * time.Minute
)

// Recorder takes and stores profiles. It is safe for concurrent use. A process has only one Recorder, because the
// runtime takes only one CPU profile at a time.
type Recorder struct {
	o      Options
	began  time.Time
	onCPU  atomic.Bool
	mu     lockwatch.Mutex
	taking *Taking // nil if no profile is being taken
	ring   lockwatch.Mutex
	flight atomic.Bool   // whether RecordEvents runs
	slow   chan struct{} // asks RecordEvents to store the last events
}

// Taking is a profile that is being taken.
type Taking struct {
	Kind  string    `json:"kind"`
	By    string    `json:"by"` // the name of the caller who takes the profile
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	stop  chan struct{}
}

// BusyError is the error of Take if another profile is being taken.
type BusyError struct{ Taking Taking }

// Error returns a sentence that names the caller who takes the other profile, and when that profile ends.
func (e *BusyError) Error() string {
	return fmt.Sprintf("profile: a profile of %s is being taken for %s since %s; it ends at %s: try again then, or stop it",
		e.Taking.Kind, e.Taking.By, e.Taking.From.UTC().Format(time.TimeOnly), e.Taking.Until.UTC().Format(time.TimeOnly))
}

// New returns a recorder. Now must be set.
func New(o Options) *Recorder {
	o.Limit = cmp.Or(max(o.Limit, 0), defaultLimit)
	o.Every = cmp.Or(max(o.Every, 0), defaultEvery)
	understudy.SetDefaults(&o.Logger, nil)
	return &Recorder{o: o, began: o.Now(), slow: make(chan struct{})}
}

// Now returns the time of the recorder's clock.
func (r *Recorder) Now() time.Time { return r.o.Now() }

// IsCPUProfiled reports whether a CPU profile is being taken. Only then are labels useful.
func (r *Recorder) IsCPUProfiled() bool { return r != nil && r.onCPU.Load() }

// Taking returns the profile that is being taken, or nil.
func (r *Recorder) Taking() *Taking {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking == nil {
		return nil
	}
	t := *r.taking
	return &t
}

// Handler wraps a handler. While a CPU profile is being taken, it resets the labels of the goroutine after each request.
func (r *Recorder) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.IsCPUProfiled() {
			h.ServeHTTP(w, req)
			return
		}
		rt.Do(req.Context(), rt.Labels(), func(context.Context) { h.ServeHTTP(w, req) })
	})
}

// MarkCaller labels the goroutine of a request with the caller's name while a CPU profile is being taken.
// Goroutines that it starts get the label too.
func (r *Recorder) MarkCaller(req *http.Request, c understudy.Caller) {
	if r.IsCPUProfiled() {
		rt.SetGoroutineLabels(rt.WithLabels(req.Context(), rt.Labels(CredentialLabel, c.Name)))
	}
}

// Stop ends the profile that is being taken. Take then returns what was recorded so far. Stop reports whether a
// profile was being taken.
func (r *Recorder) Stop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking == nil {
		return false
	}
	select {
	case <-r.taking.stop: // the profile was already stopped
	default:
		close(r.taking.stop)
	}
	return true
}

// Take profiles this process for length or until Stop, and stores the result. by is the caller's name. If another
// profile is being taken, the error is a *BusyError. For an unknown kind or an invalid length it is ErrInvalid. If
// ctx ends first, nothing is stored.
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
		p, err = r.takeCPU(ctx, t, length)
	} else {
		p, err = r.takeAllocs(ctx, t, length)
	}
	if err != nil {
		return nil, err
	}
	return r.keepProfile(kind, from, p)
}

// wait waits until the profile's length has passed, or until Stop.
func (t *Taking) wait(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
	case <-t.stop:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (r *Recorder) takeCPU(ctx context.Context, t *Taking, length time.Duration) (*profile.Profile, error) {
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

// takeAllocs returns the difference between two readings of the runtime's allocation samples. The runtime publishes
// samples at each garbage collection, so takeAllocs runs a collection before each reading.
func (r *Recorder) takeAllocs(ctx context.Context, t *Taking, length time.Duration) (*profile.Profile, error) {
	runtime.GC()
	before, err := readAllocs()
	if err != nil {
		return nil, err
	}
	if err := t.wait(ctx, length); err != nil {
		return nil, err
	}
	runtime.GC()
	after, err := readAllocs()
	if err != nil {
		return nil, err
	}
	return compareAllocs(before, after, r.o.Now().Sub(t.From))
}

// readAllocs returns the allocations since the process began.
func readAllocs() (*profile.Profile, error) {
	var b bytes.Buffer
	if err := rt.Lookup("allocs").WriteTo(&b, 0); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return profile.Parse(&b)
}

// compareAllocs returns the allocations between two readings, with the memory in use at the second reading.
// alloc_objects and alloc_space are differences; inuse_objects and inuse_space are the later values. compareAllocs
// changes the profile before.
func compareAllocs(before, after *profile.Profile, took time.Duration) (*profile.Profile, error) {
	ratios := make([]float64, len(before.SampleType))
	for i, t := range before.SampleType {
		if t.Type == "alloc_objects" || t.Type == "alloc_space" {
			ratios[i] = -1
		}
	}
	p, err := addScaled(before, after, ratios)
	if err == nil {
		p.DurationNanos = int64(took)
	}
	return p, err
}

// addScaled returns the profile after plus the profile before, whose values are multiplied by ratios. It changes before.
func addScaled(before, after *profile.Profile, ratios []float64) (*profile.Profile, error) {
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

// Run stores the allocations since the last time, every Options.Every and at the end. They are a base for
// comparisons. Run forces no garbage collection. When ctx ends, Run also ends the profile that is being taken.
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
			if r.o.Now().Sub(from) < minLifetime {
				return nil
			}
		}
		now, err := readAllocs()
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

// keepSince stores the allocations between two readings. If last is nil, it stores those since the start of the
// process. It does not change now.
func (r *Recorder) keepSince(last, now *profile.Profile, from time.Time) error {
	p := now.Copy()
	p.DurationNanos = int64(r.o.Now().Sub(from))
	if last != nil {
		var err error
		if p, err = compareAllocs(last, p, r.o.Now().Sub(from)); err != nil {
			return err
		}
	}
	_, err := r.keepProfile(Allocs, from, p)
	return err
}

func (r *Recorder) keepProfile(kind string, from time.Time, p *profile.Profile) (*Kept, error) {
	return r.keep(kind, from, time.Duration(p.DurationNanos), p.Write)
}

// errNoProfile is the error for a name under which no profile is stored.
var errNoProfile = errors.New("no profile with that name is stored")
