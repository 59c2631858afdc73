// Sampler: a page with a number that is saved gives a sample, at most one an interval; a
// fetch of our own makes sure that there is one.

package forecast

import (
	"context"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/request"
	"understudy/spec"
)

const (
	savedQueue = 16
	firstLook  = time.Minute // after the start, unless the interval is shorter
	fetchTime  = time.Minute
	// The time to another fetch after one that failed is a tenth of the interval, within
	// these bounds.
	leastRetry = 10 * time.Second
	mostRetry  = 10 * time.Minute
)

// Saved notes a page that was saved. It never blocks: a page that is lost costs nothing,
// because a fetch follows where a sample is missing.
func (f *Forecasts) Saved(page *understudy.Page) {
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
	f.recall(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(max(f.nextDue().Sub(f.o.Now()), 0))
		select {
		case page := <-f.saved:
			f.take(ctx, page)
		case <-timer.C:
			for _, k := range f.kinds {
				if ctx.Err() == nil && !f.due(k).After(f.o.Now()) {
					f.fetch(ctx, k)
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// recall looks up when the newest samples were taken. What cannot be read is fetched
// anew; the store refuses nothing by that.
func (f *Forecasts) recall(ctx context.Context) {
	begin := f.o.Now()
	for _, k := range f.kinds {
		k.retry = begin.Add(firstLook)
		for _, field := range k.fields {
			k.retry = earlier(k.retry, begin.Add(field.SampleInterval()))
			s := k.series(field)
			samples, err := f.o.Store.ReadSamples(ctx, s)
			if err != nil && ctx.Err() == nil {
				f.o.Logger.Error("forecast: samples cannot be read", "series", s.String(), "err", err)
			}
			f.mu.Lock()
			if n := len(samples); n > 0 && samples[n-1].At.After(f.last[s]) {
				f.last[s] = samples[n-1].At
			}
			f.mu.Unlock()
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// due is when a kind lacks a sample of one of its fields.
func (f *Forecasts) due(k *sampled) (at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, field := range k.fields {
		if next := f.last[k.series(field)].Add(field.SampleInterval()); i == 0 || next.Before(at) {
			at = next
		}
	}
	if at.Before(k.retry) {
		return k.retry
	}
	return at
}

func (f *Forecasts) nextDue() (at time.Time) {
	first := true
	for _, k := range f.kinds {
		if next := f.due(k); first || next.Before(at) {
			at, first = next, false
		}
	}
	return at
}

// fetch asks upstream for the page of a kind, as the budget of polls allows.
func (f *Forecasts) fetch(ctx context.Context, k *sampled) {
	short := k.fields[0].SampleInterval()
	for _, field := range k.fields {
		short = min(short, field.SampleInterval())
	}
	k.retry = f.o.Now().Add(min(max(short/10, leastRetry), mostRetry, max(short, time.Second)))
	fetching, cancel := context.WithTimeout(ctx, fetchTime)
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

// take keeps the numbers of a page that are due.
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
		since := page.At.Sub(f.last[s])
		f.mu.Unlock()
		value := numberOf(page.Body, doc, field)
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
		f.last[s] = page.At
		f.marks[s]++
		f.mu.Unlock()
		f.askAlerts(ctx, s)
	}
}

func unitName(s understudy.Series) string { return "forecast unit " + s.String() }

// Unit returns the unit that a series had last, such as a currency; "" when it is not known or cannot be read.
func (f *Forecasts) Unit(ctx context.Context, s understudy.Series) string {
	unit, _ := f.o.KV.Value(ctx, unitName(s))
	return string(unit)
}

// numberOf is a field's number as it is written; "" when it has none.
func numberOf(body []byte, doc jsonspan.Value, field *spec.Field) string {
	v, _ := jsonspan.Find(body, doc, field.Name)
	text := jsonspan.Text(body, v)
	if _, ok := query.ParseDecimal(text); !ok {
		return ""
	}
	return text
}
