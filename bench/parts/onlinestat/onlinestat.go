// Package onlinestat is a part of the bench: numbers summarised as they come.
package onlinestat

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"understudy/bench/rig"
	"understudy/kit/onlinestat"
)

// Measure updates a summary from two goroutines, one by one and in
// batches, and compares what it says with the numbers themselves.
func Measure(_ context.Context, r *rig.Run) error {
	var s onlinestat.Stat
	s.AddAll([]float64{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16})
	r.AtLeast("variance of {4, 7, 13, 16}, each and 1e9", s.Variance(), 30, "")
	r.AtMost("the same", s.Variance(), 30, "")
	xs := make([]float64, 1<<20) // log-normal: milliseconds, 135 at the median
	rnd := rand.New(rand.NewPCG(1, 22))
	for i := range xs {
		xs[i] = 135 * math.Exp(0.7*rnd.NormFloat64())
	}
	var whole onlinestat.Stat
	whole.AddAll(xs)
	want := slices.Sorted(slices.Values(xs))[int(math.Ceil(0.99*float64(len(xs))))-1]
	r.AtMost("p99 of a million, off by", 100*math.Abs(whole.Quantile(0.99)/want-1), 1, "%")

	sharded := onlinestat.NewSharded()
	single, err := updated(r, xs, sharded, func(x []float64) {
		for _, x := range x {
			sharded.Add(x)
		}
	})
	if err != nil {
		return err
	}
	r.AtMost("an update, sharded, from two goroutines, median", single, 8, "ns")
	sharded = onlinestat.NewSharded()
	batched, err := updated(r, xs, sharded, func(x []float64) {
		for part := range slices.Chunk(x, 1024) {
			sharded.AddAll(part)
		}
	})
	if err != nil {
		return err
	}
	r.AtMost("the same, 1,024 at once, median", batched, 3, "ns")
	return nil
}

// updated gives all numbers to a summary from two goroutines, round after
// round: the median of nanoseconds for each number, and no allocation.
func updated(r *rig.Run, xs []float64, into *onlinestat.Sharded, add func([]float64)) (float64, error) {
	add(xs) // histograms grow here
	var rounds []float64
	var before, after runtime.MemStats
	n := r.Times(15, 2)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		var wg sync.WaitGroup
		began := time.Now()
		for _, half := range [][]float64{xs[:len(xs)/2], xs[len(xs)/2:]} {
			wg.Go(func() { add(half) })
		}
		wg.Wait()
		rounds = append(rounds, float64(time.Since(began))/float64(len(xs)))
	}
	runtime.ReadMemStats(&after)
	if got, want := into.Stat().Count(), int64((n+1)*len(xs)); got != want {
		return 0, fmt.Errorf("%d numbers of %d", got, want)
	}
	r.AtMost("allocations an update", float64((after.Mallocs-before.Mallocs)/uint64(n*len(xs))), 0, "")
	return rig.Median(rounds), nil
}
