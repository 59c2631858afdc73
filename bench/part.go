// Part: one measurement, what it is given, and how it is run.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// part is one measurement.
type part struct {
	name, about string
	run         func(ctx context.Context, r *run) error
}

// run is what a part is given: the options, a scratch folder, and a report.
type run struct {
	options
	*report
	dir string
}

// runAll runs parts one after the other. One that fails does not stop the rest.
func runAll(ctx context.Context, o options, chosen []part, out io.Writer) error {
	var errs []error
	for _, p := range chosen {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if err := runOne(ctx, o, p, out); err != nil {
			fmt.Fprintf(out, "could not be measured: %v\n\n", err)
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}

// runOne runs a part in a fresh folder and writes its results.
func runOne(ctx context.Context, o options, p part, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "understudy-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{options: o, report: newReport(out), dir: dir}
	r.head(p, o)
	if err := p.run(ctx, r); err != nil {
		return err
	}
	r.say("")
	if o.results == "" {
		return nil
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.results, p.name+".txt"), r.text(), 0o644)
}

// times is how often something is done: full, or a few in a smoke.
func (r *run) times(full, quick int) int {
	if r.quick {
		return quick
	}
	return full
}

// long is how long something takes; no time in a smoke.
func (r *run) long(full time.Duration) time.Duration {
	if r.quick {
		return min(full, 150*time.Millisecond)
	}
	return full
}
