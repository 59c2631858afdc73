// Shadow reads: a list that upstream has just answered is also made from records, and both are compared.
//
// A sample comes from a page that a reader caused, if upstream is asked first. If records are asked first,
// one answer in a hundred is fetched in the background.
//
// The records of the page are saved before the comparison. So records that are new or changed since the last
// walk are no difference. A change after the save makes the sample void.

// Package shadow measures how well lists made from records agree with upstream.
package shadow

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/spec"
)

const (
	maxSamples   = 64              // maximum number of waiting samples; more are dropped
	maxBytes     = 4 << 20         // maximum bytes of their pages, without the last one
	saveInterval = 5 * time.Second // time between two saves of the agreement
	saveTime     = 5 * time.Second // maximum time of the last save
)

// Sample is a page that upstream gave.
type Sample struct {
	Target *spec.Target
	Page   *understudy.Page
	Saved  int64 // the kind's counter of changes after the page was saved
}

// Options are the settings of shadow reads. The functions are required.
type Options struct {
	// FromRecords returns the page that records give for a sample's request. It returns nil if the list is not
	// covered, or if the kind has changed since the sample's page was saved.
	FromRecords func(context.Context, Sample) *understudy.Page
	// Recheck starts to fetch the records gone again: composed shows them, but upstream did not. It returns at once.
	Recheck func(s Sample, composed *understudy.Page, gone []string)

	KV     understudy.KV // nil if the agreement is not stored
	Now    func() time.Time
	Logger *slog.Logger
}

// Reads are the shadow reads of all sources.
type Reads struct {
	options Options
	sources map[string]*Lists
	samples chan Sample
	bytes   atomic.Int64 // bytes of the pages of waiting samples
}

// New returns shadow reads without sources.
func New(o Options) *Reads {
	return &Reads{options: o, sources: map[string]*Lists{}, samples: make(chan Sample, maxSamples)}
}

// AddSource adds the lists of a source. Call it before Run. It returns an error for answers that SetAnswers
// refuses.
func (r *Reads) AddSource(src *spec.Source, answers map[string]Answers, perMinute float64) (*Lists, error) {
	ls := &Lists{src: src, lists: map[*spec.List]*List{}}
	ls.checks.set(perMinute)
	for _, k := range src.Spec.Kinds {
		for _, l := range k.Lists {
			if len(k.ID) > 0 {
				ls.lists[l] = &List{kind: k, list: l, checks: &ls.checks}
			}
		}
	}
	if err := ls.setAnswers(answers); err != nil {
		return nil, err
	}
	r.sources[src.Name] = ls
	return ls, nil
}

// Add queues a sample for comparison. It does not block: if too many samples wait, the sample is dropped.
func (r *Reads) Add(s Sample) {
	bytes := int64(len(s.Page.Body))
	if r.bytes.Load() > maxBytes {
		return
	}
	r.bytes.Add(bytes)
	select {
	case r.samples <- s:
	default:
		r.bytes.Add(-bytes)
	}
}

// Run compares samples and saves the agreement until ctx ends.
func (r *Reads) Run(ctx context.Context) {
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
			defer cancel()
			r.save(ctx)
			return
		case s := <-r.samples:
			r.measure(ctx, s)
			r.bytes.Add(-int64(len(s.Page.Body)))
		case <-ticker.C:
			r.save(ctx)
		}
	}
}

// measure compares one sample and counts the result. It recovers from panics; then only the sample is lost.
func (r *Reads) measure(ctx context.Context, s Sample) {
	defer func() {
		if p := recover(); p != nil {
			r.options.Logger.Error("mirror: panic", "key", s.Target.Key.String(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	l := r.sources[s.Target.Key.Source].Find(s.Target)
	told := r.options.FromRecords(ctx, s)
	if told == nil {
		return
	}
	d, gone := compare(s.Page, told, s.Target.List.Key)
	if d.Field != "" {
		d.At = r.options.Now()
		r.options.Recheck(s, told, gone)
	}
	if !l.count(d, s.Page.Status == 200) {
		return
	}
	if log, kind, list := r.options.Logger, l.kind.Name, l.list.Path; l.IsRecordsFirst() {
		log.Info("mirror: a list is answered from records first from now on", "kind", kind, "list", list, "samples", SamplesNeeded)
	} else {
		log.Warn("mirror: a list made from records differs; it is answered from upstream first again", "kind", kind, "list", list,
			"field", d.Field, "where", d.Where)
	}
	r.save(ctx)
}
