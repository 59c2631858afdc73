// Shadow reads: a list that upstream has just answered is also composed from records, and both pages are compared.
//
// Each comparison needs a page from upstream, called a sample. If a list is requested from upstream first, the
// samples are the pages that readers request. If the list is composed from records first, one in a hundred answers is
// fetched from upstream in the background.
//
// The records on the sample are saved before the comparison. So records that were new or had changed make no
// difference. If a record changes after that, the sample is dropped.

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
	maxSamples   = 64              // the maximum number of samples that wait for their comparison; further samples are dropped
	maxBytes     = 4 << 20         // the maximum size in bytes of the waiting samples, not counting the newest
	saveInterval = 5 * time.Second // the time after which the results of the comparisons are stored
	saveTime     = 5 * time.Second // how long the results of the comparisons may take to be stored at the end
)

// Sample is a page from upstream that is compared with the page composed from records.
type Sample struct {
	Target *spec.Target
	Page   *understudy.Page
	Saved  int64 // the number of changes to the kind after the page was saved
}

// Options are the settings of Reads. The functions must not be nil.
type Options struct {
	// FromRecords returns the page composed from records for the request of a sample. It returns nil if records may
	// be missing from the store, or if records of the kind have changed since the sample was saved.
	FromRecords func(context.Context, Sample) *understudy.Page
	// Recheck starts to fetch the records in gone again. They are on the composed page, but not on upstream's page.
	// It returns at once.
	Recheck func(s Sample, composed *understudy.Page, gone []string)

	KV     understudy.KV // stores how often lists agreed; nil if that is not stored
	Now    func() time.Time
	Logger *slog.Logger
}

// Reads compares lists of all sources.
type Reads struct {
	options Options
	sources map[string]*Lists
	samples chan Sample
	bytes   atomic.Int64 // the size in bytes of the samples that wait for their comparison
}

// New returns a Reads that has no sources yet.
func New(o Options) *Reads {
	return &Reads{options: o, sources: map[string]*Lists{}, samples: make(chan Sample, maxSamples)}
}

// AddSource adds the lists of a source. It must be called before Run. It returns an error if SetAnswers does not
// accept answers.
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

// Add queues a sample for its comparison. If too many samples are waiting, it drops the sample. It does not block.
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

// Run compares samples, and stores the agreement, until ctx ends.
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

// measure compares one sample and counts the result. If a panic occurs, it drops the sample and continues.
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
		log.Info("mirror: a list is now answered from records first", "kind", kind, "list", list, "samples", SamplesNeeded)
	} else {
		log.Warn("mirror: a list built from records differs; it is answered from upstream first again", "kind", kind, "list", list,
			"field", d.Field, "where", d.Where)
	}
	r.save(ctx)
}
