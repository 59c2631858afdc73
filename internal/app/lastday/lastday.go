// Package lastday counts responses by the hour, so that the home page shows a whole day and not only the time
// since the process began.
package lastday

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
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

// Days contains the counts of all sources, of all processes on the database. The counts of other processes are up to a
// minute old. It is safe for concurrent use.
type Days struct {
	o Options

	mu      lockwatch.Mutex
	saved   days              // the counts as they were last saved
	unsaved days              // what this process has counted since
	seen    map[string]Counts // the result of Read at the last update
}

// days are the counts of the last hours by source, with the oldest hour first.
type days map[string][]Counts

// add adds the counts of more.
func (d days) add(more days) {
	for source, all := range more {
		for _, c := range all {
			i, found := slices.BinarySearchFunc(d[source], c.Start, func(h Counts, start int64) int { return cmp.Compare(h.Start, start) })
			if !found {
				d[source] = slices.Insert(d[source], i, Counts{Start: c.Start})
			}
			d[source][i].add(c, 1)
		}
	}
}

// New reads the counts that were saved. If they can't be read, it logs the error and starts with empty counts.
func New(ctx context.Context, o Options) *Days {
	d := &Days{o: o, saved: days{}, unsaved: days{}, seen: map[string]Counts{}}
	err := understudy.ReadJSON(ctx, o.KV, valueName, &d.saved)
	if err != nil || d.saved == nil {
		o.Log.Warn("the counts of the last day start again at zero", "err", err)
		d.saved = days{}
	}
	return d
}

// Sum returns the counts of a source in the last 24 hours. The oldest hour counts only in part.
func (d *Days) Sum(source string) (sum Counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.update(source)
	for _, h := range slices.Concat(d.saved[source], d.unsaved[source]) {
		if h.Start > d.firstHour() {
			sum.add(h, 1)
		}
	}
	return sum
}

// firstHour returns the beginning of the first hour that counts no more.
func (d *Days) firstHour() int64 { return d.o.Now().Add(-hours * time.Hour).Unix() }

// update counts what happened since the last call. The caller must hold the lock.
func (d *Days) update(source string) {
	read := d.o.Read(source)
	more := read
	if more.add(d.seen[source], -1); more != (Counts{}) {
		more.Start = d.o.Now().Truncate(time.Hour).Unix()
		d.unsaved.add(days{source: {more}})
	}
	d.seen[source] = read
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

// save adds the counts of this process to the saved ones, and reads those of the other processes.
func (d *Days) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	d.mu.Lock()
	for _, source := range d.o.Sources {
		d.update(source)
	}
	more, first := d.unsaved, d.firstHour()
	d.unsaved = days{}
	d.mu.Unlock()
	var saved days
	err := d.o.KV.Change(ctx, valueName, func(old []byte) ([]byte, error) {
		if saved = nil; json.Unmarshal(old, &saved) != nil || saved == nil {
			saved = days{} // the value is empty or unreadable
		}
		saved.add(more)
		for source := range saved {
			saved[source] = slices.DeleteFunc(saved[source], func(h Counts) bool { return h.Start <= first })
		}
		return json.Marshal(saved)
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.o.Log.Warn("the counts of the last day cannot be saved", "err", err)
		d.unsaved.add(more)
		return
	}
	d.saved = saved
}
