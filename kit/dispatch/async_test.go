// Async: bounds, order, exact counts, and ends.

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
)

// A subscriber that is stuck delays no other, and its loss is counted exactly.
func TestASlowOneDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int](Options{})
		free := make(chan struct{})
		var slow, quick []int
		s := b.SubscribeAsync(Async[int]{Queue: 10, Call: func(_ context.Context, e int) error {
			<-free
			slow = append(slow, e)
			return nil
		}})
		b.Subscribe(func(_ context.Context, e int) error { quick = append(quick, e); return nil })
		began := time.Now()
		for e := range 100 {
			if err := b.Dispatch(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if took := time.Since(began); took != 0 || len(quick) != 100 {
			t.Errorf("%d heard in %v", len(quick), took)
		}
		if s.LostCount() != 89 { // one is in the call, ten wait
			t.Errorf("%d lost", s.LostCount())
		}
		close(free)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(slow) != "[0 1 2 3 4 5 6 7 8 9 10]" || s.Stats() != (Stats{Offered: 100, Called: 11, Lost: 89}) {
			t.Errorf("heard %v, %+v", slow, s.Stats())
		}
	})
}

func TestBlockWaitsForRoomUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int](Options{})
		var heard []int
		s := b.SubscribeAsync(Async[int]{Queue: 1, Policy: Block, Call: func(_ context.Context, e int) error {
			time.Sleep(time.Second)
			heard = append(heard, e)
			return nil
		}})
		began := time.Now()
		for e := range 4 {
			if err := b.Dispatch(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("four events took %v: one runs and one waits at once", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := b.Dispatch(ctx, 4); !errors.Is(err, context.DeadlineExceeded) || s.LostCount() != 1 {
			t.Errorf("%v, %d lost", err, s.LostCount())
		}
		if err := b.Close(t.Context()); err != nil || fmt.Sprint(heard) != "[0 1 2 3]" {
			t.Errorf("%v, heard %v", err, heard)
		}
	})
}

// Closing releases senders that wait for space.
func TestCloseFreesWhoWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int](Options{})
		free := make(chan struct{})
		s := b.SubscribeAsync(Async[int]{Queue: 1, Policy: Block, Call: func(context.Context, int) error { <-free; return nil }})
		var wg sync.WaitGroup
		for e := range 3 {
			wg.Go(func() {
				if err := b.Dispatch(t.Context(), e); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		s.Close()
		wg.Wait()
		select {
		case <-s.EndChannel():
			t.Error("done while a call runs")
		default:
		}
		close(free)
		<-s.EndChannel()
		if s.Stats() != (Stats{Offered: 3, Called: 1, Lost: 2}) {
			t.Errorf("%+v", s.Stats())
		}
	})
}

// Several workers keep the events of a key in order, and run those of
// different keys beside each other.
func TestOrderOfAKey(t *testing.T) {
	const keys, events = 20, 100
	b := New[[2]int](Options{})
	var last [keys]int
	var at, most atomic.Int64
	var wide sync.Once
	together := make(chan struct{})
	s := b.SubscribeAsync(Async[[2]int]{
		Workers: 4, Policy: Block, Queue: 3,
		Key: func(e [2]int) string { return fmt.Sprint("key ", e[0]) },
		Call: func(_ context.Context, e [2]int) error {
			most.Store(max(most.Load(), at.Add(1)))
			if at.Load() > 1 {
				wide.Do(func() { close(together) })
			}
			<-together // nothing goes on until two run at once
			defer at.Add(-1)
			if e[1] != last[e[0]]+1 { // a race when two calls of a key run at once
				return fmt.Errorf("key %d: %d came after %d", e[0], e[1], last[e[0]])
			}
			last[e[0]] = e[1]
			return nil
		},
		Failed: func(_ [2]int, err error) { t.Error(err) },
	})
	for n := 1; n <= events; n++ {
		for k := range keys {
			if err := b.Dispatch(t.Context(), [2]int{k, n}); err != nil {
				t.Fatal(err)
			}
		}
	}
	{
		err := b.Close(t.Context())
		checktest.MustNoError(t, err, "")
		checktest.Equal(t, s.Stats(), (Stats{Offered: keys * events, Called: keys * events}), "s.Stats()")
		checktest.True(t, most.Load() <= 4, "most.Load() is %v, want <= 4", most.Load())
	}
}

// At its deadline Close drops waiting events and cancels running calls; its error
// counts calls that do not end.
func TestCloseAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int](Options{Grace: time.Second})
		obedient := b.SubscribeAsync(Async[int]{Call: func(ctx context.Context, _ int) error { <-ctx.Done(); return nil }})
		free := make(chan struct{})
		stubborn := b.SubscribeAsync(Async[int]{Call: func(context.Context, int) error { <-free; return nil }})
		for e := range 5 {
			if err := b.Dispatch(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := b.Close(ctx)
		took := time.Since(began)
		checktest.Equal(t, took, time.Minute+time.Second, "took; %v", err)
		checktest.True(t, errors.Is(err, context.DeadlineExceeded), "err is %v, want context.DeadlineExceeded", err)
		checktest.Contains(t, err.Error(), "1 calls go on", "err.Error()")
		if obedient.Stats() != (Stats{Offered: 5, Called: 1, Lost: 4}) {
			t.Errorf("%+v", obedient.Stats())
		}
		close(free)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if stubborn.Stats() != (Stats{Offered: 5, Called: 1, Lost: 4}) {
			t.Errorf("%+v", stubborn.Stats())
		}
		if err := b.Dispatch(t.Context(), 6); err != nil {
			t.Error(err)
		}
		<-b.Subscribe(func(context.Context, int) error { t.Error("called on a closed bus"); return nil }).EndChannel()
		<-b.SubscribeAsync(Async[int]{}).EndChannel()
	})
}

func TestAsyncFailures(t *testing.T) {
	var told strings.Builder
	b := New[int](Options{Logger: slog.New(slog.NewTextHandler(&told, nil))})
	var failed []string
	s := b.SubscribeAsync(Async[int]{
		Call: func(_ context.Context, e int) error {
			switch e {
			case 0:
				return errors.New("no")
			case 1:
				panic("oh")
			case 2:
				return ErrStop
			}
			return nil
		},
		Failed: func(e int, err error) {
			failed = append(failed, fmt.Sprint(e, " ", err))
			panic("this one too")
		},
	})
	quiet := b.SubscribeAsync(Async[int]{Call: func(_ context.Context, e int) error {
		if e == 3 {
			return errors.New("three")
		}
		return nil
	}})
	gone := b.SubscribeAsync(Async[int]{Workers: 2, Call: func(context.Context, int) error { runtime.Goexit(); return nil }})
	for e := range 4 {
		if err := b.Dispatch(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	<-gone.EndChannel()
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(failed) != "[0 no 1 dispatch: panic: oh]" || s.Stats() != (Stats{Offered: 4, Called: 4, Failed: 2}) {
		t.Errorf("%v, %+v", failed, s.Stats())
	}
	checktest.Equal(t, strings.Count(told.String(), "\n"), 1, `logged: strings.Count(told.String(), "\n")`)
	checktest.Contains(t, told.String(), "three", "logged: told.String()")
	checktest.Equal(t, quiet.Stats().Failed, 1, "logged: quiet.Stats().Failed")
	if st := gone.Stats(); st.Called < 1 || st.Called+st.Lost != st.Offered {
		t.Errorf("%+v", st)
	}
}

// Everything at once: whatever is dispatched, closed and subscribed at the
// same time, each event a subscriber was offered is called or lost.
func TestCountsAreExact(t *testing.T) {
	for _, policy := range []Policy{Drop, Block} {
		b := New[int](Options{})
		var mu sync.Mutex
		var subs []*Subscription
		var calls []*atomic.Int64
		subscribe := func() {
			n := new(atomic.Int64)
			s := b.SubscribeAsync(Async[int]{
				Queue: 1 + rand.N(4), Policy: policy, Workers: 1 + rand.N(3), Key: func(e int) string { return string(rune('a' + e%7)) },
				Call: func(context.Context, int) error { n.Add(1); return nil },
			})
			mu.Lock()
			defer mu.Unlock()
			subs, calls = append(subs, s), append(calls, n)
		}
		subscribe()
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for e := range 500 {
					if err := b.Dispatch(t.Context(), e); err != nil {
						t.Error(err)
					}
					if e%50 == g {
						subscribe()
					}
					if e%50 == g+20 {
						mu.Lock()
						s := subs[rand.N(len(subs))]
						mu.Unlock()
						s.Close()
					}
				}
			})
		}
		wg.Wait()
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, s := range subs {
			<-s.EndChannel()
			if st := s.Stats(); st.Called+st.Lost != st.Offered || st.Called != calls[i].Load() {
				t.Errorf("policy %d: %+v, %d calls", policy, st, calls[i].Load())
			}
		}
	}
}
