// Slow records: lists that take long to make, for one reader and for many.

package mirror

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/mirror/compose"
	"understudy/mirror/shadow"
	"understudy/request"
)

func TestTheSameListIsMadeOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowSeek{}
		s, _ := covered(t, 7, pinned(shadow.Records), over(func(st Store) Store {
			slow.Store, slow.records = st, st.(compose.Store)
			return slow
		}))
		target := s.newest(t)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { want(t, s.get(t, target), request.Composed, "composed") })
		}
		wg.Wait()
		if slow.seeks != 1 {
			t.Errorf("the records were read %d times for 50 readers", slow.seeks)
		}
	})
}

// Records that take very long to look through are not waited for while upstream
// can be asked.
func TestATooSlowStoreIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowSeek{takes: 7 * time.Second}
		s, _ := covered(t, 7, pinned(shadow.Records), over(func(st Store) Store {
			slow.Store, slow.records = st, st.(compose.Store)
			return slow
		}))
		began := time.Now()
		want(t, s.get(t, s.target(t, "Calls.json", "Status=completed")), request.Cold, "")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the answer took %v", took)
		}
	})
}

// A reader that gives up while upstream wants no request is told when it may come again.
func TestWhoGivesUpWhileUpstreamIsLimitedIsToldWhenToComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 7)
		s.script(func() {
			s.fail = func(_ int, f request.Fetch) error {
				limited := &understudy.UpstreamError{Why: understudy.FailLimited, Status: 429, RetryAfter: 5 * time.Second}
				f.OnRetry(limited)
				time.Sleep(limited.RetryAfter)
				return limited
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := s.Answer(ctx, request.Request{Target: s.target(t, "Calls.json", "Status=completed")})
		var failure *understudy.UpstreamError
		checktest.MustTrue(t, errors.As(err, &failure), "%v: errors.As(err, &failure) is false", err)
		checktest.True(t, failure.RetryAfter > 3*time.Second, "%v: failure.RetryAfter is %v", err,
			failure.RetryAfter)
		checktest.True(t, failure.RetryAfter < 5*time.Second, "%v: failure.RetryAfter is %v", err,
			failure.RetryAfter)
	})
}

// Who waits longer, because upstream has failed, does not end with who still can
// ask it.
func TestPatienceIsNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowSeek{takes: 3 * time.Second}
		s, _ := covered(t, 7, pinned(shadow.Records), over(func(st Store) Store {
			slow.Store, slow.records = st, st.(compose.Store)
			return slow
		}))
		s.script(func() {
			s.fail = func(int, request.Fetch) error {
				return &understudy.UpstreamError{Why: understudy.FailServer, Status: 503}
			}
		})
		target := s.target(t, "Calls.json", "Status=completed")
		var wg sync.WaitGroup
		for _, late := range []time.Duration{0, 1500 * time.Millisecond} { // the second looks while the first has failed
			wg.Go(func() {
				time.Sleep(late)
				want(t, s.get(t, target), request.Composed, "composed: upstream 503")
			})
		}
		wg.Wait()
	})
}

// slowSeek is a store that takes its time.
type slowSeek struct {
	Store
	records compose.Store
	takes   time.Duration // 0: a tenth of a second
	mu      sync.Mutex
	seeks   int
}

// valuesOf returns the values that a store keeps, also when it is a slow one.
func valuesOf(s Store) understudy.KV {
	if slow, ok := s.(*slowSeek); ok {
		s = slow.Store
	}
	return s.(*store.DB).KV
}

func (s *slowSeek) FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	return s.records.FindPlace(ctx, source, kind, id)
}

func (s *slowSeek) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	s.mu.Lock()
	s.seeks++
	s.mu.Unlock()
	select {
	case <-time.After(cmp.Or(s.takes, 100*time.Millisecond)):
		return s.records.Seek(ctx, q, yield)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// What records tell is planned when upstream gives nothing, not beside every
// request to it. Samples are planned too, after upstream's answer.
func TestFallbackIsPlannedWhenNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Upstream))
		planned := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.asked
		}
		before, beside := planned(), -1
		s.script(func() {
			s.fail = func(int, request.Fetch) error {
				time.Sleep(time.Second)
				if beside < 0 {
					beside = planned() - before
				}
				return nil
			}
		})
		s.get(t, s.target(t, "Calls.json", "Status=completed"))
		if beside != 0 {
			t.Errorf("planned %d times while upstream was asked", beside)
		}
		s.script(func() {
			s.fail = func(int, request.Fetch) error { return &understudy.UpstreamError{Why: understudy.FailDown} }
		})
		before = planned()
		a := s.get(t, s.target(t, "Calls.json", "Status=busy"))
		if n := planned() - before; a.Outcome != request.Composed || n == 0 {
			t.Errorf("without upstream %v, planned %d times", a.Outcome, n)
		}
	})
}
