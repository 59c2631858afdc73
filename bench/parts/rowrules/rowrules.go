// Package rowrules is a part of the bench: what a warm list costs a role that may find only some
// records.
package rowrules

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"understudy/bench/rig"
)

// Measure measures the list of the drop-in and that of the viewer, as a role that sees all and
// as one with a where rule.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	records := r.Size(1_000_000, 1000)
	s := rig.Fast(records / 50)
	s.Records, s.Settings = records, append(s.Settings, "sync: [calls]")
	s.Mirror = "memory: 25MiB, newest: 24h, older: 24h"
	g, err := r.Held(ctx, s, "calls")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	r.Say("%d calls held; the rule is calls: {where: {status: [completed]}}", records)
	for _, list := range [][2]string{
		{"drop-in", g.Serve.Addresses["twilio"] + rig.Calls + "?PageSize=50"}, {"viewer", g.Serve.Addresses["viewer"] + "/twilio/calls"},
	} {
		if err := compare(ctx, r, g, list[0], list[1]); err != nil {
			return fmt.Errorf("%s: %w", list[0], err)
		}
	}
	return nil
}

// compare measures one list as both roles in turns. The role that goes first changes each round.
func compare(ctx context.Context, r *rig.Run, g *rig.Rig, name, url string) error {
	d := r.FindDriver()
	aim := func(token string) rig.Target {
		basic := base64.StdEncoding.EncodeToString([]byte(rig.Account + ":" + token))
		return rig.Target{URL: url, Headers: []string{"Authorization: Basic " + basic, "Accept-Encoding: gzip", "Accept: */*"},
			Clients: 16, Long: r.Long(3 * time.Second)}
	}
	roles := [2]rig.Target{aim(rig.OurToken), aim(rig.SomeToken)}
	for _, role := range roles {
		if _, err := d.Run(ctx, role); err != nil {
			return err
		}
	}
	if err := g.Calm(ctx); err != nil {
		return err
	}
	rows, ratios := [][]string{{name, "CPU us, sees all", "CPU us, where rule", "ratio"}}, []float64{}
	for round := range r.Times(9, 2) {
		var got [2]rig.Measured
		for i := range got {
			var err error
			n := (i + round) % 2
			if got[n], err = d.Measure(ctx, g.Serve, roles[n]); err != nil {
				return err
			}
		}
		ratios = append(ratios, float64(got[1].Each)/float64(max(1, got[0].Each)))
		rows = append(rows, []string{fmt.Sprintf("round %d", round+1), rig.Figure(rig.Us(got[0].Each)), rig.Figure(rig.Us(got[1].Each)),
			rig.Figure(ratios[round])})
	}
	r.Table(rows)
	r.Say("times the CPU: median %s, quartiles %s to %s", rig.Figure(rig.Median(ratios)), rig.Figure(rig.Quantile(ratios, 0.25)),
		rig.Figure(rig.Quantile(ratios, 0.75)))
	r.AtMost(name+": CPU a request of a role with a where rule, upper quartile", rig.Quantile(ratios, 0.75), 2, "times the role's that sees all")
	r.Say("")
	return nil
}
