// Sources and kinds as the mirror keeps them.

package mirror

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"understudy"
)

// source is one configured upstream with its counters.
type source struct {
	Source
	media    Media            // nil: it has no contents
	keeps    map[string]bool  // kinds whose contents are kept
	kinds    map[string]*kind // "" is the kind of paths the spec does not name
	polling  atomic.Pointer[map[understudy.Key]*poll]
	lastRead atomic.Int64 // a word of time
	share    share
	counts   counts
	lists    map[*understudy.List]*listing
	checks   checks
}

// kind is one kind of one source.
type kind struct {
	source *source
	name   string // "": nothing of it is held

	// generation rises with every write, before the write's answer goes out.
	// A fetch that began under a lower one may not fill.
	generation atomic.Int64
	// changes counts what has made held pages old. Who puts a page into the
	// hot tier looks before and after: either the hunt for old pages finds
	// the new entry, or its putter finds that there was a hunt.
	changes atomic.Int64
	// forgets rises with every purge. A fetch that began under a lower one
	// fills nothing, though what is held stays as it is.
	forgets atomic.Int64
	// known is the store's generation, as far as it has told.
	known atomic.Int64

	// keeping is the right to save or touch; one goroutine has it at a time.
	keeping chan struct{}

	wrote wrote
	// written is the generation at the start; recalled: it is known whether the
	// newest page showed what was written before.
	written  int64
	recalled atomic.Bool

	mu    sync.Mutex
	owed  map[string]int64 // the generation of writes the store has not been told of, by id; "" = only lists
	forms map[string]*form
}

// maxOwed bounds the ids remembered while the store refuses to be touched.
const maxOwed = 4096

func (m *Mirror) addSource(given Source) error {
	switch {
	case given.Source == nil || given.Spec == nil || given.Upstream == nil:
		return fmt.Errorf("mirror: a source needs a spec and an upstream")
	case m.sources[given.Name] != nil:
		return fmt.Errorf("mirror: source %s is there twice", given.Name)
	}
	s := &source{Source: given, kinds: map[string]*kind{}, keeps: map[string]bool{}, lists: map[*understudy.List]*listing{}}
	s.checks.set(given.Checks)
	s.media, _ = given.Upstream.(Media)
	s.share.set(given.Rate)
	for _, name := range given.Media {
		if k := given.Spec.Kind(name); k == nil || len(k.Media) == 0 {
			return fmt.Errorf("mirror: source %s: media: %q has no contents", given.Name, name)
		}
		s.keeps[name] = true
	}
	s.lastRead.Store(m.word(m.start))
	s.addKind("")
	for _, k := range given.Spec.Kinds {
		added := s.addKind(k.Name)
		added.written = given.Generations[k.Name]
		added.generation.Store(given.Generations[k.Name])
		added.known.Store(given.Generations[k.Name])
		for _, l := range k.Lists {
			if len(k.ID) > 0 {
				s.lists[l] = &listing{kind: added, list: l}
			}
		}
	}
	if err := s.setAnswers(given.Answers); err != nil {
		return err
	}
	polls, err := s.pollsOf(given.Polls)
	if err != nil {
		return err
	}
	s.polling.Store(&polls)
	m.sources[s.Name] = s
	return nil
}

func (s *source) addKind(name string) *kind {
	k := &kind{source: s, name: name, keeping: make(chan struct{}, 1), owed: map[string]int64{}, forms: map[string]*form{}}
	s.kinds[name] = k
	return k
}

// polls are the lists kept warm.
func (s *source) polls() map[understudy.Key]*poll { return *s.polling.Load() }

// pollsOf are the polls of kinds, by key.
func (s *source) pollsOf(kinds []string) (map[understudy.Key]*poll, error) {
	polls := make(map[understudy.Key]*poll, len(kinds))
	for _, name := range kinds {
		t, err := s.pollTarget(name)
		if err != nil {
			return nil, fmt.Errorf("mirror: source %s: polls: %w", s.Name, err)
		}
		polls[t.Key] = &poll{target: t, source: s, kind: s.kinds[name], wake: make(chan struct{}, 1), gone: make(chan struct{})}
	}
	return polls, nil
}

// pollTarget is the newest page of a kind's first list that can be asked for
// with nothing but the source's own settings.
func (s *source) pollTarget(name string) (*understudy.Target, error) {
	k := s.Spec.Kind(name)
	if k == nil {
		return nil, fmt.Errorf("%q is not a kind of %s", name, s.Spec.Name)
	}
	for _, l := range k.Lists {
		path, ok := s.fill(l.Path)
		if !ok {
			continue
		}
		t, err := s.Spec.Target(s.Name, path, "")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return t, nil
	}
	return nil, fmt.Errorf("%q has no list that can be asked for without a record's id", name)
}

// fill puts the source's settings into a path's variables.
func (s *source) fill(path string) (string, bool) {
	for {
		head, rest, found := strings.Cut(path, "{")
		if !found {
			return path, true
		}
		name, tail, _ := strings.Cut(rest, "}")
		if s.Spec.Vars[name] != "user" || s.User == "" || strings.ContainsAny(s.User, "{}/%") {
			return "", false
		}
		path = head + s.User + tail
	}
}

// of is the kind a target is about.
func (s *source) of(t *understudy.Target) *kind {
	if t.Kind == nil {
		return s.kinds[""]
	}
	return s.kinds[t.Kind.Name]
}

// lock takes the right to save or touch, or gives up with the context.
func (k *kind) lock(ctx context.Context) error {
	select {
	case k.keeping <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mirror: keep %s: busy: %w", k.name, ctx.Err())
	}
}

func (k *kind) unlock() { <-k.keeping }

// raise lifts the generation to at least n.
func (k *kind) raise(n int64) {
	for {
		have := k.generation.Load()
		if have >= n || k.generation.CompareAndSwap(have, n) {
			return
		}
	}
}

// owes remembers that the store has to be told of a write.
func (k *kind) owes(id string, generation int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.owed) < maxOwed {
		k.owed[id] = generation
	}
}

// debts are what the store has to be told, and the generation it must reach.
func (k *kind) debts() (map[string]int64, int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.owed), k.generation.Load()
}

// told notes that the store knows of a write, unless a later one touched the
// same record meanwhile.
func (k *kind) told(id string, of, generation int64) {
	k.known.Store(generation)
	k.raise(generation)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.owed[id] == of {
		delete(k.owed, id)
	}
}

// untold reports whether the store has not yet been told that the record is
// invalid; with too many to remember, every record counts.
func (k *kind) untold(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, owed := k.owed[id]
	return owed || len(k.owed) >= maxOwed
}
