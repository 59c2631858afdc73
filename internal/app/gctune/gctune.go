// Package gctune sets the garbage collector's targets from the memory limit and the size of the live heap.
package gctune

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// limitFor returns the collector's soft limit for a process that should stay under limit bytes. It subtracts the
// memory that Go does not count, such as SQLite's caches. It returns at least half of limit, because with less the
// process would do nothing but collect.
func limitFor(limit, resident, counted int64) int64 {
	return max(limit-max(resident-counted, 0), limit/2)
}

// readMemory returns the resident memory of the process and the part of it that the Go runtime counts, in bytes. A
// value that cannot be read is 0.
func readMemory() (resident, counted int64) {
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		var pages int64
		_, _ = fmt.Sscan(string(data), new(int64), &pages)
		resident = pages * int64(os.Getpagesize())
	}
	total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(total)
	return resident, int64(total[0].Value.Uint64() - total[1].Value.Uint64())
}

// By default Go collects when the heap has doubled. A server with a small heap would then collect many times a
// second, and spend a sixth of its time on it. A server with a large cache would let as much garbage accumulate as
// it has data. So the room for garbage is a constant and not a share of the heap.
const (
	garbageRoom    = 18 << 20 // how much garbage may accumulate before a collection, in bytes
	updateInterval = time.Second
	minPercent     = 40
	maxPercent     = 400
)

// Task sets the collector's targets once a second until ctx ends. It does not change a target that an operator has
// set with GOGC or GOMEMLIMIT.
func Task(env func(string) (string, bool), limit int64) func(ctx context.Context) error {
	_, hasPercent := env("GOGC")
	if _, set := env("GOMEMLIMIT"); set {
		limit = 0
	}
	return func(ctx context.Context) error {
		tick := time.NewTicker(updateInterval)
		defer tick.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		now := 0 // the GOGC percentage that was set last; 0 before the first time
		for {
			if limit > 0 {
				resident, counted := readMemory()
				debug.SetMemoryLimit(limitFor(limit, resident, counted))
			}
			metrics.Read(live)
			if want := percentFor(live[0].Value.Uint64()); !hasPercent && (want < now*9/10 || want > now*11/10) {
				debug.SetGCPercent(want)
				now = want
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// percentFor returns the GOGC percentage that leaves room for garbageRoom bytes above a live heap of the given size.
func percentFor(live uint64) int {
	return int(min(max(garbageRoom*100/max(live, 1<<20), minPercent), maxPercent))
}
