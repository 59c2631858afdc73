// This file keeps all watches in memory and in the KV store.

package watch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/outbox"
	"understudy/kit/lockwatch"
)

// keyPrefix is the beginning of the keys under which watches are stored in the KV store.
const keyPrefix = "watch/"

// Book contains all watches, also those that another process on the same database created. When a method that changes a
// watch returns, the change is stored. It is safe for concurrent use.
type Book struct {
	o      Options
	policy atomic.Pointer[Policy]
	owners atomic.Pointer[map[string]bool] // the names of all owners, for NoteOwner
	wake   chan struct{}
	tests  chan struct{} // limits the number of concurrent test messages

	mu      lockwatch.Mutex // never held while the store is used
	watches map[string]*entry
}

// entry is a watch in memory.
type entry struct {
	id   string
	line *outbox.Line

	mu       sync.Mutex        // never held while the store is used
	kept     kept              // the stored value
	readUpTo map[string]int64  // the number of the last change that was tested, by source; may be newer than the stored value
	noted    *understudy.Owner // the owner at its last request, if that is not stored yet
	lastTest time.Time         // when the last test message was sent
	removed  bool
}

// Open reads the watches of a store. The caller must call SetPolicy before any other method. Open starts no
// goroutine; Run does.
func Open(ctx context.Context, o Options) (*Book, error) {
	if o.Records == nil || o.KV == nil || o.Enqueue == nil || len(o.Key) == 0 {
		return nil, errors.New("watch: options need records, notes, jobs and a key")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	b := &Book{o: o, wake: make(chan struct{}, 1), tests: make(chan struct{}, 4), watches: map[string]*entry{}}
	b.owners.Store(&map[string]bool{})
	if err := o.KV.Watch(ctx, keyPrefix, b.put); err != nil {
		return nil, err
	}
	return b, nil
}

// SetPolicy replaces the policy and wakes Run, which checks every watch under the new policy.
func (b *Book) SetPolicy(p Policy) {
	p.Rules.Every = cmp.Or(max(p.Rules.Every, 0), time.Minute)
	p.Rules.Pause = cmp.Or(max(p.Rules.Pause, 0), 24*time.Hour)
	p.URL = strings.TrimSuffix(p.URL, "/")
	b.policy.Store(&p)
	b.Notify()
}

// Channels returns the channels for which the settings permit a destination.
func (b *Book) Channels() []Channel { return b.policy.Load().Channels() }

// Notify tells the book that records may have changed. It never blocks.
func (b *Book) Notify() {
	understudy.Wake(b.wake)
}

// Make creates a watch of a saved search of the caller, which sends matches that are found from now on. If the same
// watch exists, its id is returned. Make returns ErrInvalid, ErrNotFound for an unknown search, the errors of the
// search, or ErrNotStored.
func (b *Book) Make(ctx context.Context, c understudy.Caller, search string, to Destination) (id string, err error) {
	p := b.policy.Load()
	if c.Grant != nil && c.Grant.IssuedBy == understudy.IssuedByViewAs {
		return "", newInvalid("you are viewing as the role %s; end that before you create a watch", c.Role())
	}
	if err := p.checkDestination(to); err != nil {
		return "", err
	}
	saved, err := p.Search.FindSaved(ctx, c.Name, search)
	if err != nil {
		return "", err
	}
	if _, err := p.Search.CompileTest(c, saved.Request); err != nil {
		return "", err
	}
	k := kept{Watch: Watch{ID: strings.ToLower(rand.Text()[:12]), Owner: p.Owners.Owner(c), Search: search, To: to, Made: b.o.Now().UTC()}}
	if k.At, err = b.readLastChanges(ctx); err != nil {
		return "", err
	}
	id = k.ID
	err = b.o.KV.Change(ctx, keyPrefix+k.ID, func([]byte) ([]byte, error) {
		all, own := b.entries(), 0
		for _, e := range all {
			s := e.status()
			if !isOwner(&s.Watch, c) {
				continue
			}
			if own++; s.Watch.Search == search && s.Watch.To == to {
				id = s.Watch.ID
				return nil, nil // no other watch is stored
			}
		}
		if own >= maxWatchesEach || len(all) >= maxWatches {
			return nil, newInvalid("there are already %d watches, %d of them yours; remove one first", len(all), own)
		}
		return json.Marshal(k)
	})
	if err != nil {
		return "", newSaveError(k.ID, err)
	}
	return id, nil
}

func isOwner(w *Watch, c understudy.Caller) bool {
	return w.Owner.Name == c.Name && w.Owner.Source == c.Source
}

// readLastChanges returns the number of the last change of every source.
func (b *Book) readLastChanges(ctx context.Context) (map[string]int64, error) {
	at := map[string]int64{}
	for _, src := range b.o.Sources {
		n, err := b.o.Records.ReadLastChange(ctx, src.Name)
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		at[src.Name] = n
	}
	return at, nil
}

// Remove deletes a watch and its log. It returns ErrNotFound or ErrNotStored.
func (b *Book) Remove(ctx context.Context, id string) error {
	if _, err := b.find(id); err != nil {
		return err
	}
	return b.o.KV.SetValue(ctx, keyPrefix+id, nil)
}

// Pause stops a watch until Resume. It returns ErrNotFound or ErrNotStored.
func (b *Book) Pause(ctx context.Context, id string) error {
	e, err := b.find(id)
	if err != nil {
		return err
	}
	return b.stopWatch(ctx, e, Paused, false)
}

// Resume restarts a stopped watch. If the receiver of the watch had failed, the watch continues where it stopped.
// Any other watch sends matches that are found from now on. Resume returns ErrNotFound or ErrNotStored.
func (b *Book) Resume(ctx context.Context, id string) error {
	e, err := b.find(id)
	if err != nil {
		return err
	}
	at, err := b.readLastChanges(ctx)
	if err != nil {
		return err
	}
	err = b.update(ctx, e, func(k *kept) {
		if k.Stopped != "" && !k.Continues {
			k.At, k.Pending, k.Batch = at, nil, 0
		}
		k.Stopped, k.Continues, k.Failing = "", false, time.Time{}
	})
	if err != nil {
		return err
	}
	e.line.Release()
	b.Notify()
	return nil
}

// stopWatch stops a watch and stores why. Matches that were not sent yet are dropped unless goes is true.
func (b *Book) stopWatch(ctx context.Context, e *entry, why string, goes bool) error {
	return b.update(ctx, e, func(k *kept) {
		k.Stopped, k.Continues = why, goes
		if !goes {
			k.Pending, k.Batch = nil, 0
		}
	})
}

// Watches returns the watches of a caller, or all watches if everybody is true. The newest come first.
func (b *Book) Watches(c understudy.Caller, everybody bool) []Status {
	var all []Status
	for _, e := range b.entries() {
		if s := e.status(); everybody || isOwner(&s.Watch, c) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y Status) int {
		return cmp.Or(y.Watch.Made.Compare(x.Watch.Made), cmp.Compare(x.Watch.ID, y.Watch.ID))
	})
	return all
}

func (b *Book) entries() []*entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.watches))
}

func (b *Book) find(id string) (*entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.watches[id]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("watch: %w: no watch is called %q", understudy.ErrNotFound, understudy.Clip(id))
}
