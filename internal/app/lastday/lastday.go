// Lastday: what was answered in the last 24 hours, also before a restart.

// Package lastday keeps counts of answers by the hour, so that the home page tells of a day
// and not of the time since the process began.
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
	// valueName is under which name the store keeps the hours.
	valueName = "lastday"
	hours     = 24
	// saveEvery is how much a process that is killed loses at most.
	saveEvery = time.Minute
	saveTime  = 5 * time.Second
)

// Counts are answers to readers, by how they came, and requests to upstream: Readers those for
// which somebody waited, Walks those of walks through all records, Upstream all.
type Counts struct {
	Start    int64 `json:"start"` // Unix time of an hour; 0: they are of no single hour
	Warm     int64 `json:"warm,omitempty"`
	Stale    int64 `json:"stale,omitempty"`
	Cold     int64 `json:"cold,omitempty"`
	Composed int64 `json:"composed,omitempty"`
	Readers  int64 `json:"readers,omitempty"`
	Walks    int64 `json:"walks,omitempty"`
	Upstream int64 `json:"upstream,omitempty"`
}

// add adds other counts so many times.
func (c *Counts) add(o Counts, times int64) {
	c.Warm += times * o.Warm
	c.Stale += times * o.Stale
	c.Cold += times * o.Cold
	c.Composed += times * o.Composed
	c.Readers += times * o.Readers
	c.Walks += times * o.Walks
	c.Upstream += times * o.Upstream
}

// Options are what counts are made of. All must be set.
type Options struct {
	KV      understudy.KV
	Sources []string
	// Read reads what a source has counted since the process began.
	Read func(source string) Counts
	Now  func() time.Time
	Log  *slog.Logger
}

// Days are the counts of all sources. It is safe for concurrent use.
type Days struct {
	o Options

	mu      sync.Mutex
	hours   map[string][]Counts // by source, oldest first
	seen    map[string]Counts   // what Read said when the hours were brought up to date
	changed bool                // since the hours were saved
}

// New reads the hours that an earlier process saved. Hours that cannot be read are logged and begun
// anew: nothing else depends on them.
func New(ctx context.Context, o Options) *Days {
	d := &Days{o: o, hours: map[string][]Counts{}, seen: map[string]Counts{}}
	err := understudy.ReadJSON(ctx, o.KV, valueName, &d.hours)
	if err != nil || d.hours == nil {
		o.Log.Warn("the counts of the last day begin anew", "err", err)
		d.hours = map[string][]Counts{}
	}
	return d
}

// Of returns what was counted for a source in the last 24 hours, the first of them in part.
func (d *Days) Of(source string) (sum Counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.update(source)
	for _, h := range d.hours[source] {
		sum.add(h, 1)
	}
	return sum
}

// update adds to this hour what was counted since the last call, and leaves out hours that are too old.
// The caller holds the lock.
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

// Run saves the hours once a minute, and at the end of ctx.
func (d *Days) Run(ctx context.Context) error {
	every := time.NewTicker(saveEvery)
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

// save writes the hours if something was counted.
func (d *Days) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveTime)
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
