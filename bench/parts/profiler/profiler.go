// Package profiler is a part of the bench. It measures how much slower answers are while a profile is taken.
package profiler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/rig"
)

// Measure measures the warm drop-in page with 16 clients while no profile, one of
// allocations and one of processor time is taken, in alternating rounds.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	g, err := r.Rig(ctx, rig.Setup{Mirror: "newest: 2h, older: 2h, settled_age: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	uri := rig.Calls + "?PageSize=50"
	if _, _, err := rig.Stored(ctx, g, uri); err != nil {
		return err
	}
	d := r.FindDriver()
	b := &rig.Beside{Run: r, Driver: d, Rig: g, URI: uri}
	long := r.Long(4 * time.Second)
	kinds := []string{"none", "allocs", "cpu"}
	head := []string{"16 clients; profile"}
	for _, kind := range kinds {
		head = append(head, kind+", req/s", "CPU us/req", "p99 ms")
	}
	rows := [][]string{head}
	over := map[string][]float64{}
	for round := range r.Times(15, 2) {
		row, cells := []string{fmt.Sprintf("round %d", round+1)}, make([]rig.Measured, len(kinds))
		for i := range kinds {
			n := (i + round) % len(kinds)
			if cells[n], err = whileProfiled(ctx, b, kinds[n], long); err != nil {
				return err
			}
		}
		for i, c := range cells {
			row = append(row, fmt.Sprintf("%.0f", c.Rate), fmt.Sprintf("%.1f", rig.Us(c.Each)), rig.Figure(rig.Ms(c.P99)))
			over[kinds[i]+" CPU"] = append(over[kinds[i]+" CPU"], float64(c.Each)/float64(cells[0].Each)-1)
			over[kinds[i]+" p99"] = append(over[kinds[i]+" p99"], float64(c.P99)/float64(cells[0].P99)-1)
		}
		rows = append(rows, row)
	}
	r.Table(rows)
	for _, kind := range kinds[1:] {
		for _, what := range []string{" p99", " CPU"} {
			o := over[kind+what]
			r.Say("%s more while %s is taken: median %.1f %%, quartiles %.1f to %.1f %%", what[1:], kind,
				100*rig.Median(o), 100*rig.Quantile(o, 0.25), 100*rig.Quantile(o, 0.75))
		}
		r.AtMost("p99 more while a profile of "+kind+" is taken", 100*rig.Median(over[kind+" p99"]), 2, "%")
	}
	return nil
}

// whileProfiled measures a load while a profile of the kind is taken.
func whileProfiled(ctx context.Context, b *rig.Beside, kind string, long time.Duration) (m rig.Measured, err error) {
	w := rig.NewClient(b.Rig.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	taken := make(chan error, 1)
	if kind == "none" {
		taken <- nil
	} else {
		go func() {
			a, err := w.Get(ctx, fmt.Sprintf("/-/profile/%s?for=%s&format=json", kind, long+500*time.Millisecond))
			if err == nil && a.Status != 200 {
				err = fmt.Errorf("the profile: status %d", a.Status)
			}
			taken <- err
		}()
	}
	m, err = b.Measure(ctx, b.Rig.Serve, b.Rig.Serve.Addresses["twilio"], "gzip", 16, long)
	return m, errors.Join(err, <-taken)
}
