// Glimpse: how each source does, asked at most once a second however many
// pages are read.

package viewer

import (
	"sync"
	"time"
)

// glimpseAge is how old what a banner says may be.
const glimpseAge = time.Second

// glimpses remember the last snapshot of each source.
type glimpses struct {
	mu   sync.Mutex
	last map[string]glimpsed
}

type glimpsed struct {
	at   time.Time
	snap Snapshot
}

// of is a source's snapshot, at most glimpseAge old.
func (g *glimpses) of(q *visit, s *sourcePlan) Snapshot {
	g.mu.Lock()
	known, ok := g.last[s.Name]
	g.mu.Unlock()
	if age := q.start.Sub(known.at); ok && age >= 0 && age < glimpseAge {
		return known.snap
	}
	snap := q.snapshot(s)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[string]glimpsed{}
	}
	g.last[s.Name] = glimpsed{q.start, snap}
	return snap
}
