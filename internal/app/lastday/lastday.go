// Package lastday counts responses by the hour, so that the home page shows a whole day and not only the time
// since the process began.
package lastday

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"understudy"
)

const (
	// valueName is the name under which the counts of the hours are stored.
	valueName = "lastday"
	hours     = 24
	// saveInterval is the time between two saves of the counts. If the process is killed, the counts of this time are lost.
	saveInterval = time.Minute
	saveTimeout  = 5 * time.Second
)

// Counts are numbers of responses by their outcome, and of requests to the upstream. Readers counts requests for
// which a client waited, Walks the requests of syncs, and Upstream all requests.
type Counts struct {
	Start    int64 `json:"start"` // the Unix time at which the hour begins; 0 if the counts are not of a single hour
	Warm     int64 `json:"warm,omitempty"`
	Stale    int64 `json:"stale,omitempty"`
	Cold     int64 `json:"cold,omitempty"`
	Composed int64 `json:"composed,omitempty"`
	Readers  int64 `json:"readers,omitempty"`
	Walks    int64 `json:"walks,omitempty"`
	Upstream int64 `json:"upstream,omitempty"`
}

// add adds the counts o, multiplied by the factor times.
func (c *Counts) add(o Counts, times int64) {
	c.Warm += times * o.Warm
	c.Stale += times * o.Stale
	c.Cold += times * o.Cold
	c.Composed += times * o.Composed
	c.Readers += times * o.Readers
	c.Walks += times * o.Walks
	c.Upstream += times * o.Upstream
}

// Options are the options of Days. All fields must be set.
type Options struct {
	KV      understudy.KV
	Sources []string
	// Read returns the counts of a source since the process began.
	Read func(source string) Counts
	Now  func() time.Time
	Log  *slog.Logger
}

// Days contains the counts of all sources. It is safe for concurrent use.
type Days struct {
	o Options

	mu      sync.Mutex
	hours   map[string][]Counts // the counts of the last hours by source, with the oldest hour first
	seen    map[string]Counts   // the result of Read at the last update
	changed bool                // whether there are counts that are not saved
}

// New reads the counts that an earlier process saved. If they can't be read, it logs the error and starts with
// empty counts.
func New(ctx context.Context, o Options) *Days {
	d := &Days{o: o, hours: map[string][]Counts{}, seen: map[string]Counts{}}
	err := understudy.ReadJSON(ctx, o.KV, valueName, &d.hours)
	if err != nil || d.hours == nil {
		o.Log.Warn("the counts of the last day start again at zero", "err", err)
		d.hours = map[string][]Counts{}
	}
	return d
}

// Sum returns the counts of a source in the last 24 hours. The oldest hour counts only in part.
func (d *Days) Sum(source string) (sum Counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.update(source)
	for _, h := range d.hours[source] {
		sum.add(h, 1)
	}
	return sum
}

// update adds the counts since the last call to the current hour, and removes hours that are too old. The caller
// must hold the lock.
func (d *Days) update(source string) {
	now := d.o.Now()
	all, read := d.hours[source], d.o.Read(source)
	for len(all) > 0 && all[0].Start <= now.Add(-hours*time.Hour).Unix() {
		all = all[1:]
	}
	more := read
	if more.add(d.seen[source], -1); more != (Counts{}) {
		start := now.Truncate(time.Hour).Unix()
		if len(all) == 0 || all[len(all)-1].Start < start {
			all = append(all, Counts{Start: start})
		}
		all[len(all)-1].add(more, 1)
		d.changed = true
	}
	d.hours[source], d.seen[source] = all, read
}

// Run saves the counts once a minute, and when ctx ends.
func (d *Days) Run(ctx context.Context) error {
	every := time.NewTicker(saveInterval)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			d.save(context.WithoutCancel(ctx))
			return nil
		}
		d.save(ctx)
	}
}

// save stores the counts if they have changed.
func (d *Days) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	d.mu.Lock()
	for _, source := range d.o.Sources {
		d.update(source)
	}
	changed := d.changed
	data, err := json.Marshal(d.hours)
	d.changed = false
	d.mu.Unlock()
	if !changed {
		return
	}
	if err == nil {
		err = d.o.KV.SetValue(ctx, valueName, data)
	}
	if err != nil {
		d.o.Log.Warn("the counts of the last day cannot be saved", "err", err)
		d.mu.Lock()
		d.changed = true
		d.mu.Unlock()
	}
}
