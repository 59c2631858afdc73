// What is wrong with kevinburke/rickover, the queue we learned from, is absent
// here. One test for each:
//
//	its defect                                            the test that it is absent
//	a database error reads as "no attempts left, done"    TestAStoreErrorIsNoEnd
//	an archive that failed is reported as done            TestAnEndThatWasNotWrittenIsNotTaken
//	the jitter is always 0                                TestJitterIsReal
//	a late success archives a job begun again             TestALateEndIsRefused
//	concurrency holds in one process only                 TestConcurrencyHoldsOverProcesses
//	idle workers poll                                     TestIdleRunnersDoNotPoll
//	no heartbeat: a long run counts as stuck              TestALongRunIsHeardOf
//	no priorities                                         TestSoonGoesFirst
//	nothing periodic                                      TestPeriodicKindsSurviveRestarts
//	nothing unique                                        TestOneLiveJobAKey
//	no cancellation                                       TestCancelEndsARun
//	up to a second until a job starts                     TestAJobStartsAtOnce
//	claims lock row by row (no SKIP LOCKED)               TestOneStatementClaims, in internal/store
//	no page to see any of it                              TestJobsPage, in internal/viewer

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
	"understudy/internal/store"
	queue "understudy/internal/store/jobs"
	"understudy/internal/store/storetest"
)

// faulty is a store that fails on demand and counts what it is asked.
type faulty struct {
	*queue.Queue
	db    *store.DB
	mu    sync.Mutex
	fail  map[string]error
	calls map[string]int
}

func newFaulty(t testing.TB) *faulty {
	db := storetest.Open(t, store.Options{})
	return &faulty{Queue: db.Jobs, db: db, fail: map[string]error{}, calls: map[string]int{}}
}

func (f *faulty) call(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[name]++
	return f.fail[name]
}

func (f *faulty) set(err error, names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.fail[name] = err
	}
}

func (f *faulty) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		n += c
	}
	return n
}

func (f *faulty) ClaimJobs(ctx context.Context, want understudy.Claim) (understudy.Claimed, error) {
	err := f.call("claim")
	if err == nil && len(want.Ends) > 0 {
		err = f.call("end")
	}
	if err != nil {
		return understudy.Claimed{}, err
	}
	return f.Queue.ClaimJobs(ctx, want)
}

func (f *faulty) RenewLeases(ctx context.Context, beats ...understudy.Heartbeat) ([]understudy.HeartbeatReply, error) {
	if err := f.call("beat"); err != nil {
		return nil, err
	}
	return f.Queue.RenewLeases(ctx, beats...)
}

func (f *faulty) TrimJobs(ctx context.Context, keep int, before time.Time) (int, error) {
	if err := f.call("trim"); err != nil {
		return 0, err
	}
	return f.Queue.TrimJobs(ctx, keep, before)
}

var errFull = fmt.Errorf("%w: disk full", understudy.ErrNotStored)

// A store that cannot be read or written makes everything wait; no job ends by
// it, and the runner goes on by itself.
func TestAStoreErrorIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, runs := newFaulty(t), 0
		b := start(t, f.db, jobs.Options{Store: f, Kinds: []jobs.Kind{{Name: "work",
			Run: func(context.Context, *jobs.Run) error { runs++; return nil }}}})
		defer b.stop()
		f.set(errFull, "claim", "end", "beat", "trim")
		n := b.add(understudy.Job{Kind: "work"})
		time.Sleep(10 * time.Minute)
		if b.is(n, understudy.JobWaiting); runs != 0 || b.Stats().Trouble == "" {
			t.Fatalf("%d runs, %+v", runs, b.Stats())
		}
		if calls := f.total(); calls > 250 {
			t.Errorf("%d calls in ten minutes of trouble", calls)
		}
		f.set(nil, "claim", "end", "beat", "trim")
		time.Sleep(31 * time.Second)
		if b.is(n, understudy.JobDone); runs != 1 || b.Stats().Trouble != "" {
			t.Fatalf("%d runs, %+v", runs, b.Stats())
		}
	})
}

// A run that ended well while the store could not be written is done once it
// can, and not before; while the lease can be kept it is not done again.
func TestAnEndThatWasNotWrittenIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, runs := newFaulty(t), 0
		b := start(t, f.db, jobs.Options{Store: f, Kinds: []jobs.Kind{{Name: "work",
			Run: func(context.Context, *jobs.Run) error { runs++; return nil }}}})
		defer b.stop()
		f.set(errFull, "end")
		n := b.add(understudy.Job{Kind: "work"})
		time.Sleep(5 * time.Minute)
		if b.is(n, understudy.JobRunning); b.Stats().Done != 0 || runs != 1 {
			t.Fatalf("%+v", b.Stats())
		}
		f.set(nil, "end")
		time.Sleep(6 * time.Second)
		if b.is(n, understudy.JobDone); b.Stats().Done != 1 || runs != 1 {
			t.Fatalf("%d runs, %+v", runs, b.Stats())
		}
	})
}

func TestJitterIsReal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const base = 8 * time.Second
		b := start(t, nil, jobs.Options{Workers: 64, Rand: rand.New(rand.NewPCG(1, 2)).Float64, Kinds: []jobs.Kind{{
			Name: "work", Backoff: base, MaxBackoff: 4 * base, Attempts: 9,
			Run: func(context.Context, *jobs.Run) error { return errors.New("no") },
		}}})
		defer b.stop()
		waits := map[time.Duration]int{}
		var sum time.Duration
		for range 40 {
			n := b.add(understudy.Job{Kind: "work"})
			j := b.is(n, understudy.JobWaiting)
			wait := time.Until(j.RunAfter)
			if wait < base/2 || wait > base {
				t.Fatalf("the second run after %v, want %v to %v", wait, base/2, base)
			}
			waits[wait]++
			sum += wait
		}
		mean := sum / 40
		checktest.MustTrue(t, len(waits) >= 35, "len(waits) is %v, want >= 35", len(waits))
		checktest.True(t, mean >= base*6/10, "mean is %v", mean)
		checktest.True(t, mean <= base*9/10, "mean is %v", mean)
		// Doubled each time, up to the bound.
		n := b.add(understudy.Job{Kind: "work"})
		for _, most := range []time.Duration{base, 2 * base, 4 * base, 4 * base, 4 * base} {
			wait := time.Until(b.is(n, understudy.JobWaiting).RunAfter)
			if wait < most/2 || wait > most {
				t.Fatalf("waits %v, want %v to %v", wait, most/2, most)
			}
			time.Sleep(wait + time.Millisecond)
		}
	})
}

// A worker that was not heard of is late: what it says is not believed, and its
// context ends.
func TestALateEndIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, gate := newFaulty(t), make(chan struct{})
		var late, markErr error
		deaf := start(t, f.db, jobs.Options{Store: f, Worker: "deaf",
			Kinds: []jobs.Kind{{Name: "work", Run: func(ctx context.Context, r *jobs.Run) error {
				<-gate
				late = context.Cause(ctx)
				markErr = r.SetMark(t.Context(), []byte("late"))
				return nil // well, as far as it knows
			}}}})
		n := deaf.add(understudy.Job{Kind: "work"})
		deaf.is(n, understudy.JobRunning)
		f.set(errFull, "beat", "claim")
		fresh, release := 0, make(chan struct{})
		other := start(t, f.db, jobs.Options{Worker: "other", Kinds: []jobs.Kind{{Name: "work", Run: func(context.Context, *jobs.Run) error {
			fresh++
			<-release
			return errors.New("not well")
		}}}})
		time.Sleep(65 * time.Second)
		{
			j := other.is(n, understudy.JobRunning)
			checktest.MustEqual(t, j.Worker, "other", "j.Worker")
			checktest.MustEqual(t, j.Fence, 2, "j.Fence")
			checktest.MustEqual(t, fresh, 1, "fresh")
		}
		close(gate)
		f.set(nil, "claim") // a claim brings the late end to the store
		time.Sleep(5 * time.Second)
		if j := other.is(n, understudy.JobRunning); j.Worker != "other" || j.Checkpoint != nil {
			t.Fatalf("the late end was taken: %+v", j)
		}
		if !errors.Is(late, understudy.ErrLeaseLost) || !errors.Is(markErr, understudy.ErrLeaseLost) {
			t.Errorf("the late run's context ended with %v, its mark with %v", late, markErr)
		}
		if s := deaf.Stats(); s.Done != 0 || s.Lost != 1 {
			t.Errorf("the late runner counts %+v", s)
		}
		close(release)
		if j := other.is(n, understudy.JobWaiting); j.Error != "not well" {
			t.Errorf("%+v", j)
		}
		deaf.stop()
		other.stop()
	})
}

// The same runner may get the job again before its former run has ended; the
// two are told apart.
func TestALateEndInTheSameProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, runs, first := newFaulty(t), 0, make(chan struct{})
		b := start(t, f.db, jobs.Options{Store: f, Kinds: []jobs.Kind{{Name: "work", Run: func(context.Context, *jobs.Run) error {
			if runs++; runs == 1 {
				<-first // deaf to its context
				return errors.New("late")
			}
			<-time.After(10 * time.Minute)
			return nil
		}}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "work"})
		b.is(n, understudy.JobRunning)
		f.set(errFull, "beat")
		time.Sleep(50 * time.Second)
		f.set(nil, "beat")
		time.Sleep(30 * time.Second)
		if j := b.is(n, understudy.JobRunning); j.Fence != 2 || runs != 2 {
			t.Fatalf("%d runs, %+v", runs, j)
		}
		close(first)
		time.Sleep(5 * time.Minute)
		b.is(n, understudy.JobRunning)
		time.Sleep(5 * time.Minute)
		if j := b.is(n, understudy.JobDone); j.Fence != 2 || runs != 2 {
			t.Errorf("%d runs, %+v", runs, j)
		}
	})
}

// Two runners over one file, as two processes would be; the runs themselves
// count each other.
func TestConcurrencyHoldsOverProcesses(t *testing.T) {
	path := storetest.File(t)
	const most, total = 5, 120
	var now, peak, done atomic.Int64
	kind := jobs.Kind{Name: "narrow work", Concurrency: most, Run: func(context.Context, *jobs.Run) error {
		n := now.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		if n > most {
			t.Errorf("%d run at once", n)
		}
		for range 1000 { // give the others a chance to be too many
			if now.Load() > most {
				break
			}
		}
		now.Add(-1)
		done.Add(1)
		return nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var first *jobs.Runner
	for range 2 {
		db, err := store.Open(t.Context(), store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		r, err := jobs.New(jobs.Options{Store: db.Jobs, Kinds: []jobs.Kind{kind}})
		if err != nil {
			t.Fatal(err)
		}
		first = r
		all.Go(func() {
			if err := errors.Join(r.Run(ctx), db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	for range total / 4 {
		if _, err := first.Enqueue(t.Context(), understudy.Job{Kind: kind.Name}, understudy.Job{Kind: kind.Name}, understudy.Job{Kind: kind.Name},
			understudy.Job{Kind: kind.Name}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool { return done.Load() == total })
	cancel()
	all.Wait()
	t.Logf("at most %d at once", peak.Load())
}

// until waits for something real.
func until(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal("it does not come to an end")
		}
	}
}

func TestIdleRunnersDoNotPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begun := newFaulty(t), time.Time{}
		b := start(t, f.db, jobs.Options{Store: f, Kinds: []jobs.Kind{{Name: "work",
			Run: func(context.Context, *jobs.Run) error { begun = time.Now(); return nil }}}})
		defer b.stop()
		due := time.Now().Add(40*time.Minute + 7*time.Second)
		b.add(understudy.Job{Kind: "work", RunAfter: due})
		time.Sleep(time.Hour)
		synctest.Wait()
		if d := begun.Sub(due); d < 0 || d > 5*time.Millisecond {
			t.Errorf("begun %v after it was due", d)
		}
		// One look a lease, in which another process may have died, and the
		// archive trimmed now and then.
		if n := f.total(); n > 150 {
			t.Errorf("%d calls of the store in an idle hour", n)
		}
	})
}

func TestALongRunIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := storetest.Open(t, store.Options{}), 0
		kind := jobs.Kind{Name: "work", Run: func(ctx context.Context, r *jobs.Run) error {
			runs++
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(3 * time.Hour):
				return nil
			}
		}}
		a, b := start(t, m, jobs.Options{Kinds: []jobs.Kind{kind}}), start(t, m, jobs.Options{Kinds: []jobs.Kind{kind}})
		n := a.add(understudy.Job{Kind: "work"})
		for range 100 {
			time.Sleep(97 * time.Second)
			if j := a.is(n, understudy.JobRunning); time.Until(j.LeaseEnd) < 15*time.Second {
				t.Fatalf("its lease ends in %v", time.Until(j.LeaseEnd))
			}
		}
		time.Sleep(time.Hour)
		if a.is(n, understudy.JobDone); runs != 1 {
			t.Errorf("%d runs", runs)
		}
		a.stop()
		b.stop()
	})
}
