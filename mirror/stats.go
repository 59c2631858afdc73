// Statistics and limits: what the mirror counts, and how many requests and fetches may run at the same time.

package mirror

import (
	"cmp"
	"net/http"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
)

// counts are the counters of one source. They never decrease.
type counts struct {
	warm, stale, cold, composed, failed atomic.Int64
	coalesced, notStored, prefetched    atomic.Int64
	writes                              atomic.Int64
}

// countExchange counts the answer to a request to a generic source.
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

// Stats has the counters of one source, and the state of the memory for pages that all sources share. Counters never decrease.
type Stats struct {
	Requests int64 // the number of requests, including those that ended with an error
	Warm     int64 // the number of requests answered with a fresh page
	Stale    int64 // the number of requests answered with a stale page
	Cold     int64 // the number of requests for which a page was fetched
	Composed int64 // the number of requests answered with a list composed from records that is fresh
	Failed   int64 // the number of requests that ended with an error

	Coalesced  int64 // the number of the requests in Cold that shared the fetch of another request
	NotStored  int64 // the number of pages and writes that could not be stored
	Prefetched int64 // the number of pages fetched before a reader requested them
	Writes     int64 // the number of writes sent to upstream

	Hot          request.Hot
	ReadyEntries int64 // the number of pages in memory in the form in which they are sent

	Media request.Media

	// CaughtUp has, for each polled kind, the time of its newest stored page. It has no entry for a kind without one.
	CaughtUp map[string]time.Time
	// Trouble is the reason why nothing can be saved, such as "disk full". It is "" if saving works.
	Trouble string
}

// Stats returns the statistics of a source. It returns the zero Stats for an unknown source.
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

// Limits says how much may happen at the same time. A zero field takes its default.
type Limits struct {
	Waiters    int // the maximum number of readers that wait for upstream; default 1024
	PerFlow    int // the maximum number of waiting readers with the same Flow; default 256
	Flights    int // the maximum number of running fetches of all sources; default 512
	Background int // the maximum number of running fetches that no reader waits for; default 256
	Hints      int // the maximum number of records with a recent hint; default 1024
	Lists      int // the maximum number of lists that are being composed; default 32; it cannot be changed after New
}

// withDefaults returns the limits with the default for each field that is not positive.
func (l Limits) withDefaults() Limits {
	l.Waiters = cmp.Or(max(l.Waiters, 0), 1024)
	l.PerFlow = cmp.Or(max(l.PerFlow, 0), 256)
	l.Flights = cmp.Or(max(l.Flights, 0), 512)
	l.Background = cmp.Or(max(l.Background, 0), 256)
	l.Hints = cmp.Or(max(l.Hints, 0), 1024)
	l.Lists = cmp.Or(max(l.Lists, 0), 32)
	return l
}

// SetLimits replaces the limits. Requests that are already running continue.
func (m *Mirror) SetLimits(l Limits) {
	l = l.withDefaults()
	m.flights.limits.Store(&l)
}

// refused counts the requests that each limit has refused.
type refused struct{ waiters, perFlow, flights, background int64 }

// busyRetry is the value of Retry-After in the response to a refused request.
const busyRetry = 2 * time.Second

// admit counts a reader that starts to wait. It returns an error if a limit is reached. start is true if a flight
// would have to be started for the reader. The caller holds the lock.
func (fs *flights) admit(l *Limits, turn uint64, start bool) error {
	switch {
	case fs.waiters >= l.Waiters:
		fs.refused.waiters++
	case fs.flows[turn] >= l.PerFlow:
		fs.refused.perFlow++
	case start && len(fs.running) >= l.Flights:
		fs.refused.flights++
	default:
		fs.waiters++
		fs.flows[turn]++
		return nil
	}
	return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: busyRetry}
}

// removeReader must be called when a reader that admit has counted no longer waits. The caller holds the lock.
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

// Exit must be called when a reader that Enter has counted no longer waits.
func (fs *flights) Exit(turn uint64) {
	fs.Lock()
	defer fs.Unlock()
	fs.removeReader(turn)
}

// Loads says how much of each limit of a mirror is in use.
type Loads struct{ Waiters, PerFlow, Flights, Background, Hints, Lists request.Load }

// Loads returns how much of each limit is in use. For PerFlow, it uses the Flow with the most waiting readers.
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
		Waiters: load(l.Waiters, m.flights.waiters, r.waiters), PerFlow: load(l.PerFlow, most, r.perFlow),
		Flights: load(l.Flights, len(m.flights.running), r.flights), Background: load(l.Background, m.flights.background, r.background),
		Hints: load(l.Hints, known, refused), Lists: load(cap(m.composer.slots), len(m.composer.slots), 0),
	}
}
