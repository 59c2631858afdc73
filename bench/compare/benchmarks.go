// Benchmarks of Go in two checkouts.

package compare

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// benchTime is how long a benchmark runs in a round.
var benchTime = "100ms" // tests shorten it

// Benchmarks measures the benchmarks of a package, such as ./kit/logline, whose names match a pattern. It compiles the tests of
// the package in two checkouts and runs both in turns. A benchmark that only one of them has is left out.
func Benchmarks(ctx context.Context, log io.Writer, checkouts [2]string, pkg, pattern string) (_ []Figure, err error) {
	dir, err := os.MkdirTemp("", "understudy-compare-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var programs [2]*exec.Cmd
	for side, checkout := range checkouts {
		program := filepath.Join(dir, fmt.Sprintf("%d.test", side))
		build := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), "test", "-c", "-trimpath", "-o", program, pkg)
		build.Dir = checkout
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s in %s: %w\n%s", pkg, checkout, err, out)
		}
		programs[side] = exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench="+pattern, "-test.benchmem", "-test.benchtime="+benchTime)
		programs[side].Dir = filepath.Join(checkout, pkg)
	}
	var all results
	err = Turns(ctx, log, pkg, func(side int) error {
		run := *programs[side]
		out, err := run.CombinedOutput()
		if err != nil {
			return fmt.Errorf("the benchmarks in %s: %w\n%s", run.Dir, err, out)
		}
		found, err := all.add(side, out)
		if err == nil && found == 0 {
			err = fmt.Errorf("%s has no benchmark that matches %q", run.Dir, pattern)
		}
		return err
	})
	return all.both(), err
}

// results collects the numbers of benchmarks from what they print.
type results struct {
	figures []Figure
	at      map[[2]string]int // of a figure, by name and unit
}

// add reads the output of a run, and returns how many benchmarks it found.
func (r *results) add(side int, out []byte) (found int, err error) {
	if r.at == nil {
		r.at = map[[2]string]int{}
	}
	for from := benchfmt.NewReader(bytes.NewReader(out), ""); from.Scan(); {
		switch line := from.Result().(type) {
		case *benchfmt.SyntaxError:
			return found, line
		case *benchfmt.Result:
			found++
			for _, v := range line.Values {
				if v.OrigUnit != "" {
					v.Value, v.Unit = v.OrigValue, v.OrigUnit // ns/op instead of sec/op
				}
				r.note(side, line.Name.String(), v)
			}
		}
	}
	return found, nil
}

func (r *results) note(side int, name string, v benchfmt.Value) {
	at, ok := r.at[[2]string{name, v.Unit}]
	if !ok {
		at = len(r.figures)
		r.at[[2]string{name, v.Unit}] = at
		more := strings.HasSuffix(v.Unit, "/s") || strings.HasSuffix(v.Unit, "/sec")
		r.figures = append(r.figures, Figure{Name: name, Unit: v.Unit, More: more})
	}
	r.figures[at].Add(side, v.Value)
}

// both returns the figures that both sides have, without those that are always 0, such as the allocations of a good benchmark.
func (r *results) both() (out []Figure) {
	for _, f := range r.figures {
		if len(f.Before) > 0 && len(f.After) > 0 && slices.Max(f.Before)+slices.Max(f.After) > 0 {
			out = append(out, f)
		}
	}
	return out
}
