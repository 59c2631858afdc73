// Package lockwatch is a part of the bench: watched locks, beside those of package sync and of go-deadlock.
package lockwatch

//lint:file-ignore SA2001 empty sections are what is measured

import (
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	deadlock "github.com/sasha-s/go-deadlock"

	"understudy/bench/rig"
	"understudy/kit/lockwatch"
)

// lock is a lock that is compared. Its pairs lock and unlock n times.
type lock struct {
	name    string
	pairs   func(n int)
	watched bool
}

// locks returns the locks. Each loop is written out, because a call through an interface would hide how little sync costs.
func locks() []lock {
	var plain sync.Mutex
	var ours, watched lockwatch.Mutex
	var peer deadlock.Mutex
	var plainRW sync.RWMutex
	var oursRW, watchedRW lockwatch.RWMutex
	var peerRW deadlock.RWMutex
	count := make([]int, 4)
	return []lock{
		{"sync.Mutex", func(n int) {
			for range n {
				plain.Lock()
				count[0]++
				plain.Unlock()
			}
		}, false},
		{"lockwatch.Mutex, off", func(n int) {
			for range n {
				ours.Lock()
				count[1]++
				ours.Unlock()
			}
		}, false},
		{"lockwatch.Mutex, on", func(n int) {
			for range n {
				watched.Lock()
				count[2]++
				watched.Unlock()
			}
		}, true},
		{"deadlock.Mutex", func(n int) {
			for range n {
				peer.Lock()
				count[3]++
				peer.Unlock()
			}
		}, false},
		{"sync.RWMutex, to read", func(n int) {
			for range n {
				plainRW.RLock()
				plainRW.RUnlock()
			}
		}, false},
		{"lockwatch.RWMutex, off, to read", func(n int) {
			for range n {
				oursRW.RLock()
				oursRW.RUnlock()
			}
		}, false},
		{"lockwatch.RWMutex, on, to read", func(n int) {
			for range n {
				watchedRW.RLock()
				watchedRW.RUnlock()
			}
		}, true},
		{"deadlock.RWMutex, to read", func(n int) {
			for range n {
				peerRW.RLock()
				peerRW.RUnlock()
			}
		}, false},
	}
}

// Measure locks and unlocks in alternating rounds, with one goroutine and with eight, and compares the times of waiting with those of
// the runtime.
func Measure(_ context.Context, r *rig.Run) error {
	for _, goroutines := range []int{1, 8} {
		all := locks()
		times, allocs := make([][]float64, len(all)), make([]float64, len(all))
		for round := range r.Times(45, 3) {
			for i := range all {
				i = (i + round) % len(all)
				took, made := measure(all[i], goroutines, r.Times(90_000, 1000))
				times[i], allocs[i] = append(times[i], took), max(allocs[i], made)
			}
		}
		name := "one goroutine"
		if goroutines > 1 {
			name = "eight goroutines"
		}
		table := [][]string{{name, "ns, median", "quartiles", "allocations", "times sync"}}
		for i, l := range all {
			table = append(table, []string{l.name, rig.Figure(rig.Median(times[i])),
				rig.Figure(rig.Quantile(times[i], 0.25)) + " to " + rig.Figure(rig.Quantile(times[i], 0.75)), rig.Figure(math.Round(allocs[i]*100) / 100),
				rig.Figure(rig.Median(times[i]) / rig.Median(times[i/4*4]))})
		}
		r.Table(table)
		for i := 0; i < len(all); i += 4 {
			kind := all[i].name[len("sync."):] + ", " + name
			r.AtMost("off, "+kind+": lower quartile beside sync's upper", rig.Quantile(times[i+1], 0.25), rig.Quantile(times[i], 0.75), "ns")
			if goroutines == 1 {
				r.AtMost("on, "+kind+", median", rig.Median(times[i+2]), 150, "ns")
				r.AtMost("on, "+kind+": allocations", math.Round(allocs[i+2]*100)/100, 0, "")
				r.AtLeast("on, "+kind+": times as fast as go-deadlock", rig.Median(times[i+3])/rig.Median(times[i+2]), 3, "")
			}
		}
	}
	ours, theirs := compareWaits(r.Times(20_000, 500))
	r.Say("waited: %v by lockwatch, %v by the runtime, which samples an eighth", ours, theirs)
	r.AtMost("waiting: difference from the runtime", math.Abs(float64(ours)/float64(theirs)-1)*100, 5, "%")
	return nil
}

// measure returns the time and the allocations of a pair of Lock and Unlock. The pairs are divided among the goroutines.
func measure(l lock, goroutines, pairs int) (nanoseconds, allocs float64) {
	if l.watched {
		lockwatch.Start(time.Now, time.Hour)
		defer lockwatch.Stop()
	}
	l.pairs(10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	if goroutines == 1 {
		l.pairs(pairs)
	} else {
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() { l.pairs(pairs / goroutines) })
		}
		wg.Wait()
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return float64(took) / float64(pairs), float64(after.Mallocs-before.Mallocs) / float64(pairs)
}

// compareWaits lets eight goroutines wait for a lock that is held for long, and returns how long they waited in total.
func compareWaits(times int) (ours, theirs time.Duration) {
	lockwatch.Start(time.Now, time.Hour)
	defer lockwatch.Stop()
	runtimeWaits := func() time.Duration {
		s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
		metrics.Read(s)
		return time.Duration(s[0].Value.Float64() * float64(time.Second))
	}
	ourWaits := func() (sum time.Duration) {
		for _, l := range lockwatch.Read().Locks {
			sum += l.Waited.Total
		}
		return sum
	}
	ours, theirs = ourWaits(), runtimeWaits()
	var mu lockwatch.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range times / 8 {
				mu.Lock()
				time.Sleep(200 * time.Microsecond)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ourWaits() - ours, runtimeWaits() - theirs
}
