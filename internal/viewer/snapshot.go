// Snapshot: how each source does, asked at most once a second however many
// pages are read.

package viewer

import (
	"sync"
	"time"
)

// bannerAge is how old what a banner says may be.
const bannerAge = time.Second

// snapshots remember the last snapshot of each source.
type snapshots struct {
	mu   sync.Mutex
	last map[string]kept
}

type kept struct {
	at   time.Time
	snap Snapshot
}

// of is a source's snapshot, at most bannerAge old.
func (c *snapshots) of(q *visit, s *sourcePlan) Snapshot {
	c.mu.Lock()
	known, ok := c.last[s.Name]
	c.mu.Unlock()
	if age := q.start.Sub(known.at); ok && age >= 0 && age < bannerAge {
		return known.snap
	}
	snap := q.snapshot(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]kept{}
	}
	c.last[s.Name] = kept{q.start, snap}
	return snap
}
