// Package restart is a part of the bench: a restart under load, the start of an empty server, and what it uses while nobody asks.
package restart

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"understudy/bench/rig"
)

const (
	restarts = 2 // in a round
	clients  = 8
)

// Measure restarts a server while clients ask for a warm page, and starts servers with empty folders.
func Measure(ctx context.Context, r *rig.Run) error {
	if err := underLoad(ctx, r); err != nil {
		return err
	}
	r.Say("")
	return empty(ctx, r)
}

// underLoad counts requests that fail while the server is restarted.
func underLoad(ctx context.Context, r *rig.Run) (err error) {
	g, err := r.Rig(ctx, rig.Setup{Mirror: "newest: 2h, older: 2h, settled_age: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	uri := rig.Calls + "?PageSize=50"
	if _, _, err := rig.Stored(ctx, g, uri); err != nil {
		return err
	}
	d, long := r.FindDriver(), r.Long(6*time.Second)
	r.Say("%d clients by %s, %d restarts in each round", clients, d.Name, restarts)
	table := [][]string{{"a restart under load", "requests", "p50 ms", "p99 ms", "the command s", "failed"}}
	failed, all := 0, 0
	var slow []time.Duration
	for round := range r.Times(9, 1) {
		done := make(chan error, 1)
		var took []time.Duration
		go func() {
			var errs []error
			for range restarts {
				errs = append(errs, rig.Pause(ctx, long/6))
				began := time.Now()
				out, err := exec.CommandContext(ctx, g.Bin, "restart", "--config", filepath.Join(g.Dir, "understudy.yml")).CombinedOutput()
				if err != nil {
					err = fmt.Errorf("understudy restart: %w\n%s", err, out)
				}
				took, errs = append(took, time.Since(began)), append(errs, err)
			}
			done <- errors.Join(errs...)
		}()
		a := rig.Aim(uri, "gzip", clients, long)
		a.URL = g.Serve.Addresses["twilio"] + a.URL
		l, lerr := d.Run(ctx, a)
		if err := <-done; err != nil {
			return err
		}
		what := "0"
		if lerr != nil {
			failed, what = failed+1, lerr.Error()
		}
		all, slow = all+l.Requests, append(slow, l.P99)
		table = append(table, []string{fmt.Sprintf("round %d", round+1), fmt.Sprint(l.Requests), rig.Figure(rig.Ms(l.P50)), rig.Figure(rig.Ms(l.P99)),
			rig.Figure(rig.Median(took).Seconds()), what})
	}
	r.Table(table)
	r.Exactly("rounds in which a request failed", failed, 0)
	r.AtMost("99 % of the requests, upper quartile of the rounds", rig.Ms(rig.Quantile(slow, 0.75)), 100, "ms")
	r.Say("%d requests", all)
	return nil
}

// empty starts servers with empty folders.
func empty(ctx context.Context, r *rig.Run) error {
	var took []time.Duration
	var idle, resident []float64
	for range r.Times(9, 1) {
		g, err := r.Rig(ctx, rig.Setup{})
		if err != nil {
			return err
		}
		took = append(took, g.Serve.Ready.Sub(g.Serve.Started))
		err = rig.Pause(ctx, r.Long(4*time.Second))
		own, oerr := g.Serve.Own()
		whole, werr := g.Serve.Resident()
		idle, resident = append(idle, float64(own)/1e6), append(resident, float64(whole)/1e6)
		if err := errors.Join(err, oerr, werr, g.Close()); err != nil {
			return err
		}
	}
	r.Table([][]string{
		{"an empty server", "median", "lower quartile", "upper quartile"},
		{"start, ms", rig.Figure(rig.Ms(rig.Median(took))), rig.Figure(rig.Ms(rig.Quantile(took, 0.25))), rig.Figure(rig.Ms(rig.Quantile(took, 0.75)))},
		{"memory while nobody asks, MB", rig.Figure(rig.Median(idle)), rig.Figure(rig.Quantile(idle, 0.25)), rig.Figure(rig.Quantile(idle, 0.75))},
	})
	r.Say("resident with the mapped pages of the program's file, which need no memory when it is short: %s MB", rig.Figure(rig.Median(resident)))
	r.AtMost("start of an empty server, median", rig.Ms(rig.Median(took)), 100, "ms")
	r.AtMost("memory of an idle server, median", rig.Median(idle), 40, "MB")
	return nil
}
