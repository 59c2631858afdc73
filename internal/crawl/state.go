// State: what is known of a kind between its walks, kept as a value.

package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"understudy"
)

// stateVersion is the form of a state. One of another form is not read: the kind
// is then walked anew.
const stateVersion = 1

// kindState is what is known of a kind. Times are Unix seconds.
type kindState struct {
	V    int  `json:"v"`
	Keep bool `json:"keep"` // it is kept up

	// Spans are the clocks walked, of a kind whose lists take a stretch of
	// time; Rest is when the last walk over the whole lists began, which finds
	// the records without a clock.
	Spans intervals `json:"spans,omitempty"`
	Rest  int64     `json:"rest,omitempty"`
	// Oldest is where the first stretch ends that has no beginning.
	Oldest int64 `json:"oldest,omitempty"`
	// Ended says that upstream keeps nothing that is older.
	Ended string `json:"ended,omitempty"`

	// Top are the newest records when the list was last known without a gap,
	// at CaughtUp. Behind: a newer page is known, and not what lies between.
	Top      []string `json:"top,omitempty"`
	CaughtUp int64    `json:"caught_up,omitempty"`
	Behind   int64    `json:"behind,omitempty"`
	// Newest is when the newest page that left a gap came.
	Newest int64 `json:"newest,omitempty"`
	// After is the last change looked at, of a kind that lies under another.
	After int64 `json:"after,omitempty"`

	// Missed are records without a path of their own that the last sweep
	// missed, by id.
	Missed []string `json:"missed,omitempty"`
	// Thinned counts the sweeps in a row in which too many of these were missing
	// to believe it at once.
	Thinned int `json:"thinned,omitempty"`
	// Failures are why walks ended before their ends, one a part, the newest
	// last.
	Failures []failure `json:"failures,omitempty"`
	// Lost is when records were last forgotten that upstream still has: what was
	// walked before may lack them.
	Lost int64 `json:"lost,omitempty"`
	// Plan says how they are walked (plan.print). What was walked in another way,
	// or of another user, counts for nothing.
	Plan string `json:"plan,omitempty"`
	// Of is the user whose records are known, of a kind that does not tell.
	Of string `json:"of,omitempty"`
	// Led are the lists of which a page has led on to another, a bit each: the way on is known.
	Led uint64 `json:"led,omitempty"`
	// Params tells that links to pages have parameters that lists made from records would lack.
	Params bool `json:"params,omitempty"`
	// Records is how many the last walk saw.
	Records int64 `json:"records,omitempty"`
}

// failure is why a walk of one part ended before its end.
type failure struct {
	Part int64  `json:"part,omitempty"` // where its stretch ends; whole, tip
	Why  string `json:"why"`
	At   int64  `json:"at"`
	// Endless counts the walks in a row that found no end of a list.
	Endless int `json:"endless,omitempty"`
}

// Parts that are no intervals.
const (
	whole = 0  // the whole lists
	tip   = -1 // from the newest page to what is known
)

// Bounds of what is kept of failures.
const (
	maxFailures = 16
	maxWhy      = 1024 // bytes
)

// fails notes why a part failed; it is so until its next walk ends well.
func (m *kindState) fails(part int64, why string, at int64, endless bool) {
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

// well notes that a part was walked to its end: c, when it is a stretch.
func (m *kindState) well(part int64, c interval) {
	m.Failures = slices.DeleteFunc(slices.Clone(m.Failures), func(f failure) bool {
		return f.Part == part || part > 0 && f.Part > c.From && f.Part <= c.To // stretches have become longer
	})
}

// failed is why a part failed last, "" when none has.
func (m *kindState) failed() string {
	if n := len(m.Failures); n > 0 {
		return m.Failures[n-1].Why
	}
	return ""
}

// rests reports whether a part failed so lately that it is not tried yet. A list without
// an end costs a whole walk each time: it rests twice as long after each, up to a day.
func (m *kindState) rests(part, now int64) bool {
	return slices.ContainsFunc(m.Failures, func(f failure) bool {
		rest := min(failedRest<<min(max(f.Endless-1, 0), 10), 24*time.Hour)
		return f.Part == part && now >= f.At && now-f.At < int64(rest/time.Second)
	})
}

// forget drops what is known of what lies before a clock.
func (m *kindState) forget(before int64) {
	m.Spans = m.Spans.without(earlier(before, edge))
	m.Failures = slices.DeleteFunc(slices.Clone(m.Failures), func(f failure) bool { return f.Part > 0 && f.Part <= before })
}

// edge is by how much longer what was walked is remembered than it is walked,
// in seconds: upstream still has what it is about to forget.
const edge = 2 * 60 * 60

// earlier is a clock less some seconds; early stays.
func earlier(clock, by int64) int64 {
	if clock == early {
		return early
	}
	return clock - by
}

func kvName(name string) string { return "walk/" + name }

// states reads and writes what is known of each kind.
type states struct {
	kv     understudy.KV
	bounds *bounds
	log    *slog.Logger
}

// load reads a kind's state once.
func (s *states) load(ctx context.Context, x *kindCrawl) error {
	if x.kept != nil {
		return nil
	}
	raw, err := s.kv.Value(ctx, kvName(x.plan.name()))
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return fmt.Errorf("walk: %s: %w", x.plan.name(), err)
	}
	var m kindState
	if why := unusable(raw, &m, x.plan.print()); why != "" {
		s.log.Warn("walk: "+why+"; walked anew", "kind", x.plan.name())
		m = kindState{Keep: m.Keep}
	}
	kept := m
	m.Plan = x.plan.print()
	if m.V = stateVersion; x.plan.kind.UnscopedVar() != "" && m.Of != x.plan.source.User {
		if m.Of = x.plan.source.User; len(raw) > 0 { // among what is held there may be others'
			m.Lost = s.bounds.clock()
		}
	}
	x.kept = &kept
	x.seen.Store(&m)
	return nil
}

// unusable reads a state, and is why it is not believed, "" when it is. One that
// does not say how it was walked may have been walked in any way: to walk the kind
// anew costs what its next sweep would, which is a day away at most.
func unusable(raw []byte, m *kindState, print string) (why string) {
	switch {
	case len(raw) == 0:
		return ""
	case json.Unmarshal(raw, m) != nil || m.V != stateVersion:
		return "what was known is of another form"
	case m.Plan == "":
		return "what was known does not say by which spec"
	case m.Plan != print:
		return "the spec or the user is another one"
	}
	return ""
}

// read is a copy of a kind's state.
func (s *states) read(ctx context.Context, x *kindCrawl) (kindState, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.load(ctx, x); err != nil {
		return kindState{}, err
	}
	return *x.seen.Load(), nil
}

// keepCaughtUp is how far CaughtUp may be ahead of the store when nothing else
// changed. After a restart the newest page in the store makes up for it.
const keepCaughtUp = 5 * 60 // seconds

// differs reports whether a state has to be written in place of the one the store
// has.
func (m *kindState) differs(kept kindState) bool {
	if ahead := m.CaughtUp - kept.CaughtUp; ahead > 0 && ahead < keepCaughtUp {
		kept.CaughtUp = m.CaughtUp
	}
	return !reflect.DeepEqual(*m, kept)
}

// change changes a kind's state and writes it if it differs from what the store
// has. When it cannot be written it is as before.
func (s *states) change(ctx context.Context, x *kindCrawl, how func(*kindState)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.load(ctx, x); err != nil {
		return err
	}
	m := *x.seen.Load()
	how(&m)
	if m.differs(*x.kept) {
		raw, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("walk: %s: %w", x.plan.name(), err)
		}
		if err := s.kv.SetValue(ctx, kvName(x.plan.name()), raw); err != nil {
			return fmt.Errorf("walk: %s: %w", x.plan.name(), err)
		}
		kept := m
		x.kept = &kept
	}
	x.seen.Store(&m)
	return nil
}
