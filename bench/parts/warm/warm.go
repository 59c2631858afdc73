// Package warm is a part of the bench: a page that is held, beside a bare handler with the same
// bytes.
package warm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/inside"
	"understudy/bench/rig"
)

// Measure measures the drop-in's answer from memory: the time of one client
// alone, then requests a second of 16 clients beside a bare net/http server
// that hands out the same bytes, both with Go's default of all cores and both
// asked with the same headers, in alternating rounds.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	// Fresh throughout: this is about answering, not about refreshing.
	g, err := r.Rig(ctx, rig.Setup{Mirror: "newest: 2h, older: 2h, settled_age: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	uri := rig.Calls + "?PageSize=50"
	plain, zipped, err := rig.Stored(ctx, g, uri)
	if err != nil {
		return err
	}
	bareServer, err := r.Bare(ctx, plain, zipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bareServer.Stop()) }()
	d := r.FindDriver()
	r.Say("the page: %d bytes, %d gzipped; load by %s; access log to a file, as it is by default", len(plain), len(zipped), d.Name)
	r.Say("")
	b := &rig.Beside{Run: r, Driver: d, Bare: bareServer, Rig: g, URI: uri}
	if err := alone(ctx, b); err != nil {
		return err
	}
	for _, encoding := range []string{"gzip", "identity"} {
		if err := bySixteen(ctx, b, encoding); err != nil {
			return err
		}
	}
	if r.Turn {
		return nil
	}
	return inside.Warm(ctx, r, d, rig.Aim(uri, "gzip", 16, r.Long(4*time.Second)))
}

// alone is one client, one request at a time.
func alone(ctx context.Context, b *rig.Beside) error {
	rows := [][]string{{"one client", "p50 ms", "p99 ms", "bare p50 ms", "bare p99 ms"}}
	slowest := 0.0
	for _, encoding := range []string{"gzip", "identity"} {
		var ours, bare [2][]time.Duration
		for round := range b.Times(3, 1) {
			o, n, err := b.Pair(ctx, round, encoding, 1, b.Long(2*time.Second))
			if err != nil {
				return err
			}
			ours[0], ours[1] = append(ours[0], o.P50), append(ours[1], o.P99)
			bare[0], bare[1] = append(bare[0], n.P50), append(bare[1], n.P99)
		}
		slowest = max(slowest, rig.Ms(rig.Median(ours[0])))
		rows = append(rows, []string{encoding, rig.Figure(rig.Ms(rig.Median(ours[0]))), rig.Figure(rig.Ms(rig.Median(ours[1]))), rig.Figure(rig.Ms(rig.Median(bare[0]))), rig.Figure(rig.Ms(rig.Median(bare[1])))})
	}
	b.Table(rows)
	b.AtMost("warm page at one client, p50", slowest, 1, "ms")
	b.Say("")
	return nil
}

// bySixteen is 16 clients; the ratio is taken within each round.
func bySixteen(ctx context.Context, b *rig.Beside, encoding string) error {
	rows := [][]string{{"16 clients, " + encoding, "req/s", "CPU us/req", "p50 ms", "p99 ms", "bare req/s", "CPU us/req", "p50 ms", "p99 ms", "ratio"}}
	var ratios []float64
	for round := range b.Times(9, 2) {
		o, n, err := b.Pair(ctx, round, encoding, 16, b.Long(4*time.Second))
		if err != nil {
			return err
		}
		ratios = append(ratios, o.Rate/n.Rate)
		row := []string{fmt.Sprintf("round %d", round+1)}
		for _, m := range []rig.Measured{o, n} {
			row = append(row, fmt.Sprintf("%.0f", m.Rate), fmt.Sprintf("%.1f", float64(m.Each)/1e3), rig.Figure(rig.Ms(m.P50)), rig.Figure(rig.Ms(m.P99)))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.3f", o.Rate/n.Rate)))
	}
	b.Table(rows)
	low, mid, high := rig.Quantile(ratios, 0.25), rig.Median(ratios), rig.Quantile(ratios, 0.75)
	b.Say("ratio %s: median %.3f, quartiles %.3f to %.3f", encoding, mid, low, high)
	b.AtLeast("requests a second beside a bare handler, "+encoding+", lower quartile", low, 0.85, "of it")
	b.Say("")
	return nil
}
