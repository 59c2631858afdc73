// This file keeps the watches in memory equal to their stored values, which other processes may change.

package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/outbox"
)

// put replaces a watch in memory by its stored value, or removes it if the value is nil or cannot be read.
func (b *Book) put(name string, value []byte) (err error) {
	id, k := strings.TrimPrefix(name, keyPrefix), kept{}
	if value != nil && (json.Unmarshal(value, &k) != nil || k.ID != id) {
		value, err = nil, fmt.Errorf("watch: the value of %s is not a watch", understudy.Clip(name))
	}
	b.mu.Lock()
	e := b.watches[id]
	switch {
	case value == nil:
		delete(b.watches, id)
	case e == nil:
		b.watches[id] = &entry{id: id, line: outbox.NewLine(), kept: k, readUpTo: maps.Clone(k.At)}
	}
	b.mu.Unlock()
	if e != nil && value != nil {
		e.mu.Lock()
		e.kept, e.readUpTo = k, newerPositions(e.readUpTo, k.At)
		e.mu.Unlock()
		return nil
	}
	if e != nil {
		e.mu.Lock()
		e.removed = true
		e.mu.Unlock()
	}
	names := map[string]bool{}
	for _, e := range b.entries() {
		e.mu.Lock()
		names[e.kept.Owner.Name] = true
		e.mu.Unlock()
	}
	b.owners.Store(&names)
	return err
}

// newerPositions returns the higher of two positions for each source.
func newerPositions(x, y map[string]int64) map[string]int64 {
	all := maps.Clone(x)
	for source, n := range y {
		if all == nil {
			all = map[string]int64{}
		}
		all[source] = max(all[source], n)
	}
	return all
}

func (e *entry) status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{Watch: e.kept.Watch, State: e.kept.State, Pending: len(e.kept.Pending), Log: slices.Clone(e.kept.Log)}
	s.Watch.Owner = e.owner()
	return s
}

// owner returns the owner as of the owner's last known request. The caller must hold e.mu.
func (e *entry) owner() understudy.Owner {
	if e.noted != nil && !e.noted.LastSeen.Before(e.kept.Owner.LastSeen) {
		return *e.noted
	}
	return e.kept.Owner
}

// readPosition returns the number of the last tested change of a source.
func (e *entry) readPosition(source string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.readUpTo[source]
}

// setPosition notes in memory that the changes of a source up to a number were tested.
func (e *entry) setPosition(source string, to int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readUpTo = newerPositions(e.readUpTo, map[string]int64{source: to})
}

func (e *entry) hasRoom() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.kept.Pending)+changesPerRead <= maxPending
}

// saveTimeout is the time limit for saving a watch.
const saveTimeout = 5 * time.Second

// update changes and saves a watch, even if ctx is cancelled. change receives the stored value, updated with what is newer
// in memory. After an error the watch is unchanged. update returns ErrNotFound if the watch was removed.
func (b *Book) update(ctx context.Context, e *entry, change func(*kept)) error {
	return b.updateWith(ctx, b.o.KV.Change, e, change)
}

// updateWith does what update does, but the caller chooses the store's function that changes the value.
func (b *Book) updateWith(ctx context.Context, save func(context.Context, string, func([]byte) ([]byte, error)) error, e *entry,
	change func(*kept)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	var noted *understudy.Owner
	err := save(ctx, keyPrefix+e.id, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, fmt.Errorf("watch: %w: it was removed", understudy.ErrNotFound)
		}
		var next kept
		if err := json.Unmarshal(old, &next); err != nil {
			return nil, err
		}
		e.mu.Lock()
		noted, next.At = e.noted, newerPositions(next.At, e.readUpTo)
		if noted != nil && !noted.LastSeen.Before(next.Owner.LastSeen) {
			next.Owner = *noted
		}
		e.mu.Unlock()
		change(&next)
		return json.Marshal(next)
	})
	if err != nil {
		return newSaveError(e.id, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.noted == noted {
		e.noted = nil
	}
	return nil
}

// newSaveError says which watch could not be saved, unless the error is the caller's.
func newSaveError(id string, err error) error {
	if errors.Is(err, understudy.ErrNotFound) || errors.Is(err, understudy.ErrInvalid) {
		return err
	}
	return fmt.Errorf("watch: save %s: %w", id, err)
}

// save stores what is newer in memory than in the store: the positions in the changes, and when owners made their last
// request. Other processes need not read these positions again.
func (b *Book) save(ctx context.Context) {
	for _, e := range b.entries() {
		e.mu.Lock()
		save, dirty := b.o.KV.ChangeQuietly, !maps.Equal(e.readUpTo, e.kept.At)
		if e.noted != nil {
			save, dirty = b.o.KV.Change, true
		}
		e.mu.Unlock()
		if !dirty {
			continue
		}
		if err := b.updateWith(ctx, save, e, func(*kept) {}); err != nil && !errors.Is(err, understudy.ErrNotFound) {
			b.o.Logger.Warn("watch: save", "watch", e.id, "err", err)
		}
	}
}
