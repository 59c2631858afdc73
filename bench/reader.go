// Reader: somebody who looks at the newest page once a second.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reader asks for the newest page once a second while it is refreshed behind
// it, upstream takes 1 s give or take a fifth, and one refresh fails. The
// fault is a 500: unlike a 503 it is not tried again at once.
func reader(ctx context.Context, r *run) (err error) {
	long, s := r.reader, set{latency: time.Second, settings: []string{"polls: [calls]"}}
	if r.quick {
		long, s.latency, s.mirror = 6*time.Second, 200*time.Millisecond, "newest: 2s"
	}
	g, err := r.rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	w := g.through()
	defer w.close()
	warm, err := w.page(ctx, calls) // the warm-up: it may wait
	if err != nil {
		return err
	}
	took, waits, err := readEverySecond(ctx, g, w, long)
	if err != nil {
		return err
	}
	counts, err := g.asked(ctx)
	if err != nil {
		return err
	}
	own, err := g.counted(ctx)
	if err != nil {
		return err
	}
	r.table([][]string{spreadHead, spread("newest page, once a second", took)})
	r.say("warm-up %s ms; %v with %d upstream requests for the page, %d failed", figure(ms(warm.took)), long, counts.ByTarget[calls]+counts.ByTarget[calls+"?PageSize=50"], own.Upstream.Errors)
	r.atLeast("refreshes that failed, as injected", float64(own.Upstream.Errors), 1, "")
	r.exactly("answers that waited for upstream after the warm-up", waits, 0)
	r.atMost(fmt.Sprintf("99.9 %% of %d answers came within", len(took)), ms(quantile(took, 0.999)), 50, "ms")
	return nil
}

// readEverySecond reads for so long, with one failing refresh a tenth of the
// way in. It gives each answer's time and how many waited for upstream.
func readEverySecond(ctx context.Context, g *rig, w *way, long time.Duration) (took []time.Duration, waits int, err error) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	until := time.After(long)
	fault := time.After(long / 10)
	for {
		select {
		case <-ctx.Done():
			return took, waits, ctx.Err()
		case <-until:
			return took, waits, nil
		case <-fault:
			if err := g.faults(ctx, `[{"match":"/Calls.json","status":500,"times":1}]`); err != nil {
				return took, waits, err
			}
		case <-every.C:
			a, err := w.page(ctx, calls)
			if err != nil {
				return took, waits, err
			}
			took = append(took, a.took)
			if a.waited() {
				waits++
			}
		}
	}
}
