package lockwatch

//lint:file-ignore SA2001 these tests look at locks, and guard nothing with them

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/sample"
)

// watch begins to watch all locks, and forgets what was recorded before. After the test it forgets what the test has recorded.
func watch(t testing.TB, long time.Duration) {
	t.Helper()
	forget()
	Start(time.Now, long)
	t.Cleanup(func() { Stop(); forget() })
}

// forget deletes what was recorded.
func forget() {
	ordering.Lock()
	defer ordering.Unlock()
	records, findings = nil, nil
	clear(edges)
}

// line returns the function and line that is some lines below its caller, as a report names it.
func line(below int) string {
	pc, file, line, _ := runtime.Caller(1)
	name := runtime.FuncForPC(pc).Name()
	return fmt.Sprintf("%s (%s:%d)", name[strings.LastIndex(name, "/")+1:], file[strings.LastIndex(file, "/")+1:], line+below)
}

// waitFor waits until a report is as wanted.
func waitFor(t testing.TB, wanted func(*Report) bool) *Report {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); runtime.Gosched() {
		if r := Read(); wanted(r) {
			return r
		}
	}
	t.Fatalf("after 10 s: %+v", Read())
	return nil
}

func find(r *Report, kind string) (found []Finding) {
	for _, f := range r.Findings {
		if f.Kind == kind {
			found = append(found, f)
		}
	}
	return found
}

func countWaiters(n int) func(*Report) bool {
	return func(r *Report) bool {
		waiting := 0
		for _, l := range r.Locks {
			waiting += len(l.Waiters)
		}
		return waiting == n
	}
}

func TestEachMethodRecordsItsCaller(t *testing.T) {
	watch(t, time.Hour)
	var m Mutex
	var rw RWMutex
	for name, try := range map[string]func() (string, func()){
		"Mutex.Lock":       func() (string, func()) { m.Lock(); return line(0), m.Unlock },
		"Mutex.TryLock":    func() (string, func()) { m.TryLock(); return line(0), m.Unlock },
		"RWMutex.Lock":     func() (string, func()) { rw.Lock(); return line(0), rw.Unlock },
		"RWMutex.TryLock":  func() (string, func()) { rw.TryLock(); return line(0), rw.Unlock },
		"RWMutex.RLock":    func() (string, func()) { rw.RLock(); return line(0), rw.RUnlock },
		"RWMutex.TryRLock": func() (string, func()) { rw.TryRLock(); return line(0), rw.RUnlock },
	} {
		want, unlock := try()
		var holders []Goroutine
		for _, l := range Read().Locks {
			holders = append(holders, l.Holders...)
		}
		if len(holders) != 1 || holders[0].At != want {
			t.Errorf("%s: held by %v, want %s", name, holders, want)
		}
		unlock()
		for _, l := range Read().Locks {
			if len(l.Holders) > 0 {
				t.Errorf("%s: held by %v after it was unlocked", name, l.Holders)
			}
		}
	}
	if l := rw.RLocker(); true {
		l.Lock()
		if rw.TryLock() {
			t.Error("RLocker does not lock for reading")
		}
		l.Unlock()
	}
}

// TestAStuckLockIsNamed: a report made at once has the holder and the waiters in their order.
func TestAStuckLockIsNamed(t *testing.T) {
	watch(t, time.Hour)
	var rw RWMutex
	rw.Lock()
	holder := line(-1)
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if i%2 == 0 {
				rw.RLock()
				rw.RUnlock()
			} else {
				rw.Lock()
				rw.Unlock()
			}
		})
		waitFor(t, countWaiters(i+1))
	}
	time.Sleep(time.Millisecond)
	begun := time.Now()
	r := Read()
	if took := time.Since(begun); took > 100*time.Millisecond {
		t.Errorf("the report took %v", took)
	}
	l := r.Locks[0]
	if len(l.Holders) != 1 || l.Holders[0].At != holder {
		t.Fatalf("holders %v, want one at %s", l.Holders, holder)
	}
	if age := l.Holders[0].Age; age < time.Millisecond || age > time.Minute {
		t.Errorf("held for %v, want some milliseconds", age)
	}
	for i, g := range l.Waiters {
		if g.Read != (i%2 == 0) {
			t.Errorf("waiter %d: %+v is not in its order", i, g)
		}
	}
	if text := r.String(); strings.Count(text, "\n") != 7 || !strings.Contains(text, holder) {
		t.Errorf("as text:\n%s", text)
	}
	rw.Unlock()
	wg.Wait()
	l = Read().Locks[0]
	if l.Held.Count != 6 || l.Waited.Count != 5 {
		t.Errorf("held %d times, waited %d times, want 6 and 5", l.Held.Count, l.Waited.Count)
	}
	if l.Held.Longest < time.Millisecond || l.Waited.Total < 5*time.Millisecond {
		t.Errorf("held for at most %v, waited for %v, want more", l.Held.Longest, l.Waited.Total)
	}
	if !slices.IsSorted([]time.Duration{l.Held.P50, l.Held.P99, l.Held.Longest, l.Held.Total}) {
		t.Errorf("held %+v is not in order", l.Held)
	}
}

// TestOrderIsFoundBeforeTheDeadlock also makes the deadlock.
func TestOrderIsFoundBeforeTheDeadlock(t *testing.T) {
	watch(t, time.Hour)
	var a, b, c Mutex
	lock := func(locks ...*Mutex) {
		for _, m := range locks {
			m.Lock()
		}
		for _, m := range locks {
			m.Unlock()
		}
	}
	lock(&a, &b)
	lock(&b, &c)
	lock(&a, &c)
	if r := Read(); len(r.Findings) != 0 {
		t.Fatalf("one order: %v", r.Findings)
	}
	lock(&c, &a)
	lock(&c, &a)
	found := find(Read(), Order)
	if len(found) != 1 || len(found[0].Steps) < 2 {
		t.Fatalf("c before a: %v, want one order of two locks or three", found)
	}

	watch(t, time.Hour)
	var x, y Mutex
	var wg sync.WaitGroup
	both := make(chan bool)
	wg.Go(func() {
		x.Lock()
		<-both
		y.Lock()
		y.Unlock()
	})
	wg.Go(func() {
		y.Lock()
		both <- true
		x.Lock()
		x.Unlock()
		y.Unlock()
	})
	r := waitFor(t, countWaiters(2))
	if found := find(r, Order); len(found) != 1 || len(found[0].Steps) != 2 {
		t.Errorf("deadlock: %v, want the order of two locks", found)
	}
	x.Unlock() // for the first goroutine, which ends the deadlock
	wg.Wait()
	for _, l := range Read().Locks {
		if len(l.Holders)+len(l.Waiters) > 0 {
			t.Errorf("%s is held by %v", l.Name, l.Holders)
		}
	}
}

func TestTryLockHasNoOrder(t *testing.T) {
	watch(t, time.Hour)
	var a, b Mutex
	a.Lock()
	b.Lock()
	a.Unlock()
	a.TryLock()
	a.Unlock()
	b.Unlock()
	if found := find(Read(), Order); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestLongHoldIsFound(t *testing.T) {
	watch(t, 5*time.Millisecond)
	var m Mutex
	for _, pause := range []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond} {
		m.Lock()
		time.Sleep(pause)
		m.Unlock()
	}
	if found := find(Read(), Long); len(found) != 1 || found[0].Count != 2 {
		t.Errorf("found %v, want one of two holds", found)
	} else if found[0].Longest < 20*time.Millisecond {
		t.Errorf("the longest took %v, want 20 ms", found[0].Longest)
	}
}

// statistics is how the original reads: each public method locks, and calls public methods.
type statistics struct {
	mu      RWMutex
	samples []float64
}

func (s *statistics) Mean() float64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.samples[0]
}

func (s *statistics) Variance() float64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.Mean() * s.Mean()
}

// TestRecursiveReadLockIsFound: it is found without a writer, and the writer makes the hang.
func TestRecursiveReadLockIsFound(t *testing.T) {
	watch(t, time.Hour)
	s := &statistics{samples: []float64{1}}
	s.Variance()
	found := find(Read(), Recursive)
	if len(found) != 1 || found[0].Count != 2 {
		t.Fatalf("found %v, want two calls", found)
	}
	for _, method := range []string{"(*statistics).Variance", "(*statistics).Mean"} {
		if !strings.Contains(found[0].Steps[0], method) {
			t.Errorf("found %v, want %s", found, method)
		}
	}
	s.mu.RLock()
	var wg sync.WaitGroup
	wg.Go(func() { s.mu.Lock(); s.mu.Unlock() })
	waitFor(t, countWaiters(1))
	if s.mu.TryRLock() {
		t.Error("a second RLock does not wait for the writer")
	}
	s.mu.RUnlock()
	wg.Wait()
}

// TestOuterReadLockReleasedEarlyIsFound is the first mistake of the original's author. sync finds it only if there is no other reader.
func TestOuterReadLockReleasedEarlyIsFound(t *testing.T) {
	watch(t, time.Millisecond)
	var rw RWMutex
	var wg sync.WaitGroup
	locked, end := make(chan bool), make(chan bool)
	wg.Go(func() {
		rw.RLock() // another reader
		close(locked)
		<-end // its lock is gone: RUnlock would end the process
	})
	<-locked
	time.Sleep(2 * time.Millisecond)
	inner := func() { rw.RUnlock() }
	rw.RLock()
	inner()      // unlocks what the outer function has locked
	rw.RUnlock() // line(-1): unlocks what the other goroutine has locked
	want := line(-1)
	if !rw.TryLock() {
		t.Error("the other reader still has its lock")
	}
	rw.Unlock()
	close(end)
	wg.Wait()
	if found := find(Read(), Foreign); len(found) != 1 || !strings.Contains(found[0].Steps[0], want) {
		t.Errorf("found %v, want %s", found, want)
	}
}

func TestMutexMayBeUnlockedByAnotherGoroutine(t *testing.T) {
	watch(t, time.Hour)
	var m Mutex
	m.Lock()
	var wg sync.WaitGroup
	wg.Go(m.Unlock)
	wg.Wait()
	if r := Read(); len(r.Findings) > 0 || len(r.Locks[0].Holders) > 0 {
		t.Errorf("%+v", r)
	}
}

// TestLocksBeyondTheLimitShareARecord: they lock as before.
func TestLocksBeyondTheLimitShareARecord(t *testing.T) {
	watch(t, time.Hour)
	locks := make([]Mutex, maxLocks+10)
	for i := range locks {
		locks[i].Lock()
		if locks[i].TryLock() {
			t.Fatalf("lock %d is not locked", i)
		}
		locks[i].Unlock()
	}
	locks[0].Lock()
	for _, i := range []int{1, maxLocks, maxLocks + 1} {
		locks[i].Lock()
		defer locks[i].Unlock()
	}
	locks[0].Unlock()
	if r := Read(); len(r.Locks) != maxLocks || len(r.Findings) > 0 {
		t.Errorf("%d locks, %v", len(r.Locks), r.Findings)
	}
}

// TestRandomPrograms: goroutines lock and unlock at random while watching starts and stops. The locks exclude, and at the end nobody holds
// or waits. Each goroutine locks in ascending order, so that no order is found, or in one goroutine in the opposite order, which is found.
func TestRandomPrograms(t *testing.T) {
	for round := range 4 {
		seed := sample.Seed(t)
		watch(t, time.Hour)
		opposite := round%2 == 1
		var locks [4]RWMutex
		var values [4]int // guarded by the lock of the same number
		var wg sync.WaitGroup
		for g := range 6 {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			wg.Go(func() {
				for range sample.Count(100, 3000) {
					var unlock []func()
					for i := range locks {
						switch l := &locks[i]; rng.IntN(6) {
						case 0:
							l.Lock()
							values[i]++
							unlock = append(unlock, l.Unlock)
						case 1:
							l.RLock()
							_ = values[i]
							unlock = append(unlock, l.RUnlock)
						case 2:
							if l.TryLock() {
								values[i]++
								unlock = append(unlock, l.Unlock)
							}
						case 3:
							if l.TryRLock() {
								_ = values[i]
								unlock = append(unlock, l.RUnlock)
							}
						}
					}
					rng.Shuffle(len(unlock), func(i, j int) { unlock[i], unlock[j] = unlock[j], unlock[i] })
					for _, u := range unlock {
						u()
					}
					if !opposite && rng.IntN(50) == 0 {
						Stop()
						Start(time.Now, time.Hour)
					}
				}
			})
		}
		for range 20 {
			_ = Read().String()
		}
		wg.Wait()
		if opposite {
			locks[0].Lock()
			locks[3].RLock()
			locks[3].RUnlock()
			locks[0].Unlock()
			locks[3].Lock()
			locks[0].RLock()
			locks[0].RUnlock()
			locks[3].Unlock()
		}
		r := Read()
		for _, l := range r.Locks {
			if len(l.Holders)+len(l.Waiters) > 0 {
				t.Fatalf("seed %d: %s is held by %v and awaited by %v", seed, l.Name, l.Holders, l.Waiters)
			}
		}
		if found := find(r, Order); (len(found) > 0) != opposite {
			t.Fatalf("seed %d: orders %v, want one: %v", seed, found, opposite)
		}
		if found := find(r, Recursive); len(found) > 0 {
			t.Fatalf("seed %d: recursive %v", seed, found)
		}
		for i := range locks {
			if !locks[i].TryLock() {
				t.Fatalf("seed %d: lock %d is still locked", seed, i)
			}
			locks[i].Unlock()
			if n := locks[i].state.readers.Load(); n != 0 {
				t.Fatalf("seed %d: lock %d has %d readers", seed, i, n)
			}
		}
	}
}

func TestWatchedLocksDoNotAllocate(t *testing.T) {
	watch(t, time.Hour)
	var m Mutex
	var rw RWMutex
	if n := testing.AllocsPerRun(1000, func() {
		m.Lock()
		rw.RLock()
		rw.RUnlock()
		m.Unlock()
		rw.Lock()
		rw.Unlock()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestGoroutinesAreNotStarted: watching needs none.
func TestGoroutinesAreNotStarted(t *testing.T) {
	before := runtime.NumGoroutine()
	watch(t, time.Hour)
	locks := make([]Mutex, 100)
	for i := range locks {
		locks[i].Lock()
		locks[i].Unlock()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, before %d", n, before)
	}
}

func BenchmarkMutex(b *testing.B) {
	b.Run("sync", func(b *testing.B) { var m sync.Mutex; benchmark(b, m.Lock, m.Unlock) })
	var m Mutex
	b.Run("off", func(b *testing.B) {
		for range b.N {
			m.Lock()
			m.Unlock()
		}
	})
	b.Run("on", func(b *testing.B) {
		watch(b, time.Hour)
		for range b.N {
			m.Lock()
			m.Unlock()
		}
	})
	var rw RWMutex
	b.Run("on read", func(b *testing.B) {
		watch(b, time.Hour)
		for range b.N {
			rw.RLock()
			rw.RUnlock()
		}
	})
}

func benchmark(b *testing.B, lock, unlock func()) {
	for range b.N {
		lock()
		unlock()
	}
}
