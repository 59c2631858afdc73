// This file takes samples from saved pages, at most one per interval. If no page was saved within the interval, it
// fetches the page.

package forecast

import (
	"context"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/request"
)

const (
	savedQueueSize  = 16          // the maximum number of saved pages that wait for Run
	firstFetchDelay = time.Minute // the delay of the first fetch after the start, unless the sample interval is shorter
	fetchTimeout    = time.Minute
	// minRetry and maxRetry are the limits of the delay after a failed fetch. The delay is a tenth of the interval.
	minRetry = 10 * time.Second
	maxRetry = 10 * time.Minute
)

// EnqueuePage queues a saved page for sampling. It never blocks. If the queue is full, it drops the page. Run
// fetches the page later if the sample is missing.
func (f *Forecasts) EnqueuePage(page *understudy.Page) {
	if page.Status != 200 || f.kinds[page.Key] == nil {
		return
	}
	select {
	case f.saved <- page:
	default:
	}
}

// Run takes samples until ctx ends.
func (f *Forecasts) Run(ctx context.Context) error {
	if len(f.kinds) == 0 {
		<-ctx.Done()
		return nil
	}
	f.loadSampleTimes(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(max(f.nextDueAt().Sub(f.o.Now()), 0))
		select {
		case page := <-f.saved:
			f.take(ctx, page)
		case <-timer.C:
			for _, k := range f.kinds {
				if ctx.Err() == nil && !f.kindDueAt(k).After(f.o.Now()) {
					f.fetch(ctx, k)
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// loadSampleTimes reads the times of the newest samples from the store and sets the time of the first fetch. If a
// series can't be read, it logs the error, and the page is fetched as if there were no samples.
func (f *Forecasts) loadSampleTimes(ctx context.Context) {
	begin := f.o.Now()
	for _, k := range f.kinds {
		k.retryAt = begin.Add(firstFetchDelay)
		for _, field := range k.fields {
			k.retryAt = slices.MinFunc([]time.Time{k.retryAt, begin.Add(field.SampleInterval())}, time.Time.Compare)
			s := k.series(field)
			samples, err := f.o.Store.ReadSamples(ctx, s)
			if err != nil && ctx.Err() == nil {
				f.o.Logger.Error("forecast: samples cannot be read", "series", s.String(), "err", err)
			}
			f.mu.Lock()
			if n := len(samples); n > 0 && samples[n-1].At.After(f.lastSampleAt[s]) {
				f.lastSampleAt[s] = samples[n-1].At
			}
			f.mu.Unlock()
		}
	}
}

// kindDueAt returns the time at which the page of a kind must be fetched because the next sample of a field is due.
func (f *Forecasts) kindDueAt(k *sampledKind) (at time.Time) {
	if f.o.IsLeader != nil && !f.o.IsLeader() {
		return f.o.Now().Add(minRetry)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, field := range k.fields {
		if next := f.lastSampleAt[k.series(field)].Add(field.SampleInterval()); i == 0 || next.Before(at) {
			at = next
		}
	}
	if at.Before(k.retryAt) {
		return k.retryAt
	}
	return at
}

// nextDueAt returns the earliest time of kindDueAt over all kinds.
func (f *Forecasts) nextDueAt() (at time.Time) {
	first := true
	for _, k := range f.kinds {
		if next := f.kindDueAt(k); first || next.Before(at) {
			at, first = next, false
		}
	}
	return at
}

// fetch fetches the page of a kind from upstream, within the request budget for polls, and takes samples from the page.
func (f *Forecasts) fetch(ctx context.Context, k *sampledKind) {
	short := k.fields[0].SampleInterval()
	for _, field := range k.fields {
		short = min(short, field.SampleInterval())
	}
	k.retryAt = f.o.Now().Add(min(max(short/10, minRetry), maxRetry, max(short, time.Second)))
	fetching, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	saved, err := f.o.Mirror.Fill(fetching, request.Fill{Target: k.target, Reason: request.ReasonPoll})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		f.o.Logger.Debug("forecast: no sample", "kind", k.target.Kind.Name, "err", err)
	case saved.Page.Status == 200:
		f.take(ctx, saved.Page)
	}
}

// take stores a sample of each field of a page whose interval has passed. Then it checks the alerts of the series.
func (f *Forecasts) take(ctx context.Context, page *understudy.Page) {
	k := f.kinds[page.Key]
	if k == nil {
		return
	}
	doc, err := jsonspan.Parse(page.Body)
	if err != nil {
		return
	}
	doc, _ = jsonspan.Find(page.Body, doc, k.target.Instance.Key)
	for _, field := range k.fields {
		s := k.series(field)
		f.mu.Lock()
		since := page.At.Sub(f.lastSampleAt[s])
		f.mu.Unlock()
		v, _ := jsonspan.Find(page.Body, doc, field.Name)
		value := jsonspan.Text(page.Body, v) // the number as upstream wrote it
		if _, ok := query.ParseDecimal(value); !ok {
			value = ""
		}
		if value == "" || since < field.SampleInterval() && since >= 0 {
			continue
		}
		err := f.o.Store.AddSamples(ctx, s, understudy.Sample{At: page.At, Value: value})
		if unit, _ := jsonspan.Find(page.Body, doc, field.Unit); err == nil && unit.Kind == jsonspan.String {
			err = f.o.KV.SetValue(ctx, unitName(s), []byte(jsonspan.Text(page.Body, unit)))
		}
		if err != nil {
			if ctx.Err() == nil {
				f.o.Logger.Error("forecast: a sample is not kept", "series", s.String(), "err", err)
			}
			continue
		}
		f.mu.Lock()
		f.lastSampleAt[s] = page.At
		f.revisions[s]++
		f.mu.Unlock()
		f.checkAlerts(ctx, s)
	}
}

func unitName(s understudy.Series) string { return "forecast unit " + s.String() }

// Unit returns the most recent unit of a series, such as a currency. It returns "" if the unit is unknown or can't be read.
func (f *Forecasts) Unit(ctx context.Context, s understudy.Series) string {
	unit, _ := f.o.KV.Value(ctx, unitName(s))
	return string(unit)
}
