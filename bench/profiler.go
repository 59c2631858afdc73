// Profiler: what taking a profile costs those who are answered meanwhile.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// profiler measures the warm drop-in page with 16 clients while no profile, one of
// allocations and one of processor time is taken, in alternating rounds.
func profiler(ctx context.Context, r *run) (err error) {
	g, err := r.rig(ctx, Setup{mirror: "newest: 2h, older: 2h, final: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	uri := calls + "?PageSize=50"
	if _, _, err := stored(ctx, g, uri); err != nil {
		return err
	}
	d := r.findDriver()
	b := &beside{run: r, driver: d, rig: g, uri: uri}
	long := r.long(4 * time.Second)
	kinds := []string{"none", "allocs", "cpu"}
	head := []string{"16 clients; profile"}
	for _, kind := range kinds {
		head = append(head, kind+", req/s", "CPU us/req", "p99 ms")
	}
	rows := [][]string{head}
	over := map[string][]float64{}
	for round := range r.times(15, 2) {
		row, cells := []string{fmt.Sprintf("round %d", round+1)}, make([]measured, len(kinds))
		for i := range kinds {
			n := (i + round) % len(kinds)
			if cells[n], err = whileProfiled(ctx, b, kinds[n], long); err != nil {
				return err
			}
		}
		for i, c := range cells {
			row = append(row, fmt.Sprintf("%.0f", c.rate), fmt.Sprintf("%.1f", us(c.each)), figure(ms(c.p99)))
			over[kinds[i]+" CPU"] = append(over[kinds[i]+" CPU"], float64(c.each)/float64(cells[0].each)-1)
			over[kinds[i]+" p99"] = append(over[kinds[i]+" p99"], float64(c.p99)/float64(cells[0].p99)-1)
		}
		rows = append(rows, row)
	}
	r.table(rows)
	for _, kind := range kinds[1:] {
		for _, what := range []string{" p99", " CPU"} {
			o := over[kind+what]
			r.say("%s more while %s is taken: median %.1f %%, quartiles %.1f to %.1f %%", what[1:], kind,
				100*median(o), 100*quantile(o, 0.25), 100*quantile(o, 0.75))
		}
		r.atMost("p99 more while a profile of "+kind+" is taken", 100*median(over[kind+" p99"]), 2, "%")
	}
	return nil
}

// whileProfiled measures a load while a profile of the kind is taken.
func whileProfiled(ctx context.Context, b *beside, kind string, long time.Duration) (m measured, err error) {
	w := NewClient(b.rig.serve.addresses["viewer"], "", "")
	defer w.close()
	taken := make(chan error, 1)
	if kind == "none" {
		taken <- nil
	} else {
		go func() {
			a, err := w.get(ctx, fmt.Sprintf("/-/profile/%s?for=%s&format=json", kind, long+500*time.Millisecond))
			if err == nil && a.status != 200 {
				err = fmt.Errorf("the profile: status %d", a.status)
			}
			taken <- err
		}()
	}
	m, err = b.measure(ctx, b.rig.serve, b.rig.serve.addresses["twilio"], "gzip", 16, long)
	return m, errors.Join(err, <-taken)
}
