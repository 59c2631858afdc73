// Sources and kinds as the mirror keeps them, and whether a source fails now.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"understudy"
	"understudy/kit/lru"
	"understudy/mirror/cache"
	"understudy/mirror/media"
	"understudy/mirror/shadow"
	"understudy/mirror/shared"
	"understudy/mirror/warm"
	"understudy/mirror/writes"
	"understudy/spec"
)

// source is one configured upstream with its counters.
type source struct {
	config     *spec.Source
	upstream   Upstream
	kinds      map[string]*kind // "" is the kind of paths the spec does not name
	polled     polled           // guarded by the flights' lock
	polling    atomic.Pointer[map[understudy.Key]*poll]
	lastRead   atomic.Int64 // a word of time
	pollBudget warm.Budget
	outage     outage
	counts     counts
	lists      *shadow.Lists
	validates  atomic.Bool // an answer had an ETag since the start
}

const maxLooks = 10_000 // that are remembered of a kind; a sync makes some hundreds a minute

// kind is one kind of one source.
type kind struct {
	source *source
	name   string // "": nothing of it is held

	writes *writes.Set

	// keeping is the right to save or touch; one goroutine has it at a time.
	keeping chan struct{}

	// written is the generation at the start; recalled: it is known whether the
	// newest page showed what was written before.
	written  int64
	recalled atomic.Bool

	lastRead atomic.Int64 // a word of time: of any page of it

	pages *cache.Group            // in memory
	looks *lru.Cache[int64, bool] // when pages came that were fetched since records are not final
}

func (m *Mirror) addSource(given Source) error {
	switch {
	case given.Source == nil || given.Source.Spec == nil || given.Upstream == nil:
		return fmt.Errorf("mirror: a source needs a spec and an upstream")
	case m.env.sources[given.Source.Name] != nil:
		return fmt.Errorf("mirror: source %s is there twice", given.Source.Name)
	}
	s := &source{config: given.Source, upstream: given.Upstream, kinds: map[string]*kind{}}
	s.pollBudget.Set(given.Rate)
	contents, _ := given.Upstream.(media.Upstream)
	if err := m.media.AddSource(given.Source, contents); err != nil {
		return err
	}
	if passes, ok := given.Upstream.(shared.Upstream); ok && given.Source.Spec.Generic() {
		m.shared.AddSource(given.Source.Name, passes)
	}
	s.lastRead.Store(m.env.monotonic(m.env.start))
	s.addKind("", 0, m.env.intents)
	for _, k := range given.Source.Spec.Kinds {
		s.addKind(k.Name, given.Generations[k.Name], m.env.intents)
	}
	lists, err := m.shadow.AddSource(given.Source, given.Answers, given.Checks)
	if err != nil {
		return err
	}
	s.lists = lists
	s.polled.configured = given.Source.Polls
	polls, err := s.pollsOf(s.polled)
	if err != nil {
		return err
	}
	s.polling.Store(&polls)
	m.env.sources[s.config.Name] = s
	return nil
}

func (s *source) addKind(name string, written int64, j writes.Journal) {
	s.kinds[name] = &kind{
		source: s, name: name, keeping: make(chan struct{}, 1), pages: cache.NewGroup(name), looks: lru.New[int64, bool](maxLooks),
		written: written, writes: writes.New(s.config.Name, name, written, j),
	}
}

// polls are the lists kept warm.
func (s *source) polls() map[understudy.Key]*poll { return *s.polling.Load() }

// polled are the entries of a source that are polled (Source.PollTarget).
type polled struct{ configured, synced []string }

// pollsOf are the polls of entries, by key.
func (s *source) pollsOf(wanted polled) (map[understudy.Key]*poll, error) {
	polls := map[understudy.Key]*poll{}
	for _, entry := range slices.Concat(wanted.configured, wanted.synced) {
		t, err := s.config.PollTarget(entry)
		if err != nil {
			return nil, fmt.Errorf("mirror: source %s: polls: %w", s.config.Name, err)
		}
		polls[t.Key] = &poll{list: warm.NewList(t), source: s, kind: s.of(t)}
	}
	return polls, nil
}

// of is the kind a target is about.
func (s *source) of(t *spec.Target) *kind {
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

// outageAfter is how many fetches of a source fail in a row before it counts as
// an outage that no fetch was refused for.
const outageAfter = 3

// outage is how the last fetches of a source ended.
type outage struct {
	fails atomic.Int64
	why   atomic.Pointer[understudy.UpstreamError] // of the last that failed; nil: it brought a page
}

// heard notes the end of a fetch. A limit of our own is no failure of upstream.
func (o *outage) heard(err error) {
	var why *understudy.UpstreamError
	switch {
	case err == nil:
		if o.fails.Load() != 0 {
			o.fails.Store(0)
			o.why.Store(nil)
		}
	case !errors.As(err, &why) || why.Why == understudy.FailBusy || why.Of != "": // the rest of upstream goes on
	case why.Why == understudy.FailDown || why.Why == understudy.FailCredential:
		o.fails.Store(outageAfter)
		o.why.Store(why)
	default:
		o.fails.Add(1)
		o.why.Store(why)
	}
}

// reason is why what is held cannot be refilled now, "" while upstream is well.
func (o *outage) reason() string {
	if why := o.why.Load(); why != nil && o.fails.Load() >= outageAfter {
		return why.Short()
	}
	return ""
}

// instanceOf is where a record is asked for; nil when the kind has no instance
// that the id and the source's settings lead to. It reports false for an id that
// is none.
func (s *source) instanceOf(k *spec.Kind, id string) (*spec.Target, bool) {
	parts := strings.Split(id, spec.IDSeparator)
	if len(parts) != len(k.ID) || len(id) > spec.MaxURI/2 {
		return nil, false
	}
	for _, in := range k.Instances {
		path, ok := s.config.InstancePath(in, parts)
		if !ok {
			continue
		}
		t, err := s.config.Spec.Target(s.config.Name, path, "")
		if err != nil || t.Instance != in || t.ID != id {
			return nil, false // it reads as something else
		}
		return t, true
	}
	return nil, true
}
