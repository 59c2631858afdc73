// Doors for the tests.

package seek

import (
	"context"
	"math"
	"sync/atomic"

	"understudy/internal/query"
	"understudy/internal/store/db"
	"understudy/internal/store/postings"
)

// CountPostings is how many postings the index gives of what is asked for.
func CountPostings(ctx context.Context, k *Seeker, q query.RecordQuery) (n int, err error) {
	s, err := k.prepareSearch(&q)
	if err != nil {
		return 0, err
	}
	err = k.pool.Read(ctx, func(c db.Conn) error {
		if err := s.prepare(ctx, c, k.epoch.Load()); err != nil {
			return err
		}
		spots, err := s.p.openStream(c)
		at, ok := int64(math.MaxInt64), err == nil
		for ; ok; n++ {
			if at, ok, err = spots.Advance(at); !ok || err != nil {
				break
			}
			at, ok = postings.Next(at, false)
		}
		return err
	})
	return n, err
}

// Search is a question under way about one kind.
type Search struct {
	s     *recordSearch
	Pool  *db.Pool
	Epoch *atomic.Int64
	Kind  int64
}

// Begin begins one.
func Begin(k *Seeker, q query.RecordQuery) (*Search, error) {
	s, err := k.prepareSearch(&q)
	if err != nil {
		return nil, err
	}
	s.p = k.plan(&q)
	return &Search{s, k.pool, k.epoch, s.p.kinds[0].kind.Number}, nil
}

// Looked says that a record was looked at last, and where it stood.
func (s *Search) Looked(record int64, at query.OrderKey) {
	s.s.last, s.s.below = heldAt{plan: s.s.p.kinds[0], record: record}, at
}

// Prepare is what the next part begins with; below is what it goes on below.
func (s *Search) Prepare(ctx context.Context) (below query.OrderKey, err error) {
	before := s.Epoch.Load()
	err = s.Pool.Read(ctx, func(c db.Conn) error { return s.s.prepare(ctx, c, before) })
	return s.s.below, err
}
