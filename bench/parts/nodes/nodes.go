// Package nodes is a part of the bench: three processes on one PostgreSQL database.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/parts/feed"
	"understudy/bench/rig"
)

// Measure compares a warm page of one of three processes on PostgreSQL with the same page of a process on SQLite, in turns. Then it times
// changes that one process saves until they reach subscribers of another.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	held := r.Size(20_000, 1000)
	s := rig.Fast(held / 50)
	s.Mirror = "memory: 25MiB, newest: 2h, older: 2h, settled_age: 24h, default_age: 24h"
	single, err := r.Rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, single.Close()) }()
	dsn, stop, err := rig.StartPostgres()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	g, err := r.Rig(ctx, s.OnPostgres(dsn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	var others []*rig.Child
	for i := range 2 {
		c, err := g.Another(ctx, fmt.Sprint("node", i+2))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Stop()) }()
		others = append(others, c)
	}
	if err := compareWarm(ctx, r, single, g); err != nil {
		return err
	}
	r.Say("")
	return feed.MeasureNodes(ctx, r, g, others[0], held)
}

// compareWarm measures a warm page at both rigs in turns. The rig that goes first changes each round.
func compareWarm(ctx context.Context, r *rig.Run, single, several *rig.Rig) error {
	d := r.FindDriver()
	rigs := [2]*rig.Rig{single, several}
	var targets [2]rig.Target
	for i, g := range rigs {
		targets[i] = rig.Aim(g.Serve.Addresses["twilio"]+rig.Calls+"?PageSize=50", "gzip", 16, r.Long(3*time.Second))
		if _, err := d.Run(ctx, targets[i]); err != nil {
			return err
		}
		if err := g.Calm(ctx); err != nil {
			return err
		}
	}
	rows, ratios := [][]string{{"warm page, 16 clients", "CPU us, one on SQLite", "CPU us, one of three", "ratio"}}, []float64{}
	for round := range r.Times(9, 2) {
		var got [2]rig.Measured
		for i := range got {
			var err error
			n := (i + round) % 2
			if got[n], err = d.Measure(ctx, rigs[n].Serve, targets[n]); err != nil {
				return err
			}
		}
		ratios = append(ratios, float64(got[1].Each)/float64(max(1, got[0].Each)))
		rows = append(rows, []string{fmt.Sprintf("round %d", round+1), rig.Figure(rig.Us(got[0].Each)), rig.Figure(rig.Us(got[1].Each)), rig.Figure(ratios[round])})
	}
	r.Table(rows)
	r.Say("times the CPU: median %s, quartiles %s to %s", rig.Figure(rig.Median(ratios)), rig.Figure(rig.Quantile(ratios, 0.25)), rig.Figure(rig.Quantile(ratios, 0.75)))
	r.AtMost("CPU a warm request at one of three processes, upper quartile", rig.Quantile(ratios, 0.75), 1.05, "times that of one process on SQLite")
	return nil
}
