// Package memory is a part of the bench. It measures how soon a restarted server answers, how many pages it stores, and
// how much memory it uses.
package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/rig"
)

// Measure measures resident memory after many pages, the first page after a
// restart, and how many packed pages a byte limit holds.
func Measure(ctx context.Context, r *rig.Run) error {
	if err := resident(ctx, r); err != nil {
		return err
	}
	return density(ctx, r)
}

// resident walks a thousand pages and compares the server's resident memory
// with what it was at its start; then restarts it again and again.
func resident(ctx context.Context, r *rig.Run) (err error) {
	pages := r.Size(1000, 20)
	g, err := r.Rig(ctx, rig.Fast(pages))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	began, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	n, err := readAll(ctx, g, pages)
	if err != nil {
		return err
	}
	walked, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	if err := rig.Pause(ctx, r.Long(5*time.Second)); err != nil {
		return err
	}
	rested, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	own, err := g.Counted(ctx)
	if err != nil {
		return err
	}
	r.Table([][]string{
		{"resident memory, hot: 25MiB", "MiB"},
		{"at start", rig.Figure(float64(began) / rig.Mib)},
		{fmt.Sprintf("after %d pages", n), rig.Figure(float64(walked) / rig.Mib)},
		{"5 s later", rig.Figure(float64(rested) / rig.Mib)},
		{fmt.Sprintf("hot tier's own count, %d pages", own.Hot.Pages), rig.Figure(float64(own.Hot.Bytes) / rig.Mib)},
	})
	r.AtMost("resident memory after the pages, less that at start", float64(max(walked, rested)-began)/rig.Mib, 25+20, "MiB")
	r.Say("")
	return restarts(ctx, r, g)
}

// restarts times the very first request of a started server, over a fresh
// connection, for a page it held before.
func restarts(ctx context.Context, r *rig.Run, g *rig.Rig) error {
	var newest, deep []time.Duration
	page, err := g.Through().Page(ctx, rig.Calls)
	if err != nil {
		return err
	}
	second, err := page.Next()
	if err != nil {
		return err
	}
	for i := range r.Times(20, 2) {
		if err := g.Restart(ctx); err != nil {
			return err
		}
		uri, took := rig.Calls, &newest
		if i%2 == 1 {
			uri, took = second, &deep
		}
		w := g.Through()
		a, err := w.Page(ctx, uri)
		w.Close()
		if err != nil {
			return err
		}
		if a.Waited() {
			return fmt.Errorf("the first page after a restart was not held: %s", a.Header.Get("Cache-Status"))
		}
		*took = append(*took, a.Took)
	}
	r.Table([][]string{rig.SpreadHead, rig.Spread("first page after a restart: newest", newest), rig.Spread("first page after a restart: second", deep)})
	all := append(newest, deep...)
	r.AtMost("first page after a restart, median", rig.Ms(rig.Median(all)), 5, "ms")
	r.AtMost("first page after a restart, slowest", rig.Ms(rig.Quantile(all, 1)), 5, "ms")
	r.Say("")
	return nil
}

// Logrole, which this project succeeds, kept 8,300 pages in 25 MiB; the walk has
// to bring more than that.
const (
	logrolePages = 8300
	densityPages = 9000
)

// density walks more pages than the limit holds and asks how many it does.
func density(ctx context.Context, r *rig.Run) (err error) {
	g, err := r.Rig(ctx, rig.Fast(r.Size(densityPages, 20)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	n, err := readAll(ctx, g, r.Size(densityPages, 20))
	if err != nil {
		return err
	}
	own, err := g.Counted(ctx)
	if err != nil {
		return err
	}
	rss, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	r.Say("after %d pages the hot tier holds %d in %s of %s MiB, bookkeeping counted: %d bytes a page; resident %s MiB",
		n, own.Hot.Pages, rig.Figure(float64(own.Hot.Bytes)/rig.Mib), rig.Figure(float64(own.Hot.Limit)/rig.Mib), own.Hot.Bytes/max(1, own.Hot.Pages), rig.Figure(float64(rss)/rig.Mib))
	r.AtLeast("packed pages of 50 calls in 25 MiB", float64(own.Hot.Pages), 4200, "")
	r.AtLeast("packed pages of 50 calls in 25 MiB, as many as Logrole held", float64(own.Hot.Pages), logrolePages, "")
	return nil
}

// readAll walks the list through Understudy.
func readAll(ctx context.Context, g *rig.Rig, pages int) (int, error) {
	w := g.Through()
	defer w.Close()
	return w.Walk(ctx, rig.Calls, pages, nil)
}
