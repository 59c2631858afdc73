// This file stores what is known about a kind between its walks, as one value of the store.

package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy"
)

// stateVersion is the version of the stored form. A state of another version is ignored, and the kind is walked again.
const stateVersion = 1

// kindState is what is known about a kind. Times are Unix seconds.
type kindState struct {
	V    int  `json:"v"`
	Keep bool `json:"keep"` // whether the kind is kept complete

	// Spans are the walked time ranges of a kind whose lists have filters on time. ListsWalkedAt is when the last walk
	// over the whole lists began, which also finds records without a clock.
	Spans         intervals `json:"spans,omitempty"`
	ListsWalkedAt int64     `json:"rest,omitempty"`
	// Oldest is the end of the oldest time range, which has no beginning.
	Oldest int64 `json:"oldest,omitempty"`
	// Ended is a sentence which says that upstream keeps no older records.
	Ended string `json:"ended,omitempty"`

	// NewestIDs are the newest records when the list last had no known gap, at CaughtUp. GapAt is the time of a
	// newer page if the records in between are unknown.
	NewestIDs []string `json:"top,omitempty"`
	CaughtUp  int64    `json:"caught_up,omitempty"`
	GapAt     int64    `json:"behind,omitempty"`
	// Newest is the time of the newest page that left a gap to the known records.
	Newest int64 `json:"newest,omitempty"`
	// LastChange is the number of the last change that was followed, for a nested kind.
	LastChange int64 `json:"after,omitempty"`

	// Missed are the ids of records without a path of their own that the last sweep did not see.
	Missed []string `json:"missed,omitempty"`
	// DoubtfulSweeps counts consecutive sweeps in which so many records without a path of their own were missing that the
	// result was not believed.
	DoubtfulSweeps int `json:"thinned,omitempty"`
	// Failures say why walks did not reach their ends. Each part has at most one failure; the newest is last.
	Failures []failure `json:"failures,omitempty"`
	// LostAt is when records were last deleted here although upstream has them. Records that earlier walks found may
	// be missing.
	LostAt int64 `json:"lost,omitempty"`
	// Plan is the fingerprint of the plan. Walks by a plan with another fingerprint, or for another user, do not count.
	Plan string `json:"plan,omitempty"`
	// User is the source's user at the time of the walks, for a kind whose records do not name their user.
	User string `json:"of,omitempty"`
	// LinkedLists is a bit set of the lists in which a page had a next link that worked.
	LinkedLists uint64 `json:"led,omitempty"`
	// Params says whether links to pages have parameters that composed lists would lack.
	Params bool `json:"params,omitempty"`
	// Records is the number of records that the last walk saw.
	Records int64 `json:"records,omitempty"`
}

// failure is why the walk of one part did not reach its end.
type failure struct {
	Part int64  `json:"part,omitempty"` // the failed part: the end of its time range, or the constant partLists or partTip
	Why  string `json:"why"`
	At   int64  `json:"at"`
	// Endless counts consecutive walks that did not find the end of a list.
	Endless int `json:"endless,omitempty"`
}

// Numbers of the parts of a kind that are not time ranges.
const (
	partLists = 0  // the part that consists of the whole lists
	partTip   = -1 // the part between the newest page and the known records
)

// Limits of the failures that a state stores.
const (
	maxFailures = 16
	maxWhy      = 1024 // maximum length of a reason, in bytes
)

// addFailure stores why a part failed. The failure stays until the part is walked successfully.
func (m *kindState) addFailure(part int64, why string, at int64, endless bool) {
	times := 0
	m.Failures = slices.DeleteFunc(slices.Clone(m.Failures), func(f failure) bool {
		if f.Part == part && endless {
			times = f.Endless
		}
		return f.Part == part
	})
	if endless {
		times++
	}
	m.Failures = append(m.Failures, failure{part, strings.ToValidUTF8(why[:min(len(why), maxWhy)], ""), at, times})
	m.Failures = m.Failures[max(len(m.Failures)-maxFailures, 0):]
}

// removeFailures removes the failures of a part that was walked to its end. c is the time range of the part, if it has one.
func (m *kindState) removeFailures(part int64, c interval) {
	m.Failures = slices.DeleteFunc(slices.Clone(m.Failures), func(f failure) bool {
		// time ranges may have become longer, so a failed part can lie within c
		return f.Part == part || part > 0 && f.Part > c.From && f.Part <= c.To
	})
}

// lastFailure returns why a part failed last, or "".
func (m *kindState) lastFailure() string {
	if n := len(m.Failures); n > 0 {
		return m.Failures[n-1].Why
	}
	return ""
}

// isResting reports whether a part failed so recently that it is not tried yet. An endless list costs a whole
// walk each time, so its pause doubles with each failure, up to a day.
func (m *kindState) isResting(part, now int64) bool {
	return slices.ContainsFunc(m.Failures, func(f failure) bool {
		rest := min(failurePause<<min(max(f.Endless-1, 0), 10), 24*time.Hour)
		return f.Part == part && now >= f.At && now-f.At < int64(rest/time.Second)
	})
}

// forget removes what is known about time ranges before a clock.
func (m *kindState) forget(before int64) {
	m.Spans = m.Spans.dropBefore(subtract(before, rememberExtra))
	m.Failures = slices.DeleteFunc(slices.Clone(m.Failures), func(f failure) bool { return f.Part > 0 && f.Part <= before })
}

// rememberExtra is how many seconds before its beginning a walked time range also counts as walked. Upstream may
// still have records that it is about to drop.
const rememberExtra = 2 * 60 * 60

// subtract returns a clock minus a number of seconds. It returns minClock unchanged.
func subtract(clock, by int64) int64 {
	if clock == minClock {
		return minClock
	}
	return clock - by
}

// kvPrefix is the beginning of the names under which states are stored in the KV store.
const kvPrefix = "walk/"

// states reads and writes the state of each kind. Several processes on one database may do so at once.
type states struct {
	kv     understudy.SharedKV
	bounds *bounds
	log    *slog.Logger
	known  sync.Map // the walk of each name of a value; only walks whose state is in memory
	kept   func()   // called after a walk begins or ceases to be kept complete
}

// receive puts a stored state into memory, also one that another process has stored. It must not wait for x.mu.
func (s *states) receive(name string, raw []byte) error {
	known, _ := s.known.Load(name)
	x, ok := known.(*kindCrawl)
	if !ok {
		return nil
	}
	before := x.state.Load()
	m, kept := s.parse(x, raw)
	if raw == nil && before != nil {
		m.Keep = before.Keep // the value was erased
	}
	x.state.Store(&m)
	x.stored.Store(&kept)
	if before == nil || before.Keep != m.Keep {
		s.kept()
	}
	return nil
}

// load reads a kind's state from the store, but only once.
func (s *states) load(ctx context.Context, x *kindCrawl) error {
	if x.stored.Load() != nil {
		return nil
	}
	name := kvPrefix + x.plan.name()
	s.known.Store(name, x)
	raw, err := understudy.ReadValue(ctx, s.kv, name)
	if err != nil {
		return fmt.Errorf("walk: %s: %w", x.plan.name(), err)
	}
	m, kept := s.parse(x, raw)
	x.state.CompareAndSwap(nil, &m) // a state that was received meanwhile is as new or newer
	x.stored.CompareAndSwap(nil, &kept)
	return nil
}

// parse returns the state that a value describes for the present plan and user, and the state as it is stored.
func (s *states) parse(x *kindCrawl, raw []byte) (m, kept kindState) {
	if why := checkState(raw, &m, x.plan.fingerprint()); why != "" {
		s.log.Warn("walk: "+why+"; reading everything again", "kind", x.plan.name())
		m = kindState{Keep: m.Keep}
	}
	kept = m
	m.Plan = x.plan.fingerprint()
	if m.V = stateVersion; x.plan.kind.UnscopedVar() != "" && m.User != x.plan.source.User {
		if m.User = x.plan.source.User; len(raw) > 0 { // the stored records may include records of other users
			m.LostAt = s.bounds.unixNow()
		}
	}
	return m, kept
}

// checkState parses a stored state and returns why it must be ignored, or "". A state without a fingerprint may
// come from any plan, but walking its kind again costs no more than its next sweep.
func checkState(raw []byte, m *kindState, print string) (why string) {
	switch {
	case len(raw) == 0:
		return ""
	case json.Unmarshal(raw, m) != nil || m.V != stateVersion:
		return "the saved state has an unknown format"
	case m.Plan == "":
		return "the saved state does not name its spec"
	case m.Plan != print:
		return "the spec or the user has changed"
	}
	return ""
}

// read returns a copy of a kind's state.
func (s *states) read(ctx context.Context, x *kindCrawl) (kindState, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.load(ctx, x); err != nil {
		return kindState{}, err
	}
	return *x.state.Load(), nil
}

// keepCaughtUp is by how many seconds CaughtUp may be newer than its stored value if nothing else changed. After a
// restart, the newest page in the store replaces it.
const keepCaughtUp = 5 * 60

// isDifferent reports whether a state must be written because it differs from the stored one.
func (m *kindState) isDifferent(kept kindState) bool {
	if ahead := m.CaughtUp - kept.CaughtUp; ahead > 0 && ahead < keepCaughtUp {
		kept.CaughtUp = m.CaughtUp
	}
	return !reflect.DeepEqual(*m, kept)
}

// change changes a kind's state and writes it if it differs from the stored one. If the write fails, the state is
// unchanged. update receives the state that is stored at the moment of the write, so it never undoes what another process
// has written. It may be called more than once.
func (s *states) change(ctx context.Context, x *kindCrawl, update func(*kindState)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.load(ctx, x); err != nil {
		return err
	}
	before, stored := x.state.Load(), x.stored.Load()
	m := *before
	if update(&m); m.isDifferent(*stored) {
		err := s.kv.Change(ctx, kvPrefix+x.plan.name(), func(raw []byte) (value []byte, err error) {
			var kept kindState
			if m, kept = s.parse(x, raw); reflect.DeepEqual(kept, *stored) { // no other process has written it
				m = *before
			}
			update(&m)
			return json.Marshal(m)
		})
		if err != nil {
			return fmt.Errorf("walk: %s: %w", x.plan.name(), err)
		}
		kept := m
		x.stored.CompareAndSwap(stored, &kept)
	}
	x.state.CompareAndSwap(before, &m) // if it was replaced, receive has got this state or a newer one
	return nil
}
