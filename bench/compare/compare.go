// Package compare tells whether a change made a figure better, worse, or neither. It uses the mathematics of benchstat
// (golang.org/x/perf/benchmath): the medians, and the Mann-Whitney U test, which assumes nothing about the distribution.
package compare

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/perf/benchmath"
)

const (
	// Samples is how often each side is measured.
	Samples = 20
	// Alpha is the probability below which a difference counts. If nothing changed, about one figure in a hundred is still called better
	// or worse. With benchstat's usual 0.05 it would be one in twenty, too many for a table of a dozen figures.
	Alpha = 0.01
	// confidence is that of the interval around a median.
	confidence = 0.95
)

// Figure is a number that was measured several times before a change and after it.
type Figure struct {
	Name, Unit    string
	More          bool // whether more of it is better
	Before, After []float64
}

// Add adds a sample of one side: 0 is before, 1 is after.
func (f *Figure) Add(side int, value float64) {
	if side == 0 {
		f.Before = append(f.Before, value)
	} else {
		f.After = append(f.After, value)
	}
}

// Verdict is what can be said about a figure.
type Verdict string

// The verdicts. Same means that no difference was proved.
const (
	Better Verdict = "better"
	Worse  Verdict = "worse"
	Same   Verdict = "same"
)

// Judge returns the verdict, the change of the median as benchstat prints it, such as "-3.12%", and the probability p that
// two equal sides differ by as much.
func (f Figure) Judge() (v Verdict, change string, p float64) {
	c := benchmath.AssumeNothing.Compare(newSample(f.Before), newSample(f.After))
	was, is := median(f.Before).Center, median(f.After).Center
	v, change = Same, c.FormatDelta(was, is)
	if c.P <= c.Alpha && was != is { // as FormatDelta
		if v = Worse; (is > was) == f.More {
			v = Better
		}
	}
	return v, change, c.P
}

func newSample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: Alpha})
}

func median(values []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(newSample(values), confidence)
}

// Table returns a table of figures: the medians with their intervals, the change, p, n and the verdict. worse is the number of
// figures that are worse.
func Table(title string, figures []Figure) (rows [][]string, worse int) {
	rows = [][]string{{title, "before", "", "after", "", "", "change", "p", "n", ""}}
	for _, f := range figures {
		v, change, p := f.Judge()
		row := []string{f.Name}
		for _, side := range [][]float64{f.Before, f.After} {
			m := median(side)
			row = append(row, fmt.Sprintf("%.4g", m.Center), "±"+m.PctRangeString())
		}
		rows = append(rows, append(row, f.Unit, change, fmt.Sprintf("%.3f", p), fmt.Sprintf("%d+%d", len(f.Before), len(f.After)), string(v)))
		if v == Worse {
			worse++
		}
	}
	return rows, worse
}

// Turns calls measure Samples times for each side, 0 for before and 1 for after, in pairs. Each side is first
// in half of the pairs, which chance chooses. It prints the time that is left to log.
func Turns(ctx context.Context, log io.Writer, what string, measure func(side int) error) error {
	began := time.Now()
	order := rand.Perm(Samples)
	for round := range Samples {
		first := order[round] % 2
		for i := range 2 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := measure((first + i) % 2); err != nil {
				return fmt.Errorf("round %d: %w", round+1, err)
			}
		}
		left := time.Since(began) / time.Duration(round+1) * time.Duration(Samples-round-1)
		fmt.Fprintf(log, "%s: %d of %d rounds, %v left\n", what, round+1, Samples, left.Round(time.Second))
	}
	return nil
}
