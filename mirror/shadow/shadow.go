// Shadow reads: a list that upstream has just answered is made from records, too,
// and the two are compared.
//
//	upstream first:  a page that a reader caused was saved ------------.
//	records first:   one answer in a hundred, fetched in the background +--> compared
//
// The records of the page are saved before. So what came or changed since they
// were last walked is no difference. A change after the page was saved makes the
// sample void.

// Package shadow measures how far lists made from records agree with upstream.
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
	maxSamples = 64              // waiting to be compared; more are left out
	maxBytes   = 4 << 20         // of their pages, beside the last
	keepEvery  = 5 * time.Second // between two writings of the agreement
	keepTime   = 5 * time.Second // for the last writing
)

// Sample is a page that upstream gave.
type Sample struct {
	Target *spec.Target
	Page   *understudy.Page
	Saved  int64 // the kind's counter of changes then
}

// Options are what shadow reads need. The functions must be set.
type Options struct {
	// FromRecords is what records answer to a sample's request; nil when it is
	// unknown: the list is not covered, or something was saved since.
	FromRecords func(context.Context, Sample) *understudy.Page
	// Recheck has records fetched again that records showed and upstream did not.
	// It returns at once.
	Recheck func(s Sample, composed *understudy.Page, gone []string)

	KV     understudy.KV // nil: the agreement is forgotten at the end
	Now    func() time.Time
	Logger *slog.Logger
}

// Reads are the shadow reads of all sources.
type Reads struct {
	o       Options
	sources map[string]*Lists
	samples chan Sample
	bytes   atomic.Int64 // of the pages of samples
}

// New makes shadow reads without sources.
func New(o Options) *Reads {
	return &Reads{o: o, sources: map[string]*Lists{}, samples: make(chan Sample, maxSamples)}
}

// AddSource adds the lists of a source, before Run. Error: answers that
// SetAnswers refuses.
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

// Add has a sample of a list compared. It does not wait; when many samples wait,
// it is left out.
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

// Run compares samples and keeps the agreement, until ctx ends.
func (r *Reads) Run(ctx context.Context) {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
			defer cancel()
			r.keep(ctx)
			return
		case s := <-r.samples:
			r.measure(ctx, s)
			r.bytes.Add(-int64(len(s.Page.Body)))
		case <-ticker.C:
			r.keep(ctx)
		}
	}
}

// measure compares one sample and counts it. A panic is contained: the sample is
// lost and nothing else.
func (r *Reads) measure(ctx context.Context, s Sample) {
	defer func() {
		if p := recover(); p != nil {
			r.o.Logger.Error("mirror: panic", "key", s.Target.Key.String(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	l := r.sources[s.Target.Key.Source].Of(s.Target)
	told := r.o.FromRecords(ctx, s)
	if told == nil {
		return
	}
	d, gone := compare(s.Page, told, s.Target.List.Key)
	if d.Field != "" {
		d.At = r.o.Now()
		r.o.Recheck(s, told, gone)
	}
	if !l.count(d, s.Page.Status == 200) {
		return
	}
	if log, kind, list := r.o.Logger, l.kind.Name, l.list.Path; l.RecordsFirst() {
		log.Info("mirror: a list is answered from records first from now on", "kind", kind, "list", list, "samples", Enough)
	} else {
		log.Warn("mirror: a list made from records differs; it is answered from upstream first again", "kind", kind, "list", list,
			"field", d.Field, "where", d.Where)
	}
	r.keep(ctx)
}
