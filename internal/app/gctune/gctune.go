// The garbage collector's targets: a soft limit of memory, and room for garbage.

// Package gctune sets the garbage collector's targets from the memory limit and the live heap.
package gctune

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// setLimit makes the collector work harder near the limit. It is soft: nothing
// fails when it is passed. An operator who sets GOMEMLIMIT knows better.
func setLimit(limit int64, env func(string) (string, bool)) {
	if _, set := env("GOMEMLIMIT"); !set && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}

// Go collects when the heap has doubled. A server whose pages fit into a few
// megabytes would collect many times a second, and spend a sixth of its time on
// it; one with a large hot tier would let as much garbage gather as it holds.
// So the room for garbage is a constant instead of a share.
const (
	garbageRoom = 18 << 20 // bytes
	paceEvery   = time.Second
	minPercent  = 40
	maxPercent  = 400
)

// Task sets the collector's target once a second until ctx ends. An operator
// who sets GOGC knows better and is left alone.
func Task(env func(string) (string, bool), limit int64) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		setLimit(limit, env)
		if _, set := env("GOGC"); set {
			<-ctx.Done()
			return nil
		}
		tick := time.NewTicker(paceEvery)
		defer tick.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		now := 0 // not set yet
		for {
			metrics.Read(live)
			if want := percentFor(live[0].Value.Uint64()); want < now*9/10 || want > now*11/10 {
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
