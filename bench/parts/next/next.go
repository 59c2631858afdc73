// Package next is a part of the bench: the page after the one just read, when a person gets to it.
package next

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/rig"
)

// Measure reads pages in order and lets one upstream latency pass between them:
// by then the following page has been fetched ahead. The simulated API takes
// its latency give or take a fifth, so the wait is the longest it can take.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	latency, chains, steps := time.Second, r.Times(5, 1), r.Times(6, 2)
	if r.Quick {
		latency = 200 * time.Millisecond
	}
	g, err := r.Rig(ctx, rig.Setup{Latency: latency})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	wait := latency * 6 / 5
	var took, first []time.Duration
	joined := 0
	for chain := range chains {
		uri := fmt.Sprintf("%s?PageSize=%d", rig.Calls, 50-chain)
		for step := range steps + 1 {
			a, err := w.Page(ctx, uri)
			if err != nil {
				return err
			}
			if step == 0 {
				first = append(first, a.Took)
			} else {
				took = append(took, a.Took)
				if a.Waited() {
					joined++
				}
			}
			if uri, err = a.Next(); err != nil {
				return err
			}
			if err := rig.Pause(ctx, wait); err != nil {
				return err
			}
		}
	}
	r.Table([][]string{rig.SpreadHead, rig.Spread("first page of a list, cold", first), rig.Spread(fmt.Sprintf("next page, asked %v later", wait), took)})
	r.Say("of them %d joined a fetch that was just landing", joined)
	r.AtMost("next page one upstream latency later, median", rig.Ms(rig.Median(took)), 10, "ms")
	r.AtMost("next page one upstream latency later, slowest", rig.Ms(rig.Quantile(took, 1)), 10, "ms")
	return nil
}
