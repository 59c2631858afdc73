// Turns: two ways to the same thing, one after the other, again and again.

package rig

import (
	"fmt"
	"runtime"
	"time"
)

// Turns runs two functions alternately, each the given number of times in a round, and prints their times. For
// each round it returns how many times as fast ours is. allocs is the maximum number of allocations of ours in one
// call.
func (r *Run) Turns(title, theirName string, times int, ours, theirs func() error) (ratios []float64, allocs float64, err error) {
	table := [][]string{{title, "ours us", "allocations", theirName + " us", "allocations", "times as fast"}}
	ways := []func() error{ours, theirs}
	for round := range r.Times(15, 2) {
		var took [2]time.Duration
		var made [2]float64
		for i := range ways {
			way := (i + round) % 2
			if took[way], made[way], err = Each(ways[way], r.Times(times, 20)); err != nil {
				return nil, 0, err
			}
		}
		allocs = max(allocs, made[0])
		ratios = append(ratios, float64(took[1])/float64(took[0]))
		table = append(table, []string{fmt.Sprintf("round %d", round+1), Figure(Us(took[0])), Figure(made[0]), Figure(Us(took[1])), Figure(made[1]), Figure(ratios[round])})
	}
	r.Table(table)
	r.Say("times as fast: median %s, quartiles %s to %s", Figure(Median(ratios)), Figure(Quantile(ratios, 0.25)), Figure(Quantile(ratios, 0.75)))
	return ratios, allocs, nil
}

// Each runs a function many times. It returns the mean time and the mean number of allocations of one call.
func Each(do func() error, times int) (took time.Duration, allocs float64, err error) {
	if err := do(); err != nil { // with memory to use again from now on
		return 0, 0, err
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range times {
		if err := do(); err != nil {
			return 0, 0, err
		}
	}
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return took / time.Duration(times), float64(after.Mallocs-before.Mallocs) / float64(times), nil
}

// Us returns a duration in microseconds.
func Us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
