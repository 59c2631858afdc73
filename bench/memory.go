// Memory: how soon a restarted server answers, what it holds, what it weighs.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// memory measures resident memory after many pages, the first page after a
// restart, and how many packed pages a byte limit holds.
func memory(ctx context.Context, r *run) error {
	if err := resident(ctx, r); err != nil {
		return err
	}
	return density(ctx, r)
}

// resident walks a thousand pages and compares the server's resident memory
// with what it was at its start; then restarts it again and again.
func resident(ctx context.Context, r *run) (err error) {
	pages := r.times(1000, 20)
	g, err := r.rig(ctx, fast(pages))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	began, err := g.serve.resident()
	if err != nil {
		return err
	}
	n, err := readAll(ctx, g, pages)
	if err != nil {
		return err
	}
	walked, err := g.serve.resident()
	if err != nil {
		return err
	}
	if err := pause(ctx, r.long(5*time.Second)); err != nil {
		return err
	}
	rested, err := g.serve.resident()
	if err != nil {
		return err
	}
	own, err := g.counted(ctx)
	if err != nil {
		return err
	}
	r.table([][]string{
		{"resident memory, hot: 25MiB", "MiB"},
		{"at start", figure(float64(began) / mib)},
		{fmt.Sprintf("after %d pages", n), figure(float64(walked) / mib)},
		{"5 s later", figure(float64(rested) / mib)},
		{fmt.Sprintf("hot tier's own count, %d pages", own.Hot.Pages), figure(float64(own.Hot.Bytes) / mib)},
	})
	r.atMost("resident memory after the pages, less that at start", float64(max(walked, rested)-began)/mib, 25+20, "MiB")
	r.say("")
	return restarts(ctx, r, g)
}

// restarts times the very first request of a started server, over a fresh
// connection, for a page it held before.
func restarts(ctx context.Context, r *run, g *Rig) error {
	var newest, deep []time.Duration
	page, err := g.through().page(ctx, calls)
	if err != nil {
		return err
	}
	second, err := page.next()
	if err != nil {
		return err
	}
	for i := range r.times(20, 2) {
		if err := g.restart(ctx); err != nil {
			return err
		}
		uri, took := calls, &newest
		if i%2 == 1 {
			uri, took = second, &deep
		}
		w := g.through()
		a, err := w.page(ctx, uri)
		w.close()
		if err != nil {
			return err
		}
		if a.waited() {
			return fmt.Errorf("the first page after a restart was not held: %s", a.header.Get("Cache-Status"))
		}
		*took = append(*took, a.took)
	}
	r.table([][]string{spreadHead, spread("first page after a restart: newest", newest), spread("first page after a restart: second", deep)})
	all := append(newest, deep...)
	r.atMost("first page after a restart, median", ms(median(all)), 5, "ms")
	r.atMost("first page after a restart, slowest", ms(quantile(all, 1)), 5, "ms")
	r.say("")
	return nil
}

// density walks more pages than the limit holds and asks how many it does.
func density(ctx context.Context, r *run) (err error) {
	g, err := r.rig(ctx, fast(r.times(6000, 20)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	n, err := readAll(ctx, g, r.times(6000, 20))
	if err != nil {
		return err
	}
	own, err := g.counted(ctx)
	if err != nil {
		return err
	}
	rss, err := g.serve.resident()
	if err != nil {
		return err
	}
	r.say("after %d pages the hot tier holds %d in %s of %s MiB, bookkeeping counted: %d bytes a page; resident %s MiB",
		n, own.Hot.Pages, figure(float64(own.Hot.Bytes)/mib), figure(float64(own.Hot.Limit)/mib), own.Hot.Bytes/max(1, own.Hot.Pages), figure(float64(rss)/mib))
	r.atLeast("packed pages of 50 calls in 25 MiB", float64(own.Hot.Pages), 4200, "")
	return nil
}

// readAll walks the list through Understudy.
func readAll(ctx context.Context, g *Rig, pages int) (int, error) {
	w := g.through()
	defer w.close()
	return w.walk(ctx, calls, pages, nil)
}
