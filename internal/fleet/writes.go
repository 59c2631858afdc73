// This file notes in the database which writes this node sends upstream, and rechecks the writes of nodes that have lost their lease.
//
// While a node has a lease, it marks itself what its writes have changed. If it cannot, it gives up the lease. It answers such a
// write only after every other node has noticed that, or has no lease either. From then on, the other nodes request the records
// of these writes from upstream again and again, until the writes cannot be under way any more.

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/nodes"
	"understudy/kit/lockwatch"
	"understudy/kit/retry"
	"understudy/request"
)

const (
	// maxRecheck is how long the writes of a node are rechecked after the end of its lease. A write takes at most 45 s.
	maxRecheck = time.Minute
	// recheckInterval is how often a node rechecks the writes of nodes that have lost their lease.
	recheckInterval = time.Second
)

// writes are the writes of this node that have not ended.
type writes struct {
	noting chan struct{} // has one element while a goroutine writes the note
	mu     lockwatch.Mutex
	last   int64
	open   map[int64]request.Invalidation
	owed   map[int64]bool     // those for which the node gives up its lease
	ended  bool               // whether the note contains writes that have ended
	abort  context.CancelFunc // ends the renewal of the lease under way; nil before the first one
}

// Begin notes a write before it is sent upstream. If it returns an error, which wraps ErrDatabaseAway, the write must not be sent.
func (f *Fleet) Begin(t request.Invalidation) (n int64, err error) {
	w := &f.writes
	w.mu.Lock()
	w.last++
	n = w.last
	w.open[n] = t
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	if err = f.noteWrites(ctx); err == nil && !f.IsCurrent() {
		err = errors.New("the lease has ended")
	}
	if err != nil {
		f.End(n)
		return 0, fmt.Errorf("fleet: note a write: %w (%w)", understudy.ErrDatabaseAway, err)
	}
	return n, nil
}

// End notes that the store knows the result of a write, or that nothing was written.
func (f *Fleet) End(n int64) {
	f.writes.mu.Lock()
	defer f.writes.mu.Unlock()
	delete(f.writes.open, n)
	delete(f.writes.owed, n)
	f.writes.ended = true
}

// UnendedWrites returns nothing, because other nodes recheck the writes of a process that was killed.
func (f *Fleet) UnendedWrites() (numbers []int64, touched []request.Invalidation) { return nil, nil }

// noteWrites writes the note of all open writes.
func (f *Fleet) noteWrites(ctx context.Context) error {
	w := &f.writes
	select {
	case w.noting <- struct{}{}:
		defer func() { <-w.noting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	var note []byte
	if len(w.open) > 0 {
		note, _ = json.Marshal(slices.Collect(maps.Values(w.open))) // cannot fail for texts
	}
	w.ended = false
	w.mu.Unlock()
	err := f.o.KV.SetValue(ctx, nodes.KVName(f.o.Node.ID), note)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true // it may have been written
	}
	return err
}

// cleanNote removes writes that have ended from the note. It reports whether the note is empty.
func (f *Fleet) cleanNote(ctx context.Context) (empty bool) {
	w := &f.writes
	w.mu.Lock()
	ended, empty := w.ended, len(w.open) == 0
	w.mu.Unlock()
	if !ended {
		return empty
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	return f.noteWrites(ctx) == nil && empty // after an error it is tried again at the next renewal
}

// AwaitRecheck is called if the store could not be told the results of writes that upstream has answered. The node gives up its
// lease until these writes have ended. AwaitRecheck returns when they have ended, or when each other node rechecks them.
func (f *Fleet) AwaitRecheck(numbers []int64) {
	w := &f.writes
	w.mu.Lock()
	for _, n := range numbers {
		if _, ok := w.open[n]; ok {
			w.owed[n] = true
		}
	}
	if w.abort != nil {
		w.abort() // otherwise it could renew the lease once more
	}
	w.mu.Unlock()
	// The lease of this node ends within one lease. Within another, each other node loses its own, or renews it and rechecks.
	ctx, cancel := context.WithTimeout(context.Background(), 2*nodes.Lease+recheckInterval)
	defer cancel()
	for n := 0; f.hasOwedWrites() && retry.Wait(ctx, retry.Backoff(minAwaitPause, maxAwaitPause, n)) == nil; n++ {
	}
}

// hasOwedWrites reports whether the store must be told the results of writes before the node may have a lease again.
func (f *Fleet) hasOwedWrites() bool {
	f.writes.mu.Lock()
	defer f.writes.mu.Unlock()
	return len(f.writes.owed) > 0
}

// beginRenewal prepares the renewal of the lease, which AwaitRecheck ends with abort.
func (f *Fleet) beginRenewal(ctx context.Context, abort context.CancelFunc) error {
	f.writes.mu.Lock()
	f.writes.abort = abort
	f.writes.mu.Unlock()
	if f.hasOwedWrites() {
		if f.o.Flush(ctx); f.hasOwedWrites() {
			return errors.New("fleet: the store does not know the results of all writes")
		}
	}
	return nil
}

// recheckWrites calls Options.Recheck for the writes of each node that has lost its lease.
func (f *Fleet) recheckWrites(ctx context.Context, all []nodes.Node) {
	for _, n := range all {
		var noted []request.Invalidation
		if n.ID == f.o.Node.ID || n.Left > 0 || json.Unmarshal(n.Note, &noted) != nil {
			continue
		}
		for _, t := range noted {
			f.o.Recheck(t)
		}
		if n.Left < -maxRecheck {
			_ = f.o.KV.SetValue(ctx, nodes.KVName(n.ID), nil) // after an error they are rechecked once more
		}
	}
}
