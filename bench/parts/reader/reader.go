// Package reader is a part of the bench: a reader requests the newest page once a second.
package reader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/rig"
)

// Measure asks for the newest page once a second while it is refreshed behind
// it, upstream takes 1 s give or take a fifth, and one refresh fails. The
// fault is a 500: unlike a 503 it is not tried again at once. Right after each
// answer a bare handler is asked for the same bytes: what that takes is the
// machine's doing.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	long, s := r.Reader, rig.Setup{Latency: time.Second, Settings: []string{"polls: [calls]"}}
	if r.Quick {
		long, s.Latency, s.Mirror = 6*time.Second, 200*time.Millisecond, "newest: 2s"
	}
	g, err := r.Rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	warm, err := w.Page(ctx, rig.Calls) // the warm-up: it may wait
	if err != nil {
		return err
	}
	plain, zipped, err := rig.Stored(ctx, g, rig.Calls)
	if err != nil {
		return err
	}
	bareServer, err := r.Bare(ctx, plain, zipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bareServer.Stop()) }()
	control := rig.NewClient(bareServer.Addresses["bare"], "", "")
	defer control.Close()
	seen, err := readEverySecond(ctx, g, w, control, long)
	if err != nil {
		return err
	}
	counts, err := g.Asked(ctx)
	if err != nil {
		return err
	}
	own, err := g.Counted(ctx)
	if err != nil {
		return err
	}
	r.Table([][]string{rig.SpreadHead, rig.Spread("newest page, once a second", seen.took), rig.Spread("the same bytes from a bare handler", seen.control)})
	r.Say("warm-up %s ms; %v with %d upstream requests for the page, %d failed", rig.Figure(rig.Ms(warm.Took)), long, counts.ByTarget[rig.Calls]+counts.ByTarget[rig.Calls+"?PageSize=50"], own.Upstream.Errors)
	r.AtLeast("refreshes that failed, as injected", float64(own.Upstream.Errors), 1, "")
	r.Exactly("answers that waited for upstream after the warm-up", seen.waits, 0)
	r.AtMost(fmt.Sprintf("99.9 %% of %d answers came within", len(seen.took)), rig.Ms(rig.Quantile(seen.took, 0.999)), 50, "ms")
	return nil
}

// seen is what a reader saw.
type seen struct {
	took, control []time.Duration
	waits         int // answers that waited for upstream
}

// readEverySecond reads for so long, with one failing refresh a tenth of the
// way in.
func readEverySecond(ctx context.Context, g *rig.Rig, w, control *rig.Client, long time.Duration) (s seen, err error) {
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
			if err := g.Faults(ctx, `[{"match":"/Calls.json","status":500,"times":1}]`); err != nil {
				return s, err
			}
		case <-every.C:
			a, err := w.Page(ctx, rig.Calls)
			if err != nil {
				return s, err
			}
			c, err := control.Page(ctx, rig.Calls)
			if err != nil {
				return s, err
			}
			s.took, s.control = append(s.took, a.Took), append(s.control, c.Took)
			if a.Waited() {
				s.waits++
			}
		}
	}
}
