// The store in memory: the same rules in maps.

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy"
)

// Memory is a store that lives as long as the process. It keeps the rules of
// DB, passes the same suite, starts no goroutine, does no I/O and waits for
// nothing but its own lock, so that it can be used in testing/synctest
// bubbles. It is for tests: without Options.Limit nothing bounds it, and with
// it a save makes room itself. Safe for concurrent use.
type Memory struct {
	o Options

	mu      sync.Mutex
	closed  bool
	sources map[string]*memorySource
	record  int64 // numbers given last
	kind    int64
	version int64
	stretch int64
	silent  int64 // how often records came or went without a change
	space   Space // File is kept by used
	jobs    memoryJobs

	erasures memoryErasures
}

type memorySource struct {
	kindNumber *int64 // given last, of all sources

	world   string
	page    int64 // number of the last page body
	kinds   map[string]*memoryKind
	pages   map[string]*memoryPage // by URI
	changes []understudy.Change    // the number of each is its place, from 1
}

type memoryKind struct {
	number  int64
	ground  memoryGround
	state   KindState
	records map[string]*memoryRecord
	shapes  []string // in the order they were seen
}

type memoryPage struct {
	page     understudy.Page
	at, read int64
}

// memoryRecord is a record in each shape it was seen in.
type memoryRecord struct {
	id       string
	number   int64
	held     map[string]*memoryHeld
	versions map[[2]string]int64 // by shape and body
	clocks   map[int64]int64     // of versions
	erased   int64               // as name.erased
	past     []memoryStretch     // in order, those that last included

	stands int64 // its position
	shown  bool  // a page has shown it there
}

type memoryHeld struct {
	version, hash, seen, state int64
	body                       []byte
}

// NewMemory makes an empty store. Of the options only Now and Limit are used.
func NewMemory(o Options) *Memory {
	return &Memory{o: o.withDefaults(), sources: map[string]*memorySource{}, space: Space{Limit: o.Limit}}
}

// enter locks the store, unless it is closed or ctx is over.
func (m *Memory) enter(ctx context.Context) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return understudy.ErrClosed
	}
	return nil
}

// source is a source, made when it is new.
func (m *Memory) source(name string) *memorySource {
	s := m.sources[name]
	if s == nil {
		s = &memorySource{kindNumber: &m.kind, kinds: map[string]*memoryKind{}, pages: map[string]*memoryPage{}}
		m.sources[name] = s
	}
	return s
}

func (s *memorySource) kind(name string) *memoryKind {
	k := s.kinds[name]
	if k == nil {
		*s.kindNumber++
		k = &memoryKind{number: *s.kindNumber, state: KindState{Kind: name}, records: map[string]*memoryRecord{}, ground: memoryGround{of: map[int64]*memoryRecord{}}}
		s.kinds[name] = k
	}
	return k
}

// Page is as DB.Page.
func (m *Memory) Page(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "page %s", key)
	}
	defer m.mu.Unlock()
	var held *memoryPage
	s := m.sources[key.Source]
	if s != nil {
		held = s.pages[key.URI]
	}
	if held == nil {
		return nil, failed(false, understudy.ErrNotFound, "page %s", key)
	}
	held.read = max(held.read, m.o.Now().UnixNano())
	p := held.page
	if err := s.supersede(&p, m.o.kindSpec(key.Source, p.Kind)); err != nil {
		return nil, failed(false, err, "page %s", key)
	}
	return &p, nil
}

func (s *memorySource) supersede(p *understudy.Page, spec *understudy.Kind) error {
	if p.Kind == "" {
		return nil
	}
	k, present := s.kind(p.Kind), false
	if rec := k.records[p.ID]; len(p.Rows) == 0 && rec != nil {
		for _, h := range rec.held {
			present = present || h.state&stateGone == 0
		}
	}
	if p.Superseded = pageSuperseded(len(p.Rows), p.List, p.Kind, p.ID, p.Generation, k.state.Generation, present); p.Superseded {
		return nil
	}
	now := func(r *understudy.Row) current {
		if h := k.records[r.ID].held[p.Shape]; h != nil {
			return current{h.version, h.state}
		}
		return current{state: stateGone}
	}
	return supersede(p, spec, now, func(r *understudy.Row) ([]byte, error) { return k.records[r.ID].held[p.Shape].body, nil })
}

// Record is as DB.Record.
func (m *Memory) Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "record %s %s %s", source, kind, id)
	}
	defer m.mu.Unlock()
	if s := m.sources[source]; s != nil && s.kinds[kind] != nil && s.kinds[kind].records[id] != nil {
		rec := s.kinds[kind].records[id]
		if h := rec.held[shape]; h != nil && h.state&(stateGone|stateForgotten) == 0 {
			return &understudy.Record{Source: source, Kind: kind, Shape: shape, ID: id, Number: rec.number, Version: h.version, Body: slices.Clone(h.body),
				Since: unix(rec.last(shape).since), Seen: time.Unix(0, h.seen).UTC(), Final: h.state&stateFinal != 0, Invalid: h.state&stateInvalid != 0}, nil
		}
	}
	return nil, failed(false, understudy.ErrNotFound, "record %s %s %s", source, kind, id)
}

// Touch is as DB.Touch.
func (m *Memory) Touch(ctx context.Context, t understudy.Touch) (generation int64, err error) {
	if t.Source == "" || t.Kind == "" {
		return 0, failed(true, fmt.Errorf("%w: a touch names a source and a kind", understudy.ErrInvalid), "touch %s %s", t.Source, t.Kind)
	}
	if err := m.enter(ctx); err != nil {
		return 0, failed(true, err, "touch %s %s", t.Source, t.Kind)
	}
	defer m.mu.Unlock()
	k := m.source(t.Source).kind(t.Kind)
	k.state.Generation++
	if rec := k.records[t.ID]; rec != nil {
		for _, h := range rec.held {
			h.state |= stateInvalid
		}
	}
	return k.state.Generation, nil
}

// Kinds is as DB.Kinds.
func (m *Memory) Kinds(ctx context.Context, source string) ([]KindState, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "read kinds of %s", source)
	}
	defer m.mu.Unlock()
	var states []KindState
	if s := m.sources[source]; s != nil {
		for _, k := range s.kinds {
			states = append(states, k.state)
		}
	}
	slices.SortFunc(states, func(a, b KindState) int { return strings.Compare(a.Kind, b.Kind) })
	return states, nil
}

// Changes is as DB.Changes.
func (m *Memory) Changes(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "read changes of %s after %d", source, after)
	}
	defer m.mu.Unlock()
	s := m.sources[source]
	after = max(after, 0)
	if s == nil || limit <= 0 || after >= int64(len(s.changes)) {
		return nil, nil
	}
	changes := s.changes[after:]
	return slices.Clone(changes[:min(limit, MaxChanges, len(changes))]), nil
}

// World is as DB.World.
func (m *Memory) World(ctx context.Context, source, world string) error {
	if err := m.enter(ctx); err != nil {
		return failed(true, err, "remember the world of %s", source)
	}
	defer m.mu.Unlock()
	s := m.source(source)
	if s.world == "" {
		s.world = world
	}
	return otherWorld(source, s.world, world)
}

// Close makes every later call ErrClosed.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
