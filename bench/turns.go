// Turns: two ways to the same thing, one after the other, again and again.

package main

import (
	"fmt"
	"runtime"
	"time"
)

// turns lets two ways take turns, each so many times a round, and shows their
// times. It gives how many times as fast ours is, of each round, and the most
// that ours allocated each time.
func (r *run) turns(title, theirName string, times int, ours, theirs func() error) (ratios []float64, allocs float64, err error) {
	table := [][]string{{title, "ours us", "allocations", theirName + " us", "allocations", "times as fast"}}
	ways := []func() error{ours, theirs}
	for round := range r.times(15, 2) {
		var took [2]time.Duration
		var made [2]float64
		for i := range ways {
			way := (i + round) % 2
			if took[way], made[way], err = each(ways[way], r.times(times, 20)); err != nil {
				return nil, 0, err
			}
		}
		allocs = max(allocs, made[0])
		ratios = append(ratios, float64(took[1])/float64(took[0]))
		table = append(table, []string{fmt.Sprintf("round %d", round+1), figure(us(took[0])), figure(made[0]), figure(us(took[1])), figure(made[1]), figure(ratios[round])})
	}
	r.table(table)
	r.say("times as fast: median %s, quartiles %s to %s", figure(median(ratios)), figure(quantile(ratios, 0.25)), figure(quantile(ratios, 0.75)))
	return ratios, allocs, nil
}

// each is what one of many runs took, and how often it allocated.
func each(do func() error, times int) (took time.Duration, allocs float64, err error) {
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

// us is a duration as microseconds.
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
