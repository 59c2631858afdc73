// CPU: what mirroring a page costs, everything included.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cpu walks a list nobody asked for before, against an upstream without
// latency, and divides the CPU time of the whole server process by the pages
// it fetched: fetching, finding records, saving, packing, answering, logging,
// collecting garbage. A second walk inside this process, with the rooms put
// together as cmd does, is profiled to split the cost.
func cpu(ctx context.Context, r *run) error {
	pages := r.times(1000, 20)
	rows := [][]string{{"walk of new pages, 50 calls each", "pages", "upstream requests", "bytes/page", "seconds", "CPU ms/page"}}
	var each []float64
	for round := range r.times(3, 1) {
		m, err := cpuWalk(ctx, r, pages)
		if err != nil {
			return err
		}
		each = append(each, m.cpu)
		rows = append(rows, []string{fmt.Sprintf("round %d", round+1), fmt.Sprint(m.pages), fmt.Sprint(m.fetches), fmt.Sprint(m.bytes), fmt.Sprintf("%.2f", m.took.Seconds()), fmt.Sprintf("%.2f", m.cpu)})
	}
	r.table(rows)
	if err := inside(ctx, r, pages); err != nil {
		return err
	}
	r.atMost("CPU for each newly mirrored page, median of the rounds", median(each), 2, "ms")
	return nil
}

// cpuWalked is one walk of cpu.
type cpuWalked struct {
	pages, fetches, bytes int
	took                  time.Duration
	cpu                   float64 // ms a page
}

func cpuWalk(ctx context.Context, r *run, pages int) (m cpuWalked, err error) {
	g, err := r.rig(ctx, fast(pages))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	w := g.through()
	defer w.close()
	before, err := g.serve.cpu()
	if err != nil {
		return m, err
	}
	began := time.Now()
	n, err := w.walk(ctx, calls, pages, func(a answer) { m.bytes += len(a.body) })
	if err != nil {
		return m, err
	}
	m.took = time.Since(began)
	// Packing and saving may go on behind the last answer: count that too.
	if err := pause(ctx, 500*time.Millisecond); err != nil {
		return m, err
	}
	after, err := g.serve.cpu()
	if err != nil {
		return m, err
	}
	counts, err := g.asked(ctx)
	// A page fetched twice was mirrored once.
	m.pages, m.fetches, m.bytes = len(counts.ByTarget), counts.Requests, m.bytes/n
	m.cpu = ms(after-before) / float64(m.pages)
	return m, err
}
