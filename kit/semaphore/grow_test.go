// Grow: loads that wait while they hold something never wait for each other.

package semaphore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
)

// All holders wait to grow, and none could give anything back: one grows beyond the
// limit, the others after it.
func TestEverybodyGrowsAndNobodyIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Limit: 100, Refuse: true})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				l, err := s.Acquire(t.Context(), 25)
				if err != nil {
					t.Error(err)
					return
				}
				defer l.Release()
				time.Sleep(time.Second) // until all four are in
				if err := l.Grow(t.Context(), int64(20+i)); err != nil || l.Weight() != int64(45+i) {
					t.Errorf("%v, %d", err, l.Weight())
				}
				time.Sleep(time.Second)
			})
		}
		all.Wait() // a bubble in which all wait for ever fails by itself
		st := s.Stats()
		checktest.Equal(t, st.Held, 0, "st.Held")
		checktest.Equal(t, st.Loads, 0, "st.Loads")
		checktest.Equal(t, st.Waiting, 0, "st.Waiting")
		checktest.Equal(t, st.OverLimit, 1, "st.OverLimit")
		checktest.Equal(t, st.Peak, 120, "st.Peak")
	})
}

// Whatever loads do, as long as each is released when it has grown, all get
// through; beyond the limit is the growth of one at most, which no load's own
// weight exceeds.
func TestGrowthNeverStands(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			const limit = 1000
			s := New(Options{Limit: limit, Refuse: true, Overtake: int(seed%5) - 1})
			var all sync.WaitGroup
			for range 2 + rng.IntN(30) {
				first, steps, pause := int64(1+rng.IntN(600)), rng.IntN(4), time.Duration(rng.IntN(1000))*time.Millisecond
				grow := make([]int64, steps)
				for i := range grow {
					grow[i] = int64(rng.IntN(400))
				}
				patience := time.Hour
				if rng.IntN(4) == 0 {
					patience = time.Duration(rng.IntN(2000)) * time.Millisecond
				}
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					time.Sleep(pause)
					l, err := s.Acquire(ctx, first)
					if err != nil {
						return
					}
					defer l.Release()
					for _, by := range grow {
						time.Sleep(pause)
						before := l.Weight()
						err := l.Grow(ctx, by)
						switch {
						case err == nil && l.Weight() != before+by, err != nil && l.Weight() != before:
							t.Errorf("%v: %d and %d are %d", err, before, by, l.Weight())
						case errors.Is(err, ErrTooHeavy) && before+by <= limit:
							t.Error(err)
						}
						if err != nil {
							return
						}
					}
				})
			}
			all.Wait()
			st := s.Stats()
			checktest.Equal(t, st.Held, 0, "seed %d: st.Held", seed)
			checktest.Equal(t, st.Loads, 0, "seed %d: st.Loads", seed)
			checktest.Equal(t, st.Waiting, 0, "seed %d: st.Waiting", seed)
			checktest.Equal(t, s.blocked, 0, "seed %d: s.blocked", seed)
			checktest.MustTrue(t, s.overLimit == nil, "seed %d: s.overLimit is %v", seed, s.overLimit)
			checktest.True(t, st.Peak <= 2*limit, "seed %d: st.Peak is %v", seed, st.Peak)
		})
	}
}

func TestAReleasedLoadDoesNotGrow(t *testing.T) {
	s := New(Options{Limit: 10})
	l := s.TryAcquire(5)
	l.Release()
	if err := l.Grow(t.Context(), 1); !errors.Is(err, ErrTooHeavy) {
		t.Error(err)
	}
	other := s.TryAcquire(5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	beside := s.TryAcquire(5)
	if err := other.Grow(ctx, 1); !errors.Is(err, context.Canceled) || other.Weight() != 5 {
		t.Errorf("%v, %d", err, other.Weight())
	}
	beside.Release()
	other.Release()
}

// Two holders of half of it each need a third more, as loads of their own.
func TestHoldersThatNeedAnotherLoadAreNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Limit: 100, Refuse: true})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				l, err := s.Acquire(t.Context(), 50)
				if err != nil {
					t.Error(err)
					return
				}
				defer l.Release()
				time.Sleep(time.Second)
				page, err := s.Acquire(t.Context(), 30, l)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				page.Release()
			})
		}
		begin := time.Now()
		all.Go(func() { // one that holds nothing comes after them
			time.Sleep(1500 * time.Millisecond)
			l, err := s.Acquire(t.Context(), 60)
			if err != nil || time.Since(begin) < 3*time.Second {
				t.Errorf("%v after %v", err, time.Since(begin))
				return
			}
			l.Release()
		})
		all.Wait()
		st := s.Stats()
		checktest.Equal(t, st.Held, 0, "st.Held")
		checktest.Equal(t, st.Loads, 0, "st.Loads")
		checktest.Equal(t, s.blocked, 0, "s.blocked")
		checktest.Equal(t, st.Peak, 130, "st.Peak")
		checktest.True(t, st.OverLimit >= 1, "st.OverLimit is %v, want >= 1", st.OverLimit)
	})
}
