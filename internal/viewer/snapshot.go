// Snapshot: how each source and the jobs do, asked at most once a second however
// many pages are read.

package viewer

import (
	"context"
	"sync"
	"time"
	"understudy/internal/viewer/plan"
)

// bannerAge is how old what a page says of a source or of the jobs may be.
const bannerAge = time.Second

// lately remembers what was said last, by name. The zero value is ready.
type lately[T any] struct {
	mu   sync.Mutex
	last map[string]said[T]
}

type said[T any] struct {
	at   time.Time
	what T
}

// known is what was said last; fresh: it is at most bannerAge old.
func (l *lately[T]) known(name string, now time.Time) (what T, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.last[name]
	age := now.Sub(k.at)
	return k.what, ok && age >= 0 && age < bannerAge
}

func (l *lately[T]) keep(name string, now time.Time, what T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]said[T]{}
	}
	l.last[name] = said[T]{now, what}
}

// snapshots are those of the sources.
type snapshots struct{ lately[Snapshot] }

// of is a source's snapshot, at most bannerAge old. A page that may wait no
// longer has the one before, if any.
func (c *snapshots) of(q *exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.known(s.Name, q.start); fresh {
		return snap
	}
	asked := q.begin("how "+s.Name+" does", q.v.glance, func(ctx context.Context) error {
		c.ask(ctx, q, s)
		return nil
	})
	select {
	case <-asked.done:
	case <-q.soon.Done():
	}
	snap, _ := c.known(s.Name, q.start)
	return snap
}

// ask is a source's snapshot, at most bannerAge old.
func (c *snapshots) ask(ctx context.Context, q *exchange, s *plan.Source) Snapshot {
	if q.v.Snapshot == nil {
		return Snapshot{}
	}
	if snap, fresh := c.known(s.Name, q.start); fresh {
		return snap
	}
	snap := q.v.Snapshot(ctx, s.Name)
	if ctx.Err() == nil { // else it may lack something
		c.keep(s.Name, q.start, snap)
	}
	return snap
}
