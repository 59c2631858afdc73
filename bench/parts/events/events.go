// Package events is a part of the bench: telling four subscribers in this process.
package events

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"understudy/bench/rig"
	"understudy/kit/dispatch"
	"understudy/request"
)

// Measure notifies four synchronous subscribers of a saved page. For comparison it calls a list of functions in a loop,
// under a read lock. The difference is the cost of a bus: its handles, and that a panic affects only its subscriber.
func Measure(ctx context.Context, r *rig.Run) error {
	const subscribers = 4
	bus := dispatch.New[request.PageSaved](dispatch.Options{})
	var heard, heardPlain [subscribers]int
	var lock sync.RWMutex
	var plain []func(context.Context, request.PageSaved) error
	for i := range subscribers {
		bus.Subscribe(func(context.Context, request.PageSaved) error { heard[i]++; return nil })
		plain = append(plain, func(context.Context, request.PageSaved) error { heardPlain[i]++; return nil })
	}
	loop := func(ctx context.Context, l request.PageSaved) error {
		lock.RLock()
		defer lock.RUnlock()
		var errs []error
		for _, f := range plain {
			if err := f(ctx, l); err != nil {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	n := r.Times(5_000_000, 1000)
	rows := [][]string{{"four subscribers", "bus ns", "allocations", "loop ns", "allocations"}}
	var times []float64
	worst := 0.0
	for round := range r.Times(9, 2) {
		row := []string{fmt.Sprintf("round %d", round+1)}
		for i, tell := range []func(context.Context, request.PageSaved) error{bus.Dispatch, loop} {
			each, allocs, err := told(ctx, tell, n)
			if err != nil {
				return err
			}
			if i == 0 {
				times, worst = append(times, each), max(worst, allocs)
			}
			row = append(row, rig.Figure(each), rig.Figure(allocs))
		}
		rows = append(rows, row)
	}
	r.Table(rows)
	for i := range subscribers {
		if heard[i] != heardPlain[i] || heard[i] == 0 {
			return fmt.Errorf("subscriber %d heard %d of %d", i, heard[i], heardPlain[i])
		}
	}
	r.AtMost("telling four subscribers, median", rig.Median(times), 60, "ns")
	r.AtMost("allocations of it", worst, 0, "")
	return bus.Close(ctx)
}

// told publishes n times. It returns the nanoseconds and allocations of each time, without the few allocations of the
// measurement itself.
func told(ctx context.Context, tell func(context.Context, request.PageSaved) error, n int) (each, allocs float64, err error) {
	var l request.PageSaved
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range n {
		if err := tell(ctx, l); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return float64(took) / float64(n), float64((after.Mallocs - before.Mallocs) / uint64(n)), nil
}
