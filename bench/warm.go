// Warm: a page that is held, beside a bare handler with the same bytes.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// warm measures the drop-in's answer from memory: the time of one client
// alone, then requests a second of 16 clients beside a bare net/http server
// that hands out the same bytes, both with Go's default of all cores and both
// asked with the same headers, in alternating rounds.
func warm(ctx context.Context, r *run) (err error) {
	// Fresh throughout: this is about answering, not about refreshing.
	g, err := r.rig(ctx, Setup{mirror: "newest: 2h, older: 2h, final: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	uri := calls + "?PageSize=50"
	plain, zipped, err := stored(ctx, g, uri)
	if err != nil {
		return err
	}
	bareServer, err := r.bare(ctx, plain, zipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bareServer.stop()) }()
	d := r.findDriver()
	r.say("the page: %d bytes, %d gzipped; load by %s; access log to a file, as it is by default", len(plain), len(zipped), d.name)
	r.say("")
	b := &beside{run: r, driver: d, bare: bareServer, rig: g, uri: uri}
	if err := alone(ctx, b); err != nil {
		return err
	}
	for _, encoding := range []string{"gzip", "identity"} {
		if err := bySixteen(ctx, b, encoding); err != nil {
			return err
		}
	}
	return insideWarm(ctx, r, d, b.aim(uri, "gzip", 16, r.long(4*time.Second)))
}

// alone is one client, one request at a time.
func alone(ctx context.Context, b *beside) error {
	rows := [][]string{{"one client", "p50 ms", "p99 ms", "bare p50 ms", "bare p99 ms"}}
	slowest := 0.0
	for _, encoding := range []string{"gzip", "identity"} {
		var ours, bare [2][]time.Duration
		for round := range b.times(3, 1) {
			o, n, err := b.pair(ctx, round, encoding, 1, b.long(2*time.Second))
			if err != nil {
				return err
			}
			ours[0], ours[1] = append(ours[0], o.p50), append(ours[1], o.p99)
			bare[0], bare[1] = append(bare[0], n.p50), append(bare[1], n.p99)
		}
		slowest = max(slowest, ms(median(ours[0])))
		rows = append(rows, []string{encoding, figure(ms(median(ours[0]))), figure(ms(median(ours[1]))), figure(ms(median(bare[0]))), figure(ms(median(bare[1])))})
	}
	b.table(rows)
	b.atMost("warm page at one client, p50", slowest, 1, "ms")
	b.say("")
	return nil
}

// bySixteen is 16 clients; the ratio is taken within each round.
func bySixteen(ctx context.Context, b *beside, encoding string) error {
	rows := [][]string{{"16 clients, " + encoding, "req/s", "CPU us/req", "p50 ms", "p99 ms", "bare req/s", "CPU us/req", "p50 ms", "p99 ms", "ratio"}}
	var ratios []float64
	for round := range b.times(9, 2) {
		o, n, err := b.pair(ctx, round, encoding, 16, b.long(4*time.Second))
		if err != nil {
			return err
		}
		ratios = append(ratios, o.rate/n.rate)
		row := []string{fmt.Sprintf("round %d", round+1)}
		for _, m := range []measured{o, n} {
			row = append(row, fmt.Sprintf("%.0f", m.rate), fmt.Sprintf("%.1f", float64(m.each)/1e3), figure(ms(m.p50)), figure(ms(m.p99)))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.3f", o.rate/n.rate)))
	}
	b.table(rows)
	low, mid, high := quantile(ratios, 0.25), median(ratios), quantile(ratios, 0.75)
	b.say("ratio %s: median %.3f, quartiles %.3f to %.3f", encoding, mid, low, high)
	b.atLeast("requests a second beside a bare handler, "+encoding+", lower quartile", low, 0.85, "of it")
	b.say("")
	return nil
}
