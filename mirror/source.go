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

// source is one configured upstream with its kinds and counters.
type source struct {
	config     *spec.Source
	upstream   Upstream
	kinds      map[string]*kind // the kinds by name; the name "" is for paths that the spec does not name
	polled     polled           // the lists that are polled, guarded by the lock of the flights
	polling    atomic.Pointer[map[understudy.Key]*poll]
	lastRead   atomic.Int64 // when the source was last read, as monotonicTime
	pollBudget warm.Budget
	outage     outage
	counts     counts
	lists      *shadow.Lists
	sendsETags atomic.Bool // whether a response since the start had an ETag
}

// maxNonFinalLooks is the maximum number of times in nonFinalLooks of a kind. A full sync adds some hundreds a minute.
const maxNonFinalLooks = 10_000

// kind is one kind of one source.
type kind struct {
	source *source
	name   string // the name of the kind; "" if nothing of it is stored

	writes *writes.Set

	// saveLock is a lock that a goroutine holds while it saves pages of the kind or tells the store about writes.
	saveLock chan struct{}

	// startGeneration is the generation of the kind at the start. writesRestored is true after restoreWrites has
	// checked whether a newest page has shown the writes before the start.
	startGeneration int64
	writesRestored  atomic.Bool

	lastRead atomic.Int64 // when a page of the kind was last read, as monotonicTime

	pages         *cache.Group            // the pages of the kind that are in memory
	nonFinalLooks *lru.Cache[int64, bool] // when pages were fetched because records on them were not final
}

// addSource adds a source with its kinds, its audio and images, its comparisons and its polls.
func (m *Mirror) addSource(given Source) error {
	switch {
	case given.Source == nil || given.Source.Spec == nil || given.Upstream == nil:
		return fmt.Errorf("mirror: a source needs a spec and an upstream")
	case m.env.sources[given.Source.Name] != nil:
		return fmt.Errorf("mirror: two sources are named %s", given.Source.Name)
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

// polls returns the polls of the source by the key of the polled page.
func (s *source) polls() map[understudy.Key]*poll { return *s.polling.Load() }

// polled are the lists of a source that are polled, in the form that Source.ResolvePoll parses: those in the
// settings, and those of kinds that are kept complete.
type polled struct{ configured, synced []string }

// buildPolls returns the polls for the wanted lists, by the key of the polled page.
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

// kindOf returns the kind of a target. It returns nil if the source does not have it.
func (s *source) kindOf(t *spec.Target) *kind {
	if t.Kind == nil {
		return s.kinds[""]
	}
	return s.kinds[t.Kind.Name]
}

// lock waits for the saveLock of the kind. It returns an error if the context ends first.
func (k *kind) lock(ctx context.Context) error {
	select {
	case k.saveLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mirror: keep %s: busy: %w", k.name, ctx.Err())
	}
}

func (k *kind) unlock() { <-k.saveLock }

// outageAfter is how many fetches in a row must fail before a source counts as down. If upstream's state is certain
// from one failure, one is enough.
const outageAfter = 3

// outage remembers how the last fetches of a source have ended.
type outage struct {
	fails atomic.Int64
	why   atomic.Pointer[understudy.UpstreamError] // the failure of the last fetch; nil if it succeeded
}

// noteResult notes how a fetch has ended. It ignores requests that were refused by our own limits, because they say
// nothing about upstream.
func (o *outage) noteResult(err error) {
	var why *understudy.UpstreamError
	switch {
	case err == nil:
		if o.fails.Load() != 0 {
			o.fails.Store(0)
			o.why.Store(nil)
		}
	// only this request was limited, so other requests may still succeed
	case !errors.As(err, &why) || why.Why == understudy.FailBusy || why.LimitName != "":
	case why.Why == understudy.FailDown || why.Why == understudy.FailCredential:
		o.fails.Store(outageAfter)
		o.why.Store(why)
	default:
		o.fails.Add(1)
		o.why.Store(why)
	}
}

// reason returns why pages cannot be fetched now. It returns "" if upstream works.
func (o *outage) reason() string {
	if why := o.why.Load(); why != nil && o.fails.Load() >= outageAfter {
		return why.ShortText()
	}
	return ""
}

// instanceTarget returns the target of a single record. It returns nil and true if the kind has no path for a single
// record that can be filled from the id and the settings. It returns false if the id is not valid.
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
			return nil, false // the id has characters that would make the path that of another target
		}
		return t, true
	}
	return nil, true
}
