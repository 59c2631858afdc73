// Compare: what two programs do, part by part, in turns.

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"understudy/bench/compare"
	"understudy/bench/place"
)

// figure is a number that a part has measured and compared with a target.
type figure struct {
	what, unit string
	value      float64
	more       bool // more of it is better
}

// Compare measures each part with the program of the checkout o.Old and with this program, in turns (see package compare).
// In a turn, a part takes a ninth of its samples and a quarter of its time. If o.Package is set, Compare measures the
// benchmarks of this package of Go instead of parts. It writes a table of all figures to o.Results. A part that cannot
// be measured is left out. It and a figure that is worse lead to an error.
func Compare(ctx context.Context, o Options, chosen []Part, out io.Writer) error {
	r := newReport(out)
	r.Say("before and after: %d rounds with each program, in turns; chance decides which one goes first", compare.Samples)
	r.Say("date      %s", time.Now().UTC().Format(time.RFC3339))
	r.Say("before    %s", place.Revision(o.Old))
	r.Say("after     %s", place.Revision("."))
	r.Say("machine   %s", place.Machine())
	r.Say("command   %s", o.Command)
	r.Say("")
	r.Say("A turn takes a ninth of the samples of a part alone and holds at most %d records. before, after: medians with an", mostInTurn)
	r.Say("interval of 95 %%; p: Mann-Whitney U test. At p > %v there is no difference to speak of (~). In a table without any", compare.Alpha)
	r.Say("change, one figure in %.0f is still called better or worse.", 1/compare.Alpha)
	r.Say("")
	began, worse := time.Now(), 0
	note := func(title string, figures []compare.Figure, err error) error {
		if err != nil {
			r.Say("%s could not be measured: %v\n", title, err)
			return fmt.Errorf("%s: %w", title, err)
		}
		rows, more := compare.Table(title, figures)
		r.Table(rows)
		worse += more
		if o.Results == "" {
			return nil
		}
		return os.WriteFile(filepath.Join(o.Results, o.As+".txt"), r.text(), 0o644)
	}
	var errs []error
	if o.Package != "" {
		figures, err := compare.Benchmarks(ctx, out, [2]string{o.Old, ".."}, o.Package, o.Pattern)
		errs = append(errs, note(o.Package, figures, err))
	} else {
		sides := [2]Options{o, o}
		sides[0].Bin, sides[0].Self = filepath.Join(o.Old, "bin", "understudy"), filepath.Join(o.Old, "bin", "bench")
		for i := range sides {
			sides[i].Turn = true
			for _, program := range []string{sides[i].Bin, sides[i].Self} {
				if _, err := os.Stat(program); err != nil {
					return fmt.Errorf("%w; make bench BASE=revision builds it", err)
				}
			}
		}
		for _, p := range chosen {
			figures, err := turns(ctx, out, sides, p)
			errs = append(errs, note(p.Name, figures, err))
		}
	}
	fmt.Fprintf(out, "took %v\n", time.Since(began).Round(time.Second))
	if worse > 0 {
		errs = append(errs, fmt.Errorf("%d figures are worse than before", worse))
	}
	return errors.Join(errs...)
}

// turns measures a part in all rounds and returns its figures.
func turns(ctx context.Context, log io.Writer, sides [2]Options, p Part) (all []compare.Figure, err error) {
	err = compare.Turns(ctx, log, p.Name, func(side int) error {
		figures, err := turn(ctx, sides[side], p)
		if err != nil {
			return err
		}
		if all == nil {
			for _, f := range figures {
				all = append(all, compare.Figure{Name: f.what, Unit: f.unit, More: f.more})
			}
		}
		if len(figures) != len(all) {
			return fmt.Errorf("it printed %d figures, and %d the first time", len(figures), len(all))
		}
		for i, f := range figures {
			all[i].Add(side, f.value)
		}
		return nil
	})
	return all, err
}

// turn runs a part once and returns its figures. It prints nothing.
func turn(ctx context.Context, o Options, p Part) (_ []figure, err error) {
	dir, err := os.MkdirTemp("", "understudy-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &Run{Options: o, report: newReport(io.Discard), Dir: dir}
	err = p.Run(ctx, r)
	return r.figures, err
}
