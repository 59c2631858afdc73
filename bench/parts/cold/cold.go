// Package cold is a part of the bench: what Understudy adds to a page that upstream has to be
// asked for.
package cold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/rig"
)

// Measure reads keys that were not requested before, one at a time. What Understudy
// adds is the client's time less upstream's own, as Server-Timing reports it. Because
// both figures come from the product, the same is measured from outside too:
// against an upstream without latency, cold pages through Understudy are
// compared with the same pages read directly.
func Measure(ctx context.Context, r *rig.Run) error {
	n := r.Times(100, 5)
	over, err := coldOver(ctx, r, n)
	if err != nil {
		return err
	}
	direct, through, err := coldOutside(ctx, r, n)
	if err != nil {
		return err
	}
	r.Table([][]string{
		rig.SpreadHead,
		rig.Spread("over upstream's own time, latency 100 ms", over),
		rig.Spread("no latency: through, cold", through),
		rig.Spread("no latency: direct", direct),
	})
	outside := rig.Ms(rig.Median(through)) - rig.Ms(rig.Median(direct))
	r.Say("from outside, without latency: %s ms more than direct at the median", rig.Figure(outside))
	r.AtMost("cold page over upstream's own time, median", rig.Ms(rig.Median(over)), 5, "ms")
	return nil
}

func coldOver(ctx context.Context, r *rig.Run, n int) (over []time.Duration, err error) {
	g, err := r.Rig(ctx, rig.Setup{Latency: 100 * time.Millisecond, Settings: []string{"rate: 1000"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	for i := range n {
		a, err := w.Page(ctx, coldKey(i))
		if err != nil {
			return nil, err
		}
		own, err := a.Upstream()
		if err != nil {
			return nil, err
		}
		over = append(over, a.Took-own)
		// Let the prefetch that follows a read page be over before the next one.
		if err := rig.Pause(ctx, 150*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return over, nil
}

func coldOutside(ctx context.Context, r *rig.Run, n int) (direct, through []time.Duration, err error) {
	g, err := r.Rig(ctx, rig.Setup{Settings: []string{"rate: 1000"}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	d, t := g.Direct(), g.Through()
	defer d.Close()
	defer t.Close()
	for i := range n {
		a, err := d.Page(ctx, coldKey(i))
		if err != nil {
			return nil, nil, err
		}
		b, err := t.Page(ctx, coldKey(i))
		if err != nil {
			return nil, nil, err
		}
		direct, through = append(direct, a.Took), append(through, b.Took)
		if err := rig.Pause(ctx, 50*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
	return direct, through, nil
}

// coldKey is one of many keys whose pages are all the size of the usual one:
// 50 calls by the number of the page.
func coldKey(i int) string { return fmt.Sprintf("%s?PageSize=50&Page=%d", rig.Calls, i%100) }
