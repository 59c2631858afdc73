// The garbage collector's targets: a soft limit of memory, and room for garbage.

// Package gctune sets the garbage collector's targets from the memory limit and the live heap.
package gctune

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// limitFor returns the collector's soft limit for a process that should stay under limit:
// what Go does not count (SQLite's caches, the program itself) comes off. The collector
// keeps at least half of the limit: below that it would do nothing but collect.
func limitFor(limit, resident, counted int64) int64 {
	return max(limit-max(resident-counted, 0), limit/2)
}

// readMemory returns the resident memory of the process and what the Go runtime has of it,
// in bytes; 0 for what cannot be read.
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

// Go collects when the heap has doubled. A server whose pages fit into a few
// megabytes would collect many times a second, and spend a sixth of its time on
// it; one with a large hot tier would let as much garbage gather as it holds.
// So the room for garbage is a constant instead of a share.
const (
	garbageRoom = 18 << 20 // the garbage that may always accumulate, in bytes
	paceEvery   = time.Second
	minPercent  = 40
	maxPercent  = 400
)

// Task sets the collector's targets once a second until ctx ends. It leaves alone what an
// operator sets by GOGC or GOMEMLIMIT.
func Task(env func(string) (string, bool), limit int64) func(ctx context.Context) error {
	_, hasPercent := env("GOGC")
	if _, set := env("GOMEMLIMIT"); set {
		limit = 0
	}
	return func(ctx context.Context) error {
		tick := time.NewTicker(paceEvery)
		defer tick.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		now := 0 // the percentage that is set; 0 before the first time
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

// percentFor is the GOGC that leaves garbageRoom above a live heap of that many
// bytes.
func percentFor(live uint64) int {
	return int(min(max(garbageRoom*100/max(live, 1<<20), minPercent), maxPercent))
}
