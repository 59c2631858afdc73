// Sources and kinds in the mirror, and whether a source fails now.

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
	kinds      map[string]*kind // "" is the kind of paths that the spec does not name
	polled     polled           // guarded by the flights' lock
	polling    atomic.Pointer[map[understudy.Key]*poll]
	lastRead   atomic.Int64 // when the source was last read, as monotonicTime
	pollBudget warm.Budget
	outage     outage
	counts     counts
	lists      *shadow.Lists
	sendsETags atomic.Bool // a response had an ETag since the start
}

// maxNonFinalLooks is how many looks of a kind are remembered. A sync makes some hundreds a minute.
const maxNonFinalLooks = 10_000

// kind is one kind of one source.
type kind struct {
	source *source
	name   string // "" if nothing of the kind is stored

	writes *writes.Set

	// saveLock lets one goroutine at a time save pages of the kind or touch it.
	saveLock chan struct{}

	// startGeneration is the generation at the start. writesRestored says that restoreWrites has checked
	// whether a newest page showed the writes before the start.
	startGeneration int64
	writesRestored  atomic.Bool

	lastRead atomic.Int64 // when a page of the kind was last read, as monotonicTime

	pages         *cache.Group            // the pages in memory
	nonFinalLooks *lru.Cache[int64, bool] // times of pages that were fetched because records were not final
}

// addSource adds a source with its kinds, contents, shadow reads and polls.
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
	if passes, ok := given.Upstream.(shared.Upstream); ok && given.Source.Spec.IsGeneric() {
		m.shared.AddSource(given.Source.Name, passes)
	}
	s.lastRead.Store(m.env.monotonicTime(m.env.start))
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
	polls, err := s.buildPolls(s.polled)
	if err != nil {
		return err
	}
	s.polling.Store(&polls)
	m.env.sources[s.config.Name] = s
	return nil
}

func (s *source) addKind(name string, written int64, j writes.Journal) {
	s.kinds[name] = &kind{
		source: s, name: name, saveLock: make(chan struct{}, 1), pages: cache.NewGroup(name),
		nonFinalLooks:   lru.New[int64, bool](maxNonFinalLooks),
		startGeneration: written, writes: writes.New(s.config.Name, name, written, j),
	}
}

// polls returns the polls of the source, by key.
func (s *source) polls() map[understudy.Key]*poll { return *s.polling.Load() }

// polled are the lists of a source that are polled, as entries for Source.ResolvePoll.
type polled struct{ configured, synced []string }

// buildPolls returns the polls of the entries, by key.
func (s *source) buildPolls(wanted polled) (map[understudy.Key]*poll, error) {
	polls := map[understudy.Key]*poll{}
	for _, entry := range slices.Concat(wanted.configured, wanted.synced) {
		t, err := s.config.ResolvePoll(entry)
		if err != nil {
			return nil, fmt.Errorf("mirror: source %s: polls: %w", s.config.Name, err)
		}
		polls[t.Key] = &poll{list: warm.NewList(t), source: s, kind: s.kindOf(t)}
	}
	return polls, nil
}

// kindOf returns the kind of a target, or nil if the source does not have it.
func (s *source) kindOf(t *spec.Target) *kind {
	if t.Kind == nil {
		return s.kinds[""]
	}
	return s.kinds[t.Kind.Name]
}

// lock waits for the right to save or touch. It returns an error if the context ends first.
func (k *kind) lock(ctx context.Context) error {
	select {
	case k.saveLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mirror: keep %s: busy: %w", k.name, ctx.Err())
	}
}

func (k *kind) unlock() { <-k.saveLock }

// outageAfter is how many fetches of a source must fail in a row to count as an outage, if upstream's state
// was not certain before.
const outageAfter = 3

// outage remembers how the last fetches of a source ended.
type outage struct {
	fails atomic.Int64
	why   atomic.Pointer[understudy.UpstreamError] // the last failure; nil if the last fetch succeeded
}

// noteResult stores the end of a fetch. A request refused by our own limits is no failure of upstream.
func (o *outage) noteResult(err error) {
	var why *understudy.UpstreamError
	switch {
	case err == nil:
		if o.fails.Load() != 0 {
			o.fails.Store(0)
			o.why.Store(nil)
		}
	case !errors.As(err, &why) || why.Why == understudy.FailBusy || why.LimitName != "": // the rest of upstream works
	case why.Why == understudy.FailDown || why.Why == understudy.FailCredential:
		o.fails.Store(outageAfter)
		o.why.Store(why)
	default:
		o.fails.Add(1)
		o.why.Store(why)
	}
}

// reason returns why pages cannot be fetched now, or "" if upstream works.
func (o *outage) reason() string {
	if why := o.why.Load(); why != nil && o.fails.Load() >= outageAfter {
		return why.ShortText()
	}
	return ""
}

// instanceTarget returns the target of a record. It returns nil and true if the kind has no instance path
// that the id and the settings lead to. It returns false if the id is invalid.
func (s *source) instanceTarget(k *spec.Kind, id string) (*spec.Target, bool) {
	parts := strings.Split(id, spec.IDSeparator)
	if len(parts) != len(k.ID) || len(id) > spec.MaxURI/2 {
		return nil, false
	}
	for _, in := range k.Instances {
		path, ok := s.config.InstancePath(in, parts)
		if !ok {
			continue
		}
		t, err := s.config.Spec.Resolve(s.config.Name, path, "")
		if err != nil || t.Instance != in || t.ID != id {
			return nil, false // the path parses as a different target
		}
		return t, true
	}
	return nil, true
}
