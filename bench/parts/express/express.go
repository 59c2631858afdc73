// Package express is a part of the bench: a page that is held, beside servers that keep bytes:
// nginx, Varnish, bare net/http and an epoll loop.
package express

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/rig"
)

// server is one of those that are compared.
type server struct {
	name string
	*rig.Child
	address string
}

// cell is one load, and what is wanted of it.
type cell struct {
	encoding          string
	clients, together int
	want              want
}

// Measure measures all with the same load, one after the other in every round, the one that
// goes first changing: 16 clients with gzip and without, then one client, then 16 requests in
// each write; then once more without access logs.
func Measure(ctx context.Context, r *rig.Run) error {
	err := measure(ctx, r, true, []cell{
		{"gzip", 16, 1, want{rate: 1.25, cpu: 0.70, loop: 0.9}},
		{"identity", 16, 1, want{rate: 0.80, cpu: 1.0, loop: 0.9}},
		{"gzip", 1, 1, want{p50: 0.95}},
		{"gzip", 16, 16, want{rate: 3}},
	})
	if err != nil {
		return err
	}
	return measure(ctx, r, false, []cell{{"gzip", 16, 1, want{rate: 1.25, cpu: 0.70, loop: 0.9}}})
}

func measure(ctx context.Context, r *rig.Run, logs bool, cells []cell) (err error) {
	setup, said := rig.Setup{Mirror: "newest: 2h, older: 2h, settled_age: 24h"}, "to files, as it is by default here, but for Varnish, which has none"
	if !logs {
		setup.Log, said = "access: off", "off"
	}
	g, err := r.Rig(ctx, setup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	uri := rig.Calls + "?PageSize=50"
	plain, zipped, err := rig.Stored(ctx, g, uri)
	if err != nil {
		return err
	}
	all, stop, err := start(ctx, r, g, plain, zipped, logs)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	d := r.FindDriver()
	r.Say("the page: %d bytes, %d gzipped; load by %s; access logs %s", len(plain), len(zipped), d.Name, said)
	b := &rig.Beside{Run: r, Driver: d, Rig: g, URI: uri}
	for _, c := range cells {
		if err := compare(ctx, b, all, c); err != nil {
			return err
		}
	}
	return nil
}

// start starts the others; nginx and Varnish keep what the bare server gives.
func start(ctx context.Context, r *rig.Run, g *rig.Rig, plain, zipped []byte, logs bool) (all []server, stop func() error, err error) {
	all = []server{{"understudy", g.Serve, g.Serve.Addresses["twilio"]}}
	stop = func() (err error) {
		for i := len(all) - 1; i > 0; i-- {
			err = errors.Join(err, all[i].Stop())
		}
		return err
	}
	bare, err := r.Bare(ctx, plain, zipped)
	if err != nil {
		return all, stop, err
	}
	up := bare.Addresses["bare"]
	all = append(all, server{"net/http", bare, up})
	for _, one := range []struct {
		name  string
		start func() (*rig.Child, error)
	}{
		{"nginx", func() (*rig.Child, error) { return r.Nginx(ctx, up, "", logs) }},
		{"varnish", func() (*rig.Child, error) { return r.Varnish(ctx, up) }},
		{"loop", func() (*rig.Child, error) { return r.Loop(ctx, plain, zipped) }},
	} {
		c, err := one.start()
		switch {
		case errors.Is(err, rig.ErrNoPeer):
			r.Say("%v: left out", err)
			continue
		case err != nil:
			return all, stop, err
		}
		all = append(all, server{one.name, c, c.Addresses[one.name]})
	}
	return all, stop, nil
}

// want are bounds: of requests a second and CPU a request over nginx's, of requests a second
// over the loop's, of the median time over nginx's. 0: none.
type want struct{ rate, cpu, loop, p50 float64 }

// compare measures one cell.
func compare(ctx context.Context, b *rig.Beside, all []server, c cell) error {
	w, load := c.want, fmt.Sprintf("%d clients, %s", c.clients, c.encoding)
	if c.together > 1 {
		load += fmt.Sprintf(", %d requests in a write", c.together)
	}
	head := []string{load + ": requests/s, CPU us each, p50 ms"}
	for _, s := range all {
		head = append(head, s.name, "", "")
	}
	rows := [][]string{head}
	ratios := map[string][]float64{}
	for round := range b.Times(9, 2) {
		row, got := []string{fmt.Sprintf("round %d", round+1)}, map[string]rig.Measured{}
		for i := range all {
			s := all[(i+round)%len(all)]
			aim := rig.Aim(s.address+b.URI, c.encoding, c.clients, b.Long(4*time.Second))
			if c.together > 1 {
				aim.Together = c.together
			}
			m, err := b.Driver.Measure(ctx, s.Child, aim)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			got[s.name] = m
		}
		for _, s := range all {
			m := got[s.name]
			row = append(row, fmt.Sprintf("%.0f", m.Rate), fmt.Sprintf("%.1f", float64(m.Each)/1e3), rig.Figure(rig.Ms(m.P50)))
		}
		rows = append(rows, row)
		ours := got["understudy"]
		if n, ok := got["nginx"]; ok {
			ratios["rate"] = append(ratios["rate"], ours.Rate/n.Rate)
			ratios["cpu"] = append(ratios["cpu"], float64(ours.Each)/float64(max(1, n.Each)))
			ratios["p50"] = append(ratios["p50"], float64(ours.P50)/float64(max(1, n.P50)))
		}
		ratios["loop"] = append(ratios["loop"], ours.Rate/got["loop"].Rate)
	}
	b.Table(rows)
	title := ", " + load
	low, high := func(name string) float64 { return rig.Quantile(ratios[name], 0.25) }, func(name string) float64 { return rig.Quantile(ratios[name], 0.75) }
	if w.rate > 0 {
		b.AtLeast("requests a second, lower quartile"+title, low("rate"), w.rate, "of nginx's")
	}
	if w.cpu > 0 {
		b.AtMost("CPU a request, upper quartile"+title, high("cpu"), w.cpu, "of nginx's")
		b.AtLeast("requests a second, lower quartile"+title, low("loop"), w.loop, "of an epoll loop's")
	}
	if w.p50 > 0 {
		b.AtMost("median time, upper quartile"+title, high("p50"), w.p50, "of nginx's")
	}
	b.Say("")
	return nil
}
