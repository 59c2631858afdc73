// Compare: what two programs do, part by part, in turns.

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy/bench/place"
)

// rounds is how often a comparison measures a part with each program.
const rounds = 9

// figure is a number that a part has measured and compared with a target.
type figure struct {
	what, unit string
	value      float64
	more       bool // more of it is better
}

// Compare measures each part in rounds, each round once with the program of the checkout o.Old and once with this
// program. The program that is measured first changes with each round. Compare writes a table of all figures to
// o.Results. In a round, a part takes a ninth of its samples and a quarter of its time. A figure is called better
// or worse if both quartiles of its ratios are on the same side of 1. A part that fails is left out of the table,
// and Compare returns its error.
func Compare(ctx context.Context, o Options, chosen []Part, out io.Writer) (err error) {
	sides := [2]Options{o, o}
	sides[0].Bin, sides[0].Self = filepath.Join(o.Old, "bin", "understudy"), filepath.Join(o.Old, "bin", "bench")
	for i := range sides {
		sides[i].Turn = true
		for _, program := range []string{sides[i].Bin, sides[i].Self} {
			if _, err := os.Stat(program); err != nil {
				return fmt.Errorf("%w; in the checkout: make build && (cd bench && go build -o ../bin/bench .)", err)
			}
		}
	}
	r := newReport(out)
	r.Say("before and after: each part in %d rounds with each program, in turns, the one that goes first changing", rounds)
	r.Say("date      %s", time.Now().UTC().Format(time.RFC3339))
	r.Say("before    %s", place.Revision(o.Old))
	r.Say("after     %s", place.Revision("."))
	r.Say("machine   %s", place.Machine())
	r.Say("command   %s", o.Command)
	r.Say("")
	r.Say("A round takes a ninth of the samples of a part alone and holds at most %d records. before, after: medians;", mostInTurn)
	r.Say("ratio: after over before within a round, median and quartiles. worse, better: the quartiles lie on that side of 1.")
	r.Say("")
	var errs []error
	for _, p := range chosen {
		began := time.Now()
		got, err := turns(ctx, sides, p)
		if err != nil {
			r.Say("%s could not be measured: %v\n", p.Name, err)
			errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
			continue
		}
		r.Table(compared(p.Name, got))
		fmt.Fprintf(out, "%s took %v\n\n", p.Name, time.Since(began).Round(time.Second))
		if o.Results != "" {
			errs = append(errs, os.WriteFile(filepath.Join(o.Results, o.As+".txt"), r.text(), 0o644))
		}
	}
	return errors.Join(errs...)
}

// turns measures a part in all rounds and returns its figures by program and round.
func turns(ctx context.Context, sides [2]Options, p Part) (got [2][rounds][]figure, err error) {
	for round := range rounds {
		for i := range sides {
			side := (i + round) % 2
			if got[side][round], err = turn(ctx, sides[side], p); err != nil {
				return got, err
			}
		}
	}
	for _, side := range got {
		for round, figures := range side {
			if len(figures) != len(got[0][0]) {
				return got, fmt.Errorf("a run of round %d has %d figures, the first one %d", round+1, len(figures), len(got[0][0]))
			}
		}
	}
	return got, nil
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

// compared returns the table of a part. Figures with the same name and unit keep their order.
func compared(part string, got [2][rounds][]figure) [][]string {
	rows := [][]string{{part, "before", "after", "ratio", "quartiles", "", ""}}
	for n, f := range got[1][0] {
		var sides [2][]float64
		var ratios []float64
		for round := range rounds {
			for side := range sides {
				sides[side] = append(sides[side], got[side][round][n].value)
			}
			ratios = append(ratios, sides[1][round]/sides[0][round])
		}
		row := []string{f.what, Figure(Median(sides[0])), Figure(Median(sides[1])), "", "", f.unit, ""}
		if min(slices.Min(sides[0]), slices.Min(sides[1])) > 0 {
			low, high := Quantile(ratios, 0.25), Quantile(ratios, 0.75)
			row[3], row[4], row[6] = fmt.Sprintf("%.3f", Median(ratios)), fmt.Sprintf("%.3f to %.3f", low, high), verdict(low, high, f.more)
		}
		rows = append(rows, row)
	}
	return rows
}

// verdict returns whether the new program is better or worse. It returns "" if the quartiles of the ratios are on
// both sides of 1.
func verdict(low, high float64, more bool) string {
	switch {
	case low > 1 && more, high < 1 && !more:
		return "better"
	case low > 1, high < 1:
		return "worse"
	}
	return ""
}
