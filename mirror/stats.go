// Statistics and limits: what the mirror counts, how many requests and fetches may run at once, and which
// requests are refused beyond that.

package mirror

import (
	"net/http"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
)

// counts are the counters of one source; they only increase.
type counts struct {
	warm, stale, cold, composed, failed atomic.Int64
	coalesced, notStored, prefetched    atomic.Int64
	writes                              atomic.Int64
}

// countExchange counts the answer of a generic source.
func (c *counts) countExchange(x *request.Exchange, a *request.ExchangeResponse, err error) {
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

// Stats is a snapshot of one source's counters and of the hot tier that all sources share. The counters only
// increase.
type Stats struct {
	Requests int64 // requests that were answered or refused with an error
	Warm     int64 // requests answered with a fresh page
	Stale    int64 // requests answered with a stale page
	Cold     int64 // requests answered with a fetched page
	Composed int64 // requests answered with a fresh page made from records
	Failed   int64 // requests that ended with an error

	Coalesced  int64 // requests counted in Cold that joined a running fetch
	NotStored  int64 // pages and writes that could not be stored
	Prefetched int64 // pages fetched before a reader asked
	Writes     int64 // writes sent to upstream

	Hot          request.Hot
	ReadyEntries int64 // entries of the hot tier that are encoded

	Media request.Media

	// CaughtUp is the time of the newest stored page, by polled kind. A kind that never had one has no entry.
	CaughtUp map[string]time.Time
	// Trouble is why nothing can be saved (for example "disk full"), or "" if saving works.
	Trouble string
}

// Stats returns a snapshot of a source, or the zero Stats for an unknown source.
func (m *Mirror) Stats(source string) Stats {
	s := m.env.sources[source]
	if s == nil {
		return Stats{}
	}
	c := &s.counts
	out := Stats{
		Warm: c.warm.Load(), Stale: c.stale.Load(), Cold: c.cold.Load(), Composed: c.composed.Load(), Failed: c.failed.Load(),
		Coalesced: c.coalesced.Load(), NotStored: c.notStored.Load(), Prefetched: c.prefetched.Load(), Writes: c.writes.Load(),
		CaughtUp: map[string]time.Time{}, Trouble: m.writer.saving.failureReason(),
	}
	out.Media = m.media.Stats(source)
	out.Requests = out.Warm + out.Stale + out.Cold + out.Composed + out.Failed
	hot := m.entries.hot.Usage()
	out.Hot = request.Hot{Bytes: hot.Bytes, Limit: hot.Limit, Pages: int64(hot.Entries)}
	out.ReadyEntries = int64(hot.Ready)
	for _, p := range s.polls() {
		if at := p.list.NewestAt(); p.list.Whole && !at.IsZero() {
			out.CaughtUp[p.kind.name] = at
		}
	}
	return out
}

// Limits are the maximum numbers of what may happen at once. A zero field takes its default.
type Limits struct {
	Waiters    int // the maximum number of readers that wait for upstream; default 1024
	PerTurn    int // the maximum number of these readers with the same Flow; default 256
	Flights    int // the maximum number of running fetches of all sources; default 512
	Background int // the maximum number of running fetches without a reader; default 256
	Hints      int // the maximum number of records with a recent hint; default 1024
	Lists      int // the maximum number of lists being composed; default 32, fixed when New is called
}

// withDefaults returns the limits with defaults for fields that are not positive.
func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *int
		usual int
	}{{&l.Waiters, 1024}, {&l.PerTurn, 256}, {&l.Flights, 512}, {&l.Background, 256}, {&l.Hints, 1024}, {&l.Lists, 32}} {
		if *d.limit <= 0 {
			*d.limit = d.usual
		}
	}
	return l
}

// SetLimits replaces the limits. Requests already admitted stay.
func (m *Mirror) SetLimits(l Limits) {
	l = l.withDefaults()
	m.flights.limits.Store(&l)
}

// refused counts refused requests by limit.
type refused struct{ waiters, each, flights, background int64 }

// busyRetry is the Retry-After of a refused request.
const busyRetry = 2 * time.Second

// admit counts a reader that starts to wait, or returns an error if a limit is reached. start says that a flight would have to
// start for it. The caller has the lock.
func (fs *flights) admit(l *Limits, turn uint64, start bool) error {
	switch {
	case fs.waiters >= l.Waiters:
		fs.refused.waiters++
	case fs.flows[turn] >= l.PerTurn:
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

// removeReader ends what admit counted. The caller has the lock.
func (fs *flights) removeReader(turn uint64) {
	fs.waiters--
	if fs.flows[turn]--; fs.flows[turn] == 0 {
		delete(fs.flows, turn)
	}
}

// Enter counts a reader that starts to wait for upstream without a flight.
func (fs *flights) Enter(turn uint64) error {
	fs.Lock()
	defer fs.Unlock()
	return fs.admit(fs.limits.Load(), turn, false)
}

// Exit ends what Enter counted.
func (fs *flights) Exit(turn uint64) {
	fs.Lock()
	defer fs.Unlock()
	fs.removeReader(turn)
}

// Loads are the limits of a mirror and how much of them is in use.
type Loads struct{ Waiters, PerTurn, Flights, Background, Hints, Lists request.Load }

// Loads returns the limits and their use now. For PerTurn it reports the turn with the most waiters.
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
		Waiters: load(l.Waiters, m.flights.waiters, r.waiters), PerTurn: load(l.PerTurn, most, r.each),
		Flights: load(l.Flights, len(m.flights.running), r.flights), Background: load(l.Background, m.flights.background, r.background),
		Hints: load(l.Hints, known, refused), Lists: load(cap(m.composer.slots), len(m.composer.slots), 0),
	}
}
