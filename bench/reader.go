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
// fault is a 500: unlike a 503 it is not tried again at once. Right after each
// answer a bare handler is asked for the same bytes: what that takes is the
// machine's doing.
func reader(ctx context.Context, r *run) (err error) {
	long, s := r.reader, Setup{latency: time.Second, settings: []string{"polls: [calls]"}}
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
	plain, zipped, err := stored(ctx, g, calls)
	if err != nil {
		return err
	}
	bareServer, err := r.bare(ctx, plain, zipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bareServer.stop()) }()
	control := NewClient(bareServer.addresses["bare"], "", "")
	defer control.close()
	seen, err := readEverySecond(ctx, g, w, control, long)
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
	r.table([][]string{spreadHead, spread("newest page, once a second", seen.took), spread("the same bytes from a bare handler", seen.control)})
	r.say("warm-up %s ms; %v with %d upstream requests for the page, %d failed", figure(ms(warm.took)), long, counts.ByTarget[calls]+counts.ByTarget[calls+"?PageSize=50"], own.Upstream.Errors)
	r.atLeast("refreshes that failed, as injected", float64(own.Upstream.Errors), 1, "")
	r.exactly("answers that waited for upstream after the warm-up", seen.waits, 0)
	r.atMost(fmt.Sprintf("99.9 %% of %d answers came within", len(seen.took)), ms(quantile(seen.took, 0.999)), 50, "ms")
	return nil
}

// seen is what a reader saw.
type seen struct {
	took, control []time.Duration
	waits         int // answers that waited for upstream
}

// readEverySecond reads for so long, with one failing refresh a tenth of the
// way in.
func readEverySecond(ctx context.Context, g *Rig, w, control *Client, long time.Duration) (s seen, err error) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	until := time.After(long)
	fault := time.After(long / 10)
	for {
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-until:
			return s, nil
		case <-fault:
			if err := g.faults(ctx, `[{"match":"/Calls.json","status":500,"times":1}]`); err != nil {
				return s, err
			}
		case <-every.C:
			a, err := w.page(ctx, calls)
			if err != nil {
				return s, err
			}
			c, err := control.page(ctx, calls)
			if err != nil {
				return s, err
			}
			s.took, s.control = append(s.took, a.took), append(s.control, c.took)
			if a.waited() {
				s.waits++
			}
		}
	}
}
