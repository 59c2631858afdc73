// Book: all watches, as they are kept.

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
)

// kvStart begins the names of the values that watches are kept in.
const kvStart = "watch/"

// Book is all watches. Each change is in the store when its method returns. Safe for
// concurrent use.
type Book struct {
	o      Options
	policy atomic.Pointer[Policy]
	owners atomic.Pointer[map[string]bool] // by name
	wake   chan struct{}
	tests  chan struct{} // a slot for each test message under way
	making sync.Mutex    // one watch is made or removed at a time

	mu  sync.Mutex
	all map[string]*entry
}

// entry is a watch in memory.
type entry struct {
	id   string
	line *outbox.Line

	mu     sync.Mutex
	kept   kept
	at     map[string]int64 // the last change looked at, by source; the value may be behind
	dirty  bool             // the value is behind
	tested time.Time        // the last test
	gone   bool
}

// Open reads the watches of a store. SetPolicy comes before any other method; nothing
// begins before Run.
func Open(ctx context.Context, o Options) (*Book, error) {
	if o.Records == nil || o.KV == nil || o.Enqueue == nil || len(o.Key) == 0 {
		return nil, errors.New("watch: options need records, notes, jobs and a key")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	b := &Book{o: o, wake: make(chan struct{}, 1), tests: make(chan struct{}, 4), all: map[string]*entry{}}
	notes, err := o.KV.ReadValues(ctx, kvStart)
	if err != nil {
		return nil, err
	}
	for name, value := range notes {
		var k kept
		if err := json.Unmarshal(value, &k); err != nil || kvStart+k.ID != name {
			return nil, fmt.Errorf("watch: the value of %s is no watch", understudy.Clip(name))
		}
		b.all[k.ID] = newEntry(k)
	}
	b.count()
	return b, nil
}

func newEntry(k kept) *entry {
	return &entry{id: k.ID, line: outbox.NewLine(), kept: k, at: maps.Clone(k.At)}
}

// SetPolicy puts another policy in force. Every watch is checked against it at once.
func (b *Book) SetPolicy(p Policy) {
	p.Rules = p.Rules.withDefaults()
	p.URL = strings.TrimSuffix(p.URL, "/")
	b.policy.Store(&p)
	b.Ring()
}

// Channels are those on which the settings permit some destination.
func (b *Book) Channels() []Channel { return b.policy.Load().Channels() }

// Ring says that records may have changed. It never blocks.
func (b *Book) Ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Make makes a watch of a saved search of the caller. It begins with what comes now. One
// that is there already is returned as it is. Errors: ErrInvalid, ErrNotFound: there is no
// such search; those of the search; ErrNotStored.
func (b *Book) Make(ctx context.Context, c understudy.Caller, search string, to Destination) (id string, err error) {
	p := b.policy.Load()
	if c.Grant != nil && c.Grant.IssuedBy == understudy.IssuedByViewAs {
		return "", invalid("you look through the role %s, and a watch would go by your own; end that first", c.Role())
	}
	if err := p.check(to); err != nil {
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
	b.making.Lock()
	defer b.making.Unlock()
	own := 0
	for _, e := range b.entries() {
		s := e.status()
		if !owns(&s.Watch, c) {
			continue
		}
		if own++; s.Watch.Search == search && s.Watch.To == to {
			return s.Watch.ID, nil
		}
	}
	if own >= mostEach || len(b.entries()) >= mostWatches {
		return "", invalid("there are %d watches, %d of them yours, and no more are kept; remove one first", len(b.entries()), own)
	}
	if k.At, err = b.now(ctx); err != nil {
		return "", err
	}
	e := newEntry(k)
	if err := b.keep(ctx, &e.kept); err != nil {
		return "", err
	}
	b.mu.Lock()
	b.all[k.ID] = e
	b.mu.Unlock()
	b.count()
	return k.ID, nil
}

// owns reports whether a watch is a caller's.
func owns(w *Watch, c understudy.Caller) bool {
	return w.Owner.Name == c.Name && w.Owner.Source == c.Source
}

// now is the last change of every source.
func (b *Book) now(ctx context.Context) (map[string]int64, error) {
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

// Remove removes a watch, with its log. Errors: ErrNotFound, ErrNotStored.
func (b *Book) Remove(ctx context.Context, id string) error {
	b.making.Lock()
	defer b.making.Unlock()
	e, err := b.find(id)
	if err != nil {
		return err
	}
	e.mu.Lock()
	if err := b.o.KV.SetValue(ctx, kvStart+id, nil); err != nil {
		e.mu.Unlock()
		return err
	}
	e.gone = true
	e.mu.Unlock()
	b.mu.Lock()
	delete(b.all, id)
	b.mu.Unlock()
	b.count()
	return nil
}

// Pause stops a watch until Resume. Errors: ErrNotFound, ErrNotStored.
func (b *Book) Pause(ctx context.Context, id string) error {
	e, err := b.find(id)
	if err != nil {
		return err
	}
	return b.stop(ctx, e, Paused, false)
}

// Resume sets a stopped watch going: one whose receiver failed goes on where it stopped,
// any other begins with what comes now. Errors: ErrNotFound, ErrNotStored.
func (b *Book) Resume(ctx context.Context, id string) error {
	e, err := b.find(id)
	if err != nil {
		return err
	}
	at, err := b.now(ctx)
	if err != nil {
		return err
	}
	err = b.change(ctx, e, func(k *kept) {
		if k.Stopped != "" && !k.Goes {
			k.At, k.Pending, k.Batch = at, nil, 0
		}
		k.Stopped, k.Goes, k.Failing = "", false, time.Time{}
	})
	if err != nil {
		return err
	}
	e.line.Release()
	b.Ring()
	return nil
}

// stop stops a watch and says why. What it has still to tell is dropped, unless it is to
// go on where it stopped.
func (b *Book) stop(ctx context.Context, e *entry, why string, goes bool) error {
	return b.change(ctx, e, func(k *kept) {
		k.Stopped, k.Goes = why, goes
		if !goes {
			k.Pending, k.Batch = nil, 0
		}
	})
}

// Watches are those of a caller; all of them for everybody. The newest come first.
func (b *Book) Watches(c understudy.Caller, everybody bool) []Status {
	var all []Status
	for _, e := range b.entries() {
		if s := e.status(); everybody || owns(&s.Watch, c) {
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
	return slices.Collect(maps.Values(b.all))
}

func (b *Book) find(id string) (*entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.all[id]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("watch: %w: no watch is called %q", understudy.ErrNotFound, understudy.Clip(id))
}

// count notes who owns watches, for Seen.
func (b *Book) count() {
	names := map[string]bool{}
	for _, e := range b.entries() {
		names[e.status().Watch.Owner.Name] = true
	}
	b.owners.Store(&names)
}

func (e *entry) status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Status{Watch: e.kept.Watch, State: e.kept.State, Pending: len(e.kept.Pending), Log: slices.Clone(e.kept.Log)}
}

// change changes a watch and saves it, also while the caller ends. On an error it stays as
// it was. ErrNotFound: it was removed.
func (b *Book) change(ctx context.Context, e *entry, change func(*kept)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return fmt.Errorf("watch: %w: it was removed", understudy.ErrNotFound)
	}
	next := e.kept
	next.Pending, next.Log = slices.Clone(next.Pending), slices.Clone(next.Log)
	next.At = maps.Clone(e.at)
	change(&next)
	if err := b.keep(ctx, &next); err != nil {
		return err
	}
	e.kept, e.dirty, e.at = next, false, maps.Clone(next.At)
	return nil
}

// keepTime bounds saving a watch.
const keepTime = 5 * time.Second

func (b *Book) keep(ctx context.Context, k *kept) error {
	if err := understudy.WriteJSON(ctx, b.o.KV, kvStart+k.ID, k); err != nil {
		return fmt.Errorf("watch: save %s: %w", k.ID, err)
	}
	return nil
}
