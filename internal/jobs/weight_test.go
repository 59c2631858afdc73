// Weights: the sum stays under the limit, and every job gets its turn.

package jobs_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
)

const mib = 1 << 20

// Sixty-four jobs of 1 to 64 MiB under 256.
func TestWeightsStayUnderTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		var mu sync.Mutex
		var held, peak int64
		b := start(t, nil, jobs.Options{Workers: 64, Kinds: []jobs.Kind{{Name: "import files", Run: func(_ context.Context, r *jobs.Run) error {
			w := r.Job().Weight
			mu.Lock()
			held += w
			peak = max(peak, held)
			mu.Unlock()
			<-time.After(time.Duration(w/mib) * 100 * time.Millisecond)
			mu.Lock()
			held -= w
			mu.Unlock()
			return nil
		}}}})
		defer b.stop()
		begin, total := time.Now(), int64(0)
		for range 64 {
			w := int64(1+rng.IntN(64)) * mib
			total += w / mib * w
			b.add(understudy.Job{Kind: "import files", Weight: w})
		}
		for b.Stats().Done < 64 {
			time.Sleep(100 * time.Millisecond)
			if time.Since(begin) > time.Hour {
				t.Fatalf("%+v", b.Stats())
			}
		}
		// What it takes at least if memory were never idle.
		ideal := time.Duration(float64(total) / (256 * mib) * float64(100*time.Millisecond))
		t.Logf("peak %d MiB, %v, %v at best", peak/mib, time.Since(begin), ideal)
		if peak > 256*mib || peak < 200*mib {
			t.Errorf("peak %d MiB", peak/mib)
		}
		if time.Since(begin) > 2*ideal {
			t.Errorf("it took %v, %v at best", time.Since(begin), ideal)
		}
		if s := b.Stats(); s.Weight != 0 || s.Gathering != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A stream of small ones does not keep a big one out; while it runs they wait
// for nothing but one another.
func TestBigAndSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begun := map[int64]time.Time{}
		b := start(t, nil, jobs.Options{Workers: 40, Kinds: []jobs.Kind{{Name: "work", Run: func(_ context.Context, r *jobs.Run) error {
			mu.Lock()
			begun[r.Job().Number] = time.Now()
			mu.Unlock()
			d := time.Second
			if r.Job().Weight > 100*mib {
				d = time.Minute
			}
			<-time.After(d)
			return nil
		}}}})
		defer b.stop()
		added, big := map[int64]time.Time{}, int64(0)
		add := func(w int64) (n int64) {
			n = b.add(understudy.Job{Kind: "work", Weight: w})
			added[n] = time.Now()
			return n
		}
		for i := range 1000 { // 25 MiB every 100 ms, a second each: full, and never less
			if i == 100 {
				big = add(200 * mib)
			}
			mu.Lock()
			gathers := begun[big].IsZero()
			mu.Unlock()
			if gathers {
				add(25 * mib)
			} else if i%5 == 0 {
				add(10 * mib) // as many as there is room for
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if wait := begun[big].Sub(added[big]); begun[big].IsZero() || wait > 10*time.Second {
			t.Fatalf("the big one waited %v", wait)
		}
		beside, slow := 0, time.Duration(0)
		for n, at := range added {
			if begun[n].IsZero() {
				t.Errorf("job %d was never begun", n)
			}
			if in := at.Sub(begun[big]); n != big && in > 2*time.Second && in < time.Minute {
				beside++
				slow = max(slow, begun[n].Sub(at))
			}
		}
		t.Logf("the big one waited %v; %d small ones came while it ran and waited %v at most", begun[big].Sub(added[big]), beside, slow)
		if beside < 50 || slow > 2*time.Second {
			t.Errorf("%d small ones beside the big one, %v at most", beside, slow)
		}
	})
}

// Four heavy ones wait for one another; light ones go on beside them.
func TestHeavyOnesDoNotTakeAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{
			{Name: "heavy", Weight: 250 * mib, Run: func(context.Context, *jobs.Run) error { <-gate; return nil }},
			{Name: "light", Run: func(context.Context, *jobs.Run) error { return nil }}}})
		defer b.stop()
		for range 20 {
			b.add(understudy.Job{Kind: "heavy"})
		}
		synctest.Wait()
		for range 100 {
			b.is(b.add(understudy.Job{Kind: "light"}), understudy.JobDone)
		}
		close(gate)
		synctest.Wait()
		if s := b.Stats(); s.Done != 120 {
			t.Errorf("%+v", s)
		}
	})
}

// A wait ends after the time for which a body may stay in the socket.
const patience = 45 * time.Second

// wait weighs with that patience.
func wait(ctx context.Context, weigh func(context.Context, int64) error, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return weigh(ctx, bytes)
}

// A run that turns out heavier waits for memory and goes on.
func TestWeigh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, runs := make(chan struct{}), 0
		b := start(t, nil, jobs.Options{Memory: 100 * mib, Kinds: []jobs.Kind{
			{Name: "beside", Weight: 60 * mib, Run: func(context.Context, *jobs.Run) error { <-gate; return nil }},
			{Name: "grows", Weight: 8 * mib, Run: func(ctx context.Context, r *jobs.Run) error {
				runs++
				weigh := r.Weigher()
				for _, w := range []int64{10 * mib, 40 * mib, 5 * mib, 0, 70 * mib, 30 * mib} {
					if err := wait(ctx, weigh, w); err != nil {
						return err
					}
				}
				return nil
			}}}})
		defer b.stop()
		beside := b.add(understudy.Job{Kind: "beside"})
		b.is(beside, understudy.JobRunning)
		n := b.add(understudy.Job{Kind: "grows"})
		time.Sleep(30 * time.Second)
		b.is(n, understudy.JobRunning)
		if s := b.Stats(); s.Gathering != 1 || s.Weight != 60*mib {
			t.Errorf("%+v", s)
		}
		close(gate)
		j := b.is(n, understudy.JobDone)
		checktest.Equal(t, j.Attempt, 1, "j.Attempt")
		checktest.Equal(t, j.UncountedRuns, 0, "j.UncountedRuns")
		checktest.Equal(t, runs, 1, "runs")
		{
			s := b.Stats()
			checktest.Equal(t, s.Weight, 0, "s.Weight")
			checktest.Equal(t, s.Again, 0, "s.Again")
			checktest.Equal(t, s.Gathering, 0, "s.Gathering")
		}
	})
}

// Sixty-four runs hold the head of an answer each, and some of them a part of its body
// that turns out longer than expected. Whatever they hold, one of them gets on, and
// none begins again: row 30.
func TestRunsThatWaitNeverStand(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			var mu sync.Mutex
			begun := 0
			b := start(t, nil, jobs.Options{Workers: 64, Memory: 128 * mib, CollectGarbage: func() {},
				Kinds: []jobs.Kind{{Name: "import page", Weight: 8 * mib, Run: func(ctx context.Context, r *jobs.Run) error {
					mu.Lock()
					begun++
					pages := make([][]int64, 1+rng.IntN(3))
					for i := range pages {
						for range 1 + rng.IntN(3) {
							pages[i] = append(pages[i], int64(1+rng.IntN(128))*mib)
						}
					}
					itself := int64(rng.IntN(3)*rng.IntN(30)) * mib // such as the ids a sweep gathers
					mu.Unlock()
					if itself > 0 {
						if err := r.Weigh(ctx, itself); err != nil {
							return err
						}
					}
					errs := make(chan error, len(pages))
					for _, weights := range pages { // pages of a run are on their way at once
						weigh := r.Weigher()
						go func() {
							for _, w := range weights {
								<-time.After(100 * time.Millisecond)
								if err := weigh(ctx, w); err != nil {
									errs <- err
									return
								}
							}
							errs <- weigh(ctx, 0)
						}()
					}
					var err error
					for range pages {
						err = errors.Join(err, <-errs)
					}
					return err
				}}}})
			defer b.stop()
			for range 64 {
				b.add(understudy.Job{Kind: "import page"})
			}
			for at := time.Now(); b.Stats().Done < 64; time.Sleep(time.Second) {
				if time.Since(at) > time.Hour {
					t.Fatalf("%+v", b.Stats())
				}
			}
			s := b.Stats()
			checktest.Equal(t, begun, 64, "begun")
			checktest.Equal(t, s.Again, 0, "s.Again")
			checktest.Equal(t, s.Weight, 0, "s.Weight")
			checktest.Equal(t, s.Gathering, 0, "s.Gathering")
		})
	}
}

// A run that has waited long enough begins again when there is memory, which costs no
// attempt and has a bound.
func TestWeighIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, gate := 0, make(chan struct{})
		b := start(t, nil, jobs.Options{Memory: 100 * mib, Kinds: []jobs.Kind{
			{Name: "beside", Weight: 5 * mib, Run: func(context.Context, *jobs.Run) error { <-gate; return nil }},
			{Name: "grows", Run: func(ctx context.Context, r *jobs.Run) error {
				runs++
				return errors.Join(errors.New("walk: page 9"), wait(ctx, r.Weigher(), 99*mib))
			}}}})
		defer b.stop()
		b.add(understudy.Job{Kind: "beside"})
		n := b.add(understudy.Job{Kind: "grows"})
		time.Sleep(time.Hour)
		// It waits for memory that never comes; it does not spin.
		j := b.is(n, understudy.JobRunning)
		checktest.Equal(t, runs, 1, "runs")
		checktest.Equal(t, j.Weight, 99*mib, "j.Weight")
		checktest.Equal(t, j.Attempt, 1, "j.Attempt")
		checktest.Equal(t, j.UncountedRuns, 1, "j.UncountedRuns")
		if s := b.Stats(); s.Gathering != 1 || s.Weight != 5*mib {
			t.Errorf("%+v", s)
		}
		close(gate)
		synctest.Wait()
		if runs < 2 {
			t.Errorf("%d runs", runs)
		}
	})
}

// What is heavier than all there is fails at once and names the setting.
func TestWeighTooHeavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, nil, jobs.Options{Memory: 100 * mib, Kinds: []jobs.Kind{
			{Name: "grows", Run: func(ctx context.Context, r *jobs.Run) error { return wait(ctx, r.Weigher(), 101*mib) }}}})
		defer b.stop()
		if j := b.is(b.add(understudy.Job{Kind: "grows"}), understudy.JobFailed); !strings.Contains(j.Error,
			"jobs.memory (100 MiB); raise jobs.memory") {
			t.Errorf("%+v", j)
		}
	})
}

// At most once is at most once, also for a job that is too heavy.
func TestWeighAtMostOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := start(t, nil, jobs.Options{Memory: 100 * mib, Kinds: []jobs.Kind{
			{Name: "beside", Weight: 60 * mib, Run: func(context.Context, *jobs.Run) error { <-gate; return nil }},
			{Name: "once", Once: true, Run: func(ctx context.Context, r *jobs.Run) error { return wait(ctx, r.Weigher(), 50*mib) }}}})
		defer b.stop()
		defer close(gate)
		b.add(understudy.Job{Kind: "beside"})
		synctest.Wait()
		n := b.add(understudy.Job{Kind: "once"})
		time.Sleep(time.Minute)
		if j := b.is(n, understudy.JobFailed); j.Attempt != 1 {
			t.Errorf("%+v", j)
		}
	})
}
