// Package cpu is a part of the bench: what mirroring a page costs, everything included.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/inside"
	"understudy/bench/rig"
)

// Measure walks a list that was not requested before, against an upstream without
// latency. It divides the CPU time of the whole server process by the pages it
// fetched: fetching, finding records, saving, packing, answering, logging,
// collecting garbage. A second walk inside this process, with the packages
// connected as cmd does, is profiled to split the cost.
func Measure(ctx context.Context, r *rig.Run) error {
	pages := r.Size(1000, 20)
	rows := [][]string{{"walk of new pages, 50 calls each", "pages", "upstream requests", "bytes/page", "seconds", "CPU ms/page"}}
	var each []float64
	for round := range r.Times(3, 1) {
		m, err := cpuWalk(ctx, r, pages)
		if err != nil {
			return err
		}
		each = append(each, m.cpu)
		rows = append(rows, []string{fmt.Sprintf("round %d", round+1), fmt.Sprint(m.pages), fmt.Sprint(m.fetches), fmt.Sprint(m.bytes), fmt.Sprintf("%.2f", m.took.Seconds()), fmt.Sprintf("%.2f", m.cpu)})
	}
	r.Table(rows)
	if err := inside.NewPages(ctx, r, pages); err != nil {
		return err
	}
	r.AtMost("CPU for each newly mirrored page, median of the rounds", rig.Median(each), 2, "ms")
	return nil
}

// cpuWalked is one walk of cpu.
type cpuWalked struct {
	pages, fetches, bytes int
	took                  time.Duration
	cpu                   float64 // ms a page
}

func cpuWalk(ctx context.Context, r *rig.Run, pages int) (m cpuWalked, err error) {
	g, err := r.Rig(ctx, rig.Fast(pages))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	before, err := g.Serve.Cpu()
	if err != nil {
		return m, err
	}
	began := time.Now()
	n, err := w.Walk(ctx, rig.Calls, pages, func(a rig.Answer) { m.bytes += len(a.Body) })
	if err != nil {
		return m, err
	}
	m.took = time.Since(began)
	// Packing and saving may go on behind the last answer: count that too.
	if err := rig.Pause(ctx, 500*time.Millisecond); err != nil {
		return m, err
	}
	after, err := g.Serve.Cpu()
	if err != nil {
		return m, err
	}
	counts, err := g.Asked(ctx)
	// A page fetched twice was mirrored once.
	m.pages, m.fetches, m.bytes = len(counts.ByTarget), counts.Requests, m.bytes/n
	m.cpu = rig.Ms(after-before) / float64(m.pages)
	return m, err
}
