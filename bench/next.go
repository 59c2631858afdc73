// Next: the page after the one just read, when a person gets to it.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// next reads pages in order and lets one upstream latency pass between them:
// by then the following page has been fetched ahead. The simulated API takes
// its latency give or take a fifth, so the wait is the longest it can take.
func next(ctx context.Context, r *run) (err error) {
	latency, chains, steps := time.Second, r.times(5, 1), r.times(6, 2)
	if r.quick {
		latency = 200 * time.Millisecond
	}
	g, err := r.rig(ctx, Setup{latency: latency})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	w := g.through()
	defer w.close()
	wait := latency * 6 / 5
	var took, first []time.Duration
	joined := 0
	for chain := range chains {
		uri := fmt.Sprintf("%s?PageSize=%d", calls, 50-chain)
		for step := range steps + 1 {
			a, err := w.page(ctx, uri)
			if err != nil {
				return err
			}
			if step == 0 {
				first = append(first, a.took)
			} else {
				took = append(took, a.took)
				if a.waited() {
					joined++
				}
			}
			if uri, err = a.next(); err != nil {
				return err
			}
			if err := pause(ctx, wait); err != nil {
				return err
			}
		}
	}
	r.table([][]string{spreadHead, spread("first page of a list, cold", first), spread(fmt.Sprintf("next page, asked %v later", wait), took)})
	r.say("of them %d joined a fetch that was just landing", joined)
	r.atMost("next page one upstream latency later, median", ms(median(took)), 10, "ms")
	r.atMost("next page one upstream latency later, slowest", ms(quantile(took, 1)), 10, "ms")
	return nil
}
