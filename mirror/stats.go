// Stats: what the mirror counts.

package mirror

import (
	"sync/atomic"
	"time"

	"understudy/mirror/media"
)

// counts are one source's counters; they only rise.
type counts struct {
	warm, stale, cold, composed, failed atomic.Int64
	coalesced, notStored, prefetched    atomic.Int64
	writes                              atomic.Int64
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

	HotBytes, HotEntries     int64 // the hot tier, bookkeeping counted
	ReadyBytes, ReadyEntries int64 // of these, ready to go out

	Media media.Stats

	// CaughtUp is when upstream gave the newest page held, by polled kind; no
	// entry: never yet.
	CaughtUp map[string]time.Time
	// Trouble is why nothing can be saved ("disk full"); "" when it can.
	Trouble string
}

// Stats is a snapshot of a source; the zero Stats for one it does not have.
func (m *Mirror) Stats(source string) Stats {
	s := m.sources[source]
	if s == nil {
		return Stats{}
	}
	c := &s.counts
	out := Stats{
		Warm: c.warm.Load(), Stale: c.stale.Load(), Cold: c.cold.Load(), Composed: c.composed.Load(), Failed: c.failed.Load(),
		Coalesced: c.coalesced.Load(), NotStored: c.notStored.Load(), Prefetched: c.prefetched.Load(), Writes: c.writes.Load(),
		CaughtUp: map[string]time.Time{}, Trouble: m.saving.trouble(),
	}
	out.Media = m.media.Stats(source)
	out.Requests = out.Warm + out.Stale + out.Cold + out.Composed + out.Failed
	hot := m.hot.Usage()
	out.HotEntries, out.ReadyEntries, out.HotBytes, out.ReadyBytes = int64(hot.Entries), int64(hot.Ready), hot.Bytes, hot.ReadyBytes
	for _, p := range s.polls() {
		if at := p.caughtUp(); p.whole && !at.IsZero() {
			out.CaughtUp[p.kind.name] = at
		}
	}
	return out
}
