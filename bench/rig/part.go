// Package rig is what every part of the bench uses: options and report, the two
// processes under measurement, a timed client, loads, and quantiles.
package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Part is one measurement.
type Part struct {
	Name, About string
	Run         func(ctx context.Context, r *Run) error
}

// Run has what a part needs: the options, a folder for its files, and a report.
type Run struct {
	Options
	*report
	Dir string
}

// RunAll runs parts one after the other. If a part fails, the others still run.
func RunAll(ctx context.Context, o Options, chosen []Part, out io.Writer) error {
	var errs []error
	for _, p := range chosen {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if err := runOne(ctx, o, p, out); err != nil {
			fmt.Fprintf(out, "could not be measured: %v\n\n", err)
			errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// runOne runs a part in a new folder and writes its results.
func runOne(ctx context.Context, o Options, p Part, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "understudy-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &Run{Options: o, report: newReport(out), Dir: dir}
	r.head(p, o)
	if err := p.Run(ctx, r); err != nil {
		return err
	}
	r.Say("")
	if o.Results == "" {
		return nil
	}
	if err := os.MkdirAll(o.Results, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Results, p.Name+".txt"), r.text(), 0o644)
}

// turnsAlone is how many turns of a comparison take as many samples as a part alone.
const turnsAlone = 9

// Times returns how often something is done: full, a ninth of it in a round of a comparison, or quick in a quick
// run.
func (r *Run) Times(full, quick int) int {
	switch {
	case r.Quick:
		return quick
	case r.Turn:
		return (full + turnsAlone - 1) / turnsAlone
	}
	return full
}

// mostInTurn is the maximum number of records in a round of a comparison.
const mostInTurn = 100_000

// Size returns a number of records: full, at most mostInTurn in a round of a comparison, or quick in a quick run.
func (r *Run) Size(full, quick int) int {
	switch {
	case r.Quick:
		return quick
	case r.Turn:
		return min(full, mostInTurn)
	}
	return full
}

// Long returns how long a measurement lasts: full, a quarter of it in a round of a comparison, or at most 150 ms
// in a quick run.
func (r *Run) Long(full time.Duration) time.Duration {
	switch {
	case r.Quick:
		return min(full, 150*time.Millisecond)
	case r.Turn:
		return full / 4
	}
	return full
}
