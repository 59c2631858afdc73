// Weighted: never above the limit, every load gets in, no load waits that fits.

package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"understudy/internal/checktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Light ones run beside a heavy one that gathers, a bounded number of times.
func TestLightOnesPassAHeavyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Limit: 100, Overtake: 3})
		first := s.TryAcquire(60)
		var heavy *Load
		go func() { heavy, _ = s.Acquire(t.Context(), 90) }()
		synctest.Wait()
		passed := 0
		for range 10 {
			if l := s.TryAcquire(10); l != nil {
				passed++
				l.Release()
			}
		}
		synctest.Wait()
		if passed != 3 || heavy != nil {
			t.Fatalf("%d passed the heavy one, which holds %v", passed, heavy)
		}
		first.Release()
		synctest.Wait()
		if heavy.Weight() != 90 {
			t.Fatal("the heavy one is not in though nothing else is held")
		}
		beside := s.TryAcquire(10)
		if st := s.Stats(); st != (Stats{Limit: 100, Held: 100, Loads: 2, Peak: 100, Admitted: 6, Overtaken: 3}) {
			t.Errorf("%+v", st)
		}
		beside.Release()
		heavy.Release()
		heavy.Release()
		if st := s.Stats(); st.Held != 0 || st.Loads != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// The bound holds too when many are let in at one go.
func TestPassingAtOneGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Limit: 100, Overtake: 2})
		most, rest := s.TryAcquire(60), s.TryAcquire(40)
		var in atomic.Int64
		for i := range 6 {
			weight := int64(10)
			if i == 0 {
				weight = 90
			}
			go func() {
				if _, err := s.Acquire(t.Context(), weight); err == nil {
					in.Add(weight)
				}
			}()
			synctest.Wait()
		}
		rest.Release()
		synctest.Wait()
		if in.Load() != 20 {
			t.Errorf("%d are in, want two of 10", in.Load())
		}
		most.Release()
		synctest.Wait()
		if in.Load() != 20 {
			t.Errorf("%d are in, want none before the heavy one", in.Load())
		}
		if st := s.Stats(); st.Waiting != 4 || st.Overtaken != 2 {
			t.Errorf("%+v", st)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if _, err := s.Acquire(stopped, 1); err == nil {
			t.Error("let in with a context that had ended")
		}
	})
}

func TestHeavierThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := New(Options{Limit: 100, Refuse: true})
		if l, err := strict.Acquire(t.Context(), 101); !errors.Is(err, ErrTooHeavy) || l != nil {
			t.Errorf("%v, %v", l, err)
		}
		if l := strict.TryAcquire(math.MaxInt64); l != nil {
			t.Error("a load heavier than the limit is in")
		}
		if l := strict.TryAcquire(100); l == nil || l.TryGrow(1) {
			t.Error("100 of 100 do not fit, or grow")
		}

		s := New(Options{Limit: 100})
		light := s.TryAcquire(0)
		var alone *Load
		go func() { alone, _ = s.Acquire(t.Context(), 1000) }()
		synctest.Wait()
		if alone != nil {
			t.Fatal("a load heavier than the limit is not alone")
		}
		light.Release()
		synctest.Wait()
		checktest.Equal(t, alone.Weight(), 1000, "the heavy one holds: alone.Weight()")
		checktest.MustTrue(t, s.TryAcquire(0) == nil, "the heavy one holds: s.TryAcquire(0) != nil")
		checktest.True(t, alone.TryGrow(500), "the heavy one holds: alone.TryGrow(500) is false")
		if alone.TryGrow(math.MaxInt64) {
			t.Error("grew beyond every number")
		}
		alone.Shrink(1450)
		beside := s.TryAcquire(50)
		if beside == nil || alone.TryGrow(1) {
			t.Errorf("%+v", s.Stats())
		}
		alone.Shrink(math.MaxInt64)
		alone.Release()
		if alone.TryGrow(1) || s.Stats().Held != 50 {
			t.Errorf("%+v", s.Stats())
		}
	})
}

func TestAContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Limit: 10, Overtake: -1})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Acquire(gone, 1); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		held := s.TryAcquire(5)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var behind *Load
		var wg sync.WaitGroup
		wg.Go(func() {
			if l, err := s.Acquire(ctx, 10); !errors.Is(err, context.DeadlineExceeded) || l != nil {
				t.Errorf("%v, %v", l, err)
			}
		})
		synctest.Wait()
		wg.Go(func() { behind, _ = s.Acquire(t.Context(), 5) })
		synctest.Wait()
		if st := s.Stats(); st.Waiting != 2 || st.WaitingWeight != 15 {
			t.Errorf("without overtaking both wait: %+v", st)
		}
		wg.Wait()
		if behind.Weight() != 5 || s.Stats().GaveUp != 1 {
			t.Errorf("who waited behind one that gave up is not in: %+v", s.Stats())
		}
		held.Release()
		behind.Release()
	})
}

// step is one thing that happens to a semaphore in a random story.
type step struct {
	What   int   // come, come without waiting, release, grow, shrink, give up
	Which  int   // of those there are
	Weight int64 // of what comes, or the difference
}

// guest is one load or one that waits for being let in.
type guest struct {
	weight   int64
	stop     context.CancelFunc
	load     *Load
	err      error
	overtook int // how often later ones were let in while it waited
}

func TestStories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{
			Limit:    rapid.Int64Range(0, 100).Draw(rt, "limit"),
			Overtake: rapid.IntRange(-1, 4).Draw(rt, "overtake"),
			Refuse:   rapid.Bool().Draw(rt, "refuse"),
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{rapid.SampledFrom([]int{0, 0, 0, 1, 2, 2, 3, 4, 5}).Draw(rt, "what"), rapid.IntRange(0, 20).Draw(rt, "which"),
				rapid.Int64Range(-1, 120).Draw(rt, "weight")}
		}), 0, 60).Draw(rt, "steps")
		var wrong error
		synctest.Test(t, func(t *testing.T) { wrong = tell(t.Context(), o, steps) })
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}

// tell runs a story and says what is wrong with it.
func tell(ctx context.Context, o Options, steps []step) error {
	h := fixture{o: o, s: New(o)}
	for i, st := range steps {
		h.do(ctx, st)
		synctest.Wait()
		if err := h.check(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	// A waiter gets in when the held loads are released.
	for range len(h.guests) + 1 {
		for _, g := range h.in() {
			g.load.Release()
		}
		synctest.Wait()
		if err := h.check(); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
	}
	for _, g := range h.guests {
		if g.load == nil && g.err == nil {
			return fmt.Errorf("one of %d starved", g.weight)
		}
		g.stop()
	}
	return nil
}

// fixture is a semaphore and all its loads.
type fixture struct {
	o      Options
	s      *Weighted
	guests []*guest
	order  []int // guests as they were let in
}

// in are the loads that were let in; some have left.
func (h *fixture) in() []*guest {
	return slices.DeleteFunc(slices.Clone(h.guests), func(g *guest) bool { return g.load == nil })
}

func (h *fixture) do(ctx context.Context, st step) {
	in := h.in()
	waiting := slices.DeleteFunc(slices.Clone(h.guests), func(g *guest) bool { return g.load != nil || g.err != nil })
	switch {
	case st.What == 0:
		ctx, stop := context.WithCancel(ctx)
		g := &guest{weight: max(st.Weight, 0), stop: stop}
		h.guests = append(h.guests, g)
		go func() { g.load, g.err = h.s.Acquire(ctx, st.Weight) }()
	case st.What == 1:
		if l := h.s.TryAcquire(st.Weight); l != nil {
			h.guests = append(h.guests, &guest{weight: max(st.Weight, 0), stop: func() {}, load: l})
		}
	case st.What == 5 && len(waiting) > 0:
		waiting[st.Which%len(waiting)].stop()
	case len(in) == 0:
	case st.What == 2:
		in[st.Which%len(in)].load.Release()
	case st.What == 3:
		in[st.Which%len(in)].load.TryGrow(st.Weight)
	case st.What == 4:
		in[st.Which%len(in)].load.Shrink(st.Weight)
	}
}

func (h *fixture) check() error {
	for i, g := range h.guests { // let in by the last step: they overtook those who came before and wait
		if g.load == nil || slices.Contains(h.order, i) {
			continue
		}
		h.order = append(h.order, i)
		for _, ahead := range h.guests[:i] {
			if ahead.load == nil && ahead.err == nil {
				ahead.overtook++
			}
		}
	}
	var sum int64
	loads := 0
	for _, g := range h.guests {
		if g.load != nil && !g.load.released {
			sum += g.load.Weight()
			loads++
		}
	}
	st := h.s.Stats()
	if st.Held != sum || st.Loads != loads {
		return fmt.Errorf("%d loads of %d, but %+v", loads, sum, st)
	}
	if sum > h.o.Limit && (loads > 1 || h.o.Refuse) {
		return fmt.Errorf("%d loads hold %d of %d", loads, sum, h.o.Limit)
	}
	bound := map[bool]int{true: h.o.Overtake, false: 0}[h.o.Overtake > 0]
	if h.o.Overtake == 0 {
		bound = 32
	}
	first := true
	for _, g := range h.guests {
		if g.load != nil || g.err != nil {
			continue
		}
		if g.overtook > bound {
			return fmt.Errorf("one of %d was overtaken %d times", g.weight, g.overtook)
		}
		if first && (g.weight+sum <= h.o.Limit || loads == 0) {
			return fmt.Errorf("one of %d waits at the head, while %d of %d are held", g.weight, sum, h.o.Limit)
		}
		first = false
	}
	return nil
}

// Everything at once, with real goroutines: what is held stays under the limit
// at every moment, and all get through.
func TestAtOnce(t *testing.T) {
	s := New(Options{Limit: 1000, Refuse: true})
	var held, most, heaviest atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 300 {
				weight := rand.Int64N(30)
				if rand.N(20) == 0 {
					weight = 900 + rand.Int64N(101)
				}
				ctx, stop := context.WithCancel(t.Context())
				if rand.N(10) == 0 {
					stop()
				}
				l, err := s.Acquire(ctx, weight)
				stop()
				if err != nil {
					continue
				}
				if weight >= 900 {
					heaviest.Add(1)
				}
				most.Store(max(most.Load(), held.Add(weight)))
				if l.TryGrow(10) {
					l.Shrink(10)
				}
				runtime.Gosched()
				held.Add(-weight)
				l.Release()
			}
		})
	}
	wg.Wait()
	st := s.Stats()
	checktest.True(t, most.Load() <= 1000, "most.Load() is %v, want <= 1000", most.Load())
	checktest.True(t, st.Peak <= 1000, "st.Peak is %v, want <= 1000", st.Peak)
	checktest.Equal(t, st.Held, 0, "st.Held")
	checktest.Equal(t, st.Loads, 0, "st.Loads")
	checktest.Equal(t, st.Waiting, 0, "st.Waiting")
	checktest.True(t, heaviest.Load() != 0, "heaviest.Load() is 0")
}

func BenchmarkAcquire(b *testing.B) {
	s, ctx := New(Options{Limit: 1000}), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		l, err := s.Acquire(ctx, 10)
		if err != nil {
			b.Fatal(err)
		}
		l.Release()
	}
}
