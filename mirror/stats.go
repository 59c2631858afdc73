// Stats and limits: what the mirror counts, how much may go on at once, and who is
// turned away beyond it.

package mirror

import (
	"net/http"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
)

// counts are one source's counters; they only rise.
type counts struct {
	warm, stale, cold, composed, failed atomic.Int64
	coalesced, notStored, prefetched    atomic.Int64
	writes                              atomic.Int64
}

// exchanged counts the answer of a generic source.
func (c *counts) exchanged(x *request.Exchange, a *request.Exchanged, err error) {
	switch {
	case err != nil:
		c.failed.Add(1)
	case a.Response.Outcome == request.Warm:
		c.warm.Add(1)
	case a.Response.Outcome == request.Stale:
		c.stale.Add(1)
	case x.Method != http.MethodGet && x.Method != http.MethodHead:
		c.writes.Add(1)
	default:
		c.cold.Add(1)
		if a.Response.Joined {
			c.coalesced.Add(1)
		}
	}
}

// Stats is a snapshot of one source, and of the hot tier all sources share.
// Counts only rise.
type Stats struct {
	Requests int64 // pages asked for and answered, or refused with an error
	Warm     int64 // fresh
	Stale    int64 // past fresh
	Cold     int64 // fetched
	Composed int64 // made from records, and fresh
	Failed   int64 // ended in an error

	Coalesced  int64 // of Cold: brought by a fetch that was under way
	NotStored  int64 // pages and writes that could not be stored
	Prefetched int64 // pages fetched in candidate
	Writes     int64 // passed on

	Hot          request.Hot
	ReadyEntries int64 // of Hot, ready to go out

	Media request.Media

	// CaughtUp is when upstream gave the newest page held, by polled kind; no
	// entry: never yet.
	CaughtUp map[string]time.Time
	// Trouble is why nothing can be saved ("disk full"); "" when it can.
	Trouble string
}

// Stats is a snapshot of a source; the zero Stats for one it does not have.
func (m *Mirror) Stats(source string) Stats {
	s := m.env.sources[source]
	if s == nil {
		return Stats{}
	}
	c := &s.counts
	out := Stats{
		Warm: c.warm.Load(), Stale: c.stale.Load(), Cold: c.cold.Load(), Composed: c.composed.Load(), Failed: c.failed.Load(),
		Coalesced: c.coalesced.Load(), NotStored: c.notStored.Load(), Prefetched: c.prefetched.Load(), Writes: c.writes.Load(),
		CaughtUp: map[string]time.Time{}, Trouble: m.writer.saving.trouble(),
	}
	out.Media = m.media.Stats(source)
	out.Requests = out.Warm + out.Stale + out.Cold + out.Composed + out.Failed
	hot := m.entries.hot.Usage()
	out.Hot = request.Hot{Bytes: hot.Bytes, Limit: hot.Limit, Pages: int64(hot.Entries)}
	out.ReadyEntries = int64(hot.Ready)
	for _, p := range s.polls() {
		if at := p.list.CaughtUp(); p.list.Whole && !at.IsZero() {
			out.CaughtUp[p.kind.name] = at
		}
	}
	return out
}

// Limits bound what goes on at once. A zero field takes its default.
type Limits struct {
	Waiters int // readers that wait for upstream; 1024
	Each    int // of these, those with the same Turn; 256
	Flights int // fetches under way, of all sources; 512
	Behind  int // of these, those that no reader waits for; 256
	Hints   int // records lately hinted at; 1024
	Lists   int // lists being made from records; 32, as it was given to New
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *int
		usual int
	}{{&l.Waiters, 1024}, {&l.Each, 256}, {&l.Flights, 512}, {&l.Behind, 256}, {&l.Hints, 1024}, {&l.Lists, 32}} {
		if *d.limit <= 0 {
			*d.limit = d.usual
		}
	}
	return l
}

// SetLimits replaces the limits. Whoever is in already stays.
func (m *Mirror) SetLimits(l Limits) {
	l = l.withDefaults()
	m.flights.limits.Store(&l)
}

// refused counts requests that were turned away, by limit.
type refused struct{ waiters, each, flights, background int64 }

// busyRetry is when a request that was turned away may come again.
const busyRetry = 2 * time.Second

// admit lets a reader wait, or says why not; it is counted either way. start:
// a flight would have to begin for it. The lock is held.
func (fs *flights) admit(l *Limits, turn uint64, start bool) error {
	switch {
	case fs.waiters >= l.Waiters:
		fs.refused.waiters++
	case fs.flows[turn] >= l.Each:
		fs.refused.each++
	case start && len(fs.running) >= l.Flights:
		fs.refused.flights++
	default:
		fs.waiters++
		fs.flows[turn]++
		return nil
	}
	return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: busyRetry}
}

// dismiss takes a reader off the books; the lock is held.
func (fs *flights) dismiss(turn uint64) {
	fs.waiters--
	if fs.flows[turn]--; fs.flows[turn] == 0 {
		delete(fs.flows, turn)
	}
}

// Enter counts a reader that waits for upstream elsewhere than for a flight.
func (fs *flights) Enter(turn uint64) error {
	fs.Lock()
	defer fs.Unlock()
	return fs.admit(fs.limits.Load(), turn, false)
}

// Exit ends what Enter began.
func (fs *flights) Exit(turn uint64) {
	fs.Lock()
	defer fs.Unlock()
	fs.dismiss(turn)
}

// Loads are the limits of a mirror.
type Loads struct{ Waiters, Each, Flights, Behind, Hints, Lists request.Load }

// Loads are the limits and what is in use of them now; of Each that of the
// turn with most waiters.
func (m *Mirror) Loads() Loads {
	l := m.flights.limits.Load()
	load := func(limit, now int, refused int64) request.Load {
		return request.Load{Limit: int64(limit), Now: int64(now), Refused: refused}
	}
	known, refused := m.hints.Load()
	m.flights.Lock()
	defer m.flights.Unlock()
	most := 0
	for _, n := range m.flights.flows {
		most = max(most, n)
	}
	r := &m.flights.refused
	return Loads{
		Waiters: load(l.Waiters, m.flights.waiters, r.waiters), Each: load(l.Each, most, r.each),
		Flights: load(l.Flights, len(m.flights.running), r.flights), Behind: load(l.Behind, m.flights.background, r.background),
		Hints: load(l.Hints, known, refused), Lists: load(cap(m.composer.composing), len(m.composer.composing), 0),
	}
}
