// Cold: what Understudy adds to a page that upstream has to be asked for.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cold reads keys nobody asked for before, one at a time. What Understudy adds
// is the client's time less upstream's own, as Server-Timing tells it. Because
// both figures come from the product, the same is measured from outside too:
// against an upstream without latency, cold pages through Understudy are
// compared with the same pages read directly.
func cold(ctx context.Context, r *run) error {
	n := r.times(100, 5)
	over, err := coldOver(ctx, r, n)
	if err != nil {
		return err
	}
	direct, through, err := coldOutside(ctx, r, n)
	if err != nil {
		return err
	}
	r.table([][]string{
		spreadHead,
		spread("over upstream's own time, latency 100 ms", over),
		spread("no latency: through, cold", through),
		spread("no latency: direct", direct),
	})
	outside := ms(median(through)) - ms(median(direct))
	r.say("from outside, without latency: %s ms more than direct at the median", figure(outside))
	r.atMost("cold page over upstream's own time, median", ms(median(over)), 5, "ms")
	return nil
}

func coldOver(ctx context.Context, r *run, n int) (over []time.Duration, err error) {
	g, err := r.rig(ctx, Setup{latency: 100 * time.Millisecond, settings: []string{"rate: 1000"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	w := g.through()
	defer w.close()
	for i := range n {
		a, err := w.page(ctx, coldKey(i))
		if err != nil {
			return nil, err
		}
		own, err := a.upstream()
		if err != nil {
			return nil, err
		}
		over = append(over, a.took-own)
		// Let the prefetch that follows a read page be over before the next one.
		if err := pause(ctx, 150*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return over, nil
}

func coldOutside(ctx context.Context, r *run, n int) (direct, through []time.Duration, err error) {
	g, err := r.rig(ctx, Setup{settings: []string{"rate: 1000"}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	d, t := g.direct(), g.through()
	defer d.close()
	defer t.close()
	for i := range n {
		a, err := d.page(ctx, coldKey(i))
		if err != nil {
			return nil, nil, err
		}
		b, err := t.page(ctx, coldKey(i))
		if err != nil {
			return nil, nil, err
		}
		direct, through = append(direct, a.took), append(through, b.took)
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
	return direct, through, nil
}

// coldKey is one of many keys whose pages are all the size of the usual one:
// 50 calls by the number of the page.
func coldKey(i int) string { return fmt.Sprintf("%s?PageSize=50&Page=%d", calls, i%100) }
