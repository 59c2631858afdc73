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

// Run is what a part is given: the options, a scratch folder, and a report.
type Run struct {
	Options
	*report
	Dir string
}

// RunAll runs parts one after the other. One that fails does not stop the rest.
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

// runOne runs a part in a fresh folder and writes its results.
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

// Times is how often something is done: full, or a few in a smoke.
func (r *Run) Times(full, quick int) int {
	if r.Quick {
		return quick
	}
	return full
}

// Long is how long something takes; no time in a smoke.
func (r *Run) Long(full time.Duration) time.Duration {
	if r.Quick {
		return min(full, 150*time.Millisecond)
	}
	return full
}
