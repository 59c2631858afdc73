// Forecast: the numbers that are sampled, and the answers to questions about them.

// Package forecast says when a sampled number may reach a level.
//
//	mirror --saved page--> sampler --sample--> store
//	  ^                      |                   |
//	  '-- one a interval ----'                   v
//	                        alerts <---------- estimate (kit/touch)
package forecast

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/request"
	"understudy/spec"
)

// Store keeps series; store.DB fills it.
type Store interface {
	AddSamples(ctx context.Context, s understudy.Series, samples ...understudy.Sample) error
	ReadSamples(ctx context.Context, s understudy.Series) ([]understudy.Sample, error)
	ForgetSamples(ctx context.Context, source, kind string) (gone int, err error)
}

// Mirror fetches the pages that numbers stand on; mirror.Mirror fills it.
type Mirror interface {
	Fill(ctx context.Context, f request.Fill) (request.PageSaved, error)
}

// Options are what forecasts are made of.
type Options struct {
	Sources []*spec.Source
	Store   Store
	KV      understudy.KV // the units of series, and which alerts were told
	Mirror  Mirror
	// Enqueue adds the jobs that tell webhooks of alerts; nil: no webhook is told.
	Enqueue func(ctx context.Context, jobs ...understudy.Job) ([]int64, error)
	Now     func() time.Time // nil: time.Now
	Logger  *slog.Logger     // nil: discard
}

// Forecasts samples numbers and answers questions about them. It is safe for concurrent
// use.
type Forecasts struct {
	o     Options
	kinds map[understudy.Key]*sampled // by the page they stand on
	saved chan *understudy.Page
	slots chan struct{} // estimates at once

	mu     sync.Mutex
	last   map[understudy.Series]time.Time // of the newest sample
	marks  map[understudy.Series]int       // rise when samples come or go
	kept   map[Question]answer
	alerts []Alert
}

// sampled is a kind whose numbers are sampled.
type sampled struct {
	target *spec.Target
	fields []*spec.Field
	retry  time.Time // not before, after a fetch that failed; the goroutine of Run uses it
}

func (k *sampled) series(f *spec.Field) understudy.Series {
	return understudy.Series{Source: k.target.Key.Source, Kind: k.target.Kind.Name, Field: f.Name}
}

// answer is a forecast that is given again for a while.
type answer struct {
	forecast *Forecast
	mark     int
	at       time.Time
}

const (
	estimates = 2           // at once
	keepFor   = time.Minute // an answer without new samples
	mostKept  = 256         // answers
)

// New finds the numbers that specs mark. It begins nothing: Run does.
func New(o Options) (*Forecasts, error) {
	if o.Store == nil || o.KV == nil || o.Mirror == nil {
		return nil, fmt.Errorf("forecast: options need a store, notes and a mirror")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	f := &Forecasts{o: o, kinds: map[understudy.Key]*sampled{}, saved: make(chan *understudy.Page, savedQueue),
		slots: make(chan struct{}, estimates), last: map[understudy.Series]time.Time{}, marks: map[understudy.Series]int{},
		kept: map[Question]answer{}}
	for _, src := range o.Sources {
		for _, k := range src.Spec.Kinds {
			if err := f.add(src, k); err != nil {
				return nil, fmt.Errorf("forecast: %w", err)
			}
		}
	}
	return f, nil
}

// add adds a kind, when numbers of it are sampled.
func (f *Forecasts) add(src *spec.Source, k *spec.Kind) error {
	fields := k.SampledFields()
	if len(fields) == 0 {
		return nil
	}
	target, err := src.ResolveSample(k)
	if err == nil {
		f.kinds[target.Key] = &sampled{target: target, fields: fields}
	}
	return err
}

// Series are the numbers of a source that are sampled, by name; of every source for "".
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

// find is the kind of a series and its field; nil when it is not sampled.
func (f *Forecasts) find(s understudy.Series) (*sampled, *spec.Field) {
	for _, k := range f.kinds {
		for _, field := range k.fields {
			if k.series(field) == s {
				return k, field
			}
		}
	}
	return nil, nil
}

// Shown reports whether a caller may see forecasts of a series: it reads the page that
// the number stands on, and sees the field as it is.
func (f *Forecasts) Shown(gate *access.Gate, c understudy.Caller, s understudy.Series) bool {
	k, field := f.find(s)
	return k != nil && (c.Source == "" || c.Source == s.Source) && gate.CheckRead(c, k.target) == nil && gate.CanCount(c, s.Source, s.Kind) &&
		gate.Level(c, s.Source, s.Kind, field.Name) == access.See
}

// Ask answers a question. A series that is not sampled is ErrNotFound. Too little
// history is no error: Forecast.State says so.
func (f *Forecasts) Ask(ctx context.Context, q Question) (*Forecast, error) {
	if k, _ := f.find(q.Series); k == nil {
		return nil, fmt.Errorf("forecast: %w: %s is not sampled; the spec marks fields with sample: 1h", understudy.ErrNotFound, q.Series)
	}
	now := f.o.Now()
	f.mu.Lock()
	mark := f.marks[q.Series]
	had, ok := f.kept[q]
	f.mu.Unlock()
	if age := now.Sub(had.at); ok && had.mark == mark && age >= 0 && age < keepFor {
		return had.forecast, nil
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
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
	if len(f.kept) >= mostKept {
		maps.DeleteFunc(f.kept, func(Question, answer) bool { return true })
	}
	f.kept[q] = answer{made, mark, now}
	return made, nil
}

// Forget erases the series that were taken from a page, and returns how many samples they
// had.
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
		f.marks[k.series(field)]++
		f.mu.Unlock()
		if err := f.o.KV.SetValue(ctx, unitName(k.series(field)), nil); err != nil {
			return samples, fmt.Errorf("forecast: %w", err)
		}
	}
	return samples, nil
}
