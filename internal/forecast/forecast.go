// This file finds the sampled fields and answers questions about them.

// Package forecast estimates when a sampled number will reach a level.
//
//	mirror --saved page--> sampler --sample--> store
//	  ^                      |                   |
//	  '-- one an interval ---'                   v
//	                        alerts <---------- estimate (kit/touch)
package forecast

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/request"
	"understudy/spec"

	"understudy/kit/lockwatch"
)

// Store stores the samples of series. store.DB implements it.
type Store interface {
	AddSamples(ctx context.Context, s understudy.Series, samples ...understudy.Sample) error
	ReadSamples(ctx context.Context, s understudy.Series) ([]understudy.Sample, error)
	ForgetSamples(ctx context.Context, source, kind string) (deleted int, err error)
}

// Mirror fetches the pages that contain the sampled numbers. mirror.Mirror implements it.
type Mirror interface {
	Fill(ctx context.Context, f request.Fill) (request.PageSaved, error)
}

// Options are the dependencies and settings of Forecasts.
type Options struct {
	Sources []*spec.Source
	Store   Store
	KV      understudy.KV // stores the units of series and the state of alerts
	Mirror  Mirror
	// Enqueue adds the jobs that notify webhooks of alerts. If it is nil, alerts are not checked.
	Enqueue func(ctx context.Context, jobs ...understudy.Job) ([]int64, error)
	// IsLeader reports whether this process fetches pages for all processes on the database. nil means always.
	IsLeader func() bool
	Now      func() time.Time // the clock; nil means time.Now
	Logger   *slog.Logger     // receives log messages; nil means no log
}

// Forecasts samples numbers and answers questions about them. It is safe for concurrent use.
type Forecasts struct {
	o             Options
	kinds         map[understudy.Key]*sampledKind // the kinds with sampled fields, by the key of their page
	saved         chan *understudy.Page           // saved pages that wait for Run
	estimateSlots chan struct{}                   // limits the estimates that run at the same time

	mu           lockwatch.Mutex
	lastSampleAt map[understudy.Series]time.Time // the time of the newest sample of each series
	revisions    map[understudy.Series]int       // a number for each series that increases whenever samples are added or deleted
	answers      map[Question]cachedAnswer       // the cached answers of Ask
	alerts       []Alert
}

// sampledKind is a kind with sampled fields.
type sampledKind struct {
	target  *spec.Target
	fields  []*spec.Field
	retryAt time.Time // the earliest time of the next fetch; used only by the goroutine of Run
}

func (k *sampledKind) series(f *spec.Field) understudy.Series {
	return understudy.Series{Source: k.target.Key.Source, Kind: k.target.Kind.Name, Field: f.Name}
}

// cachedAnswer is a forecast that Ask returns again until answerLifetime has passed or the revision changes.
type cachedAnswer struct {
	forecast *Forecast
	revision int
	at       time.Time // the time when the forecast was computed
}

const (
	maxEstimates   = 2           // the maximum number of estimates that run at the same time
	answerLifetime = time.Minute // how long a cached answer is used if there are no new samples
	maxAnswers     = 256         // the maximum number of cached answers
)

// New finds the fields that the specs mark as sampled. It starts no goroutine; call Run to take samples.
func New(o Options) (*Forecasts, error) {
	if o.Store == nil || o.KV == nil || o.Mirror == nil {
		return nil, fmt.Errorf("forecast: options need a store, notes and a mirror")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	f := &Forecasts{o: o, kinds: map[understudy.Key]*sampledKind{}, saved: make(chan *understudy.Page, savedQueueSize),
		estimateSlots: make(chan struct{}, maxEstimates), lastSampleAt: map[understudy.Series]time.Time{},
		revisions: map[understudy.Series]int{}, answers: map[Question]cachedAnswer{}}
	for _, src := range o.Sources {
		for _, k := range src.Spec.Kinds {
			if err := f.add(src, k); err != nil {
				return nil, fmt.Errorf("forecast: %w", err)
			}
		}
	}
	return f, nil
}

// add registers a kind if it has sampled fields.
func (f *Forecasts) add(src *spec.Source, k *spec.Kind) error {
	fields := k.SampledFields()
	if len(fields) == 0 {
		return nil
	}
	target, err := src.ResolveSample(k)
	if err == nil {
		f.kinds[target.Key] = &sampledKind{target: target, fields: fields}
	}
	return err
}

// Series returns the sampled series of a source, sorted by name. If source is "", it returns the series of all sources.
func (f *Forecasts) Series(source string) (all []understudy.Series) {
	for _, k := range f.kinds {
		for _, field := range k.fields {
			if s := k.series(field); source == "" || source == s.Source {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b understudy.Series) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// find returns the kind and the field of a series. They are nil if the series is not sampled.
func (f *Forecasts) find(s understudy.Series) (*sampledKind, *spec.Field) {
	for _, k := range f.kinds {
		for _, field := range k.fields {
			if k.series(field) == s {
				return k, field
			}
		}
	}
	return nil, nil
}

// CanSee reports whether a caller may see forecasts of a series. The caller must be allowed to read the page
// that contains the number, to count records of the kind, and to see the field unmasked.
func (f *Forecasts) CanSee(gate *access.Gate, c understudy.Caller, s understudy.Series) bool {
	k, field := f.find(s)
	return k != nil && (c.Source == "" || c.Source == s.Source) && gate.CheckRead(c, k.target) == nil && gate.CanCount(c, s.Source, s.Kind) &&
		gate.Level(c, s.Source, s.Kind, field.Name) == access.See
}

// Ask answers a question. It returns ErrNotFound if the series is not sampled.
// If there are too few samples, it returns a Forecast with the state NotYet, not an error.
func (f *Forecasts) Ask(ctx context.Context, q Question) (*Forecast, error) {
	if k, _ := f.find(q.Series); k == nil {
		return nil, fmt.Errorf("forecast: %w: %s is not sampled; the spec marks fields with sample: 1h", understudy.ErrNotFound, q.Series)
	}
	now := f.o.Now()
	f.mu.Lock()
	revision := f.revisions[q.Series]
	cached, ok := f.answers[q]
	f.mu.Unlock()
	if age := now.Sub(cached.at); ok && cached.revision == revision && age >= 0 && age < answerLifetime {
		return cached.forecast, nil
	}
	select {
	case f.estimateSlots <- struct{}{}:
		defer func() { <-f.estimateSlots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	samples, err := f.o.Store.ReadSamples(ctx, q.Series)
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	made := estimate(q, samples, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.answers) >= maxAnswers {
		maps.DeleteFunc(f.answers, func(Question, cachedAnswer) bool { return true })
	}
	f.answers[q] = cachedAnswer{made, revision, now}
	return made, nil
}

// Forget deletes the samples and units that were taken from a page. It returns the number of deleted samples.
func (f *Forecasts) Forget(ctx context.Context, page understudy.Key) (samples int, err error) {
	k := f.kinds[page]
	if k == nil {
		return 0, nil
	}
	if samples, err = f.o.Store.ForgetSamples(ctx, page.Source, k.target.Kind.Name); err != nil {
		return 0, fmt.Errorf("forecast: %w", err)
	}
	for _, field := range k.fields {
		f.mu.Lock()
		f.revisions[k.series(field)]++
		f.mu.Unlock()
		if err := f.o.KV.SetValue(ctx, unitName(k.series(field)), nil); err != nil {
			return samples, fmt.Errorf("forecast: %w", err)
		}
	}
	return samples, nil
}
