// Pending: what the store has to be told of writes, kind by kind.

package writes

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"understudy"
)

// MaxPending is how many records of a kind may be pending; a write to one more is not
// passed on.
const MaxPending = 4096

// maxPendingBytes bounds the bodies of a kind; what exceeds it is fetched once more instead.
const maxPendingBytes = 16 << 20

// PendingWrite is what the store has to be told of the writes to one record.
type PendingWrite struct {
	ID         string             // "": only lists are old
	Generation int64              // of the last of them
	Shows      []*understudy.Page // what their answers show, the oldest first
	ends       []func()           // of their intents
}

// Pending are the pending invalidations of a kind.
type Pending struct {
	mu    sync.Mutex
	of    map[string]*PendingWrite
	bytes int
}

// Add remembers that the store has to be told of a write and of what its answer
// shows; nil: nothing. It reports whether that is remembered, too. end is called
// when the store has been told.
func (o *Pending) Add(id string, generation int64, shows *understudy.Page, end func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[string]*PendingWrite{}
	}
	d := o.of[id]
	if d == nil {
		d = &PendingWrite{ID: id}
		o.of[id] = d
	}
	d.Generation = max(d.Generation, generation)
	d.ends = append(d.ends, end)
	switch {
	case shows == nil:
		return true
	case o.bytes+len(shows.Body) > maxPendingBytes:
		return false
	}
	d.Shows = append(d.Shows, shows)
	o.bytes += len(shows.Body)
	return true
}

// Full reports whether no more can be remembered.
func (o *Pending) Full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.of) >= MaxPending
}

// All are the pending invalidations, the oldest write first.
func (o *Pending) All() []PendingWrite {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]PendingWrite, 0, len(o.of))
	for d := range maps.Values(o.of) {
		all = append(all, PendingWrite{ID: d.ID, Generation: d.Generation, Shows: slices.Clone(d.Shows)})
	}
	slices.SortFunc(all, func(a, b PendingWrite) int { return cmp.Compare(a.Generation, b.Generation) })
	return all
}

// Shown forgets the oldest page of a pending invalidation: the store has it.
func (o *Pending) Shown(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.of[id]
	o.bytes -= len(d.Shows[0].Body)
	d.Shows = d.Shows[1:]
}

// Flushed forgets a pending invalidation, unless a later write touched the same record meanwhile.
func (o *Pending) Flushed(id string, generation int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d := o.of[id]; d != nil && d.Generation == generation && len(d.Shows) == 0 {
		delete(o.of, id)
		for _, end := range d.ends {
			end()
		}
	}
}

// Has reports whether something is pending of a record.
func (o *Pending) Has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[id] != nil
}
