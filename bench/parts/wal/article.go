// Article: the log of an article, with and without a buffer in front of its file, as box plots.

package wal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"understudy/bench/rig"
)

// line is an entry as the article's log writes it: one line of JSON, the value in base64.
type line struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	Value   []byte `json:"value"`
}

// The article's header has a fixed size, so that it can be written again in place.
const headerSize = 64

// way is one way to write a line and flush it. w is a buffer to use again.
type way struct {
	name string
	do   func(f *os.File, w *bufio.Writer, e line) error
}

// ways are the article's two, and the fair ones: with and without a buffer, one write
// of the same bytes each. The header is left out there: what a log has to know at its
// beginning does not change with every entry.
var ways = []way{
	{"six steps, no buffer", func(f *os.File, _ *bufio.Writer, e line) error { return steps(f, false, e) }},
	{"six steps, a new buffer a write", func(f *os.File, _ *bufio.Writer, e line) error { return steps(f, true, e) }},
	{"one write, no buffer", func(f *os.File, _ *bufio.Writer, e line) error {
		data, err := json.Marshal(e)
		if err == nil {
			_, err = f.Write(append(data, '\n'))
		}
		return errors.Join(err, f.Sync())
	}},
	{"one write, one buffer", func(f *os.File, w *bufio.Writer, e line) error {
		w.Reset(f)
		data, err := json.Marshal(e)
		if err == nil {
			_, _ = w.Write(append(data, '\n')) // an error stays for Flush
			err = w.Flush()
		}
		return errors.Join(err, f.Sync())
	}},
}

// steps are the article's six for one entry: marshal, write at the end, back to the
// beginning, write the header, to the end again, fsync. The writer is the file itself,
// or a buffer in front of it.
func steps(f *os.File, buffered bool, e line) error {
	write := func(b []byte) error {
		if !buffered {
			_, err := f.Write(b)
			return err
		}
		w := bufio.NewWriter(f)
		_, err := w.Write(b)
		return errors.Join(err, w.Flush())
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := write(append(data, '\n')); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := write(fmt.Appendf(nil, "%-*d\n", headerSize-1, e.Version)); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	return f.Sync()
}

// MeasureRates returns the names of the article's ways, and of kit/wal with one writer, and the entries a second of each
// in every round. The ways run in turns.
func MeasureRates(ctx context.Context, r *rig.Run, rounds int) (names []string, rates [][]float64, err error) {
	rates = make([][]float64, len(ways)+1)
	for n := range rates {
		names = append(names, nameOf(n))
	}
	for round := range rounds {
		for i := range rates {
			n := (i + round) % len(rates)
			rate := 0.0
			if n < len(ways) {
				rate, err = linesOf(ctx, r, ways[n].do)
			} else {
				rate, err = rateOf(ctx, r, logs[0], 1, lineTime)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", nameOf(n), err)
			}
			rates[n] = append(rates[n], rate)
		}
	}
	return names, rates, nil
}

// Article measures all ways in turn, and kit/wal with one writer beside them.
func Article(ctx context.Context, r *rig.Run) error {
	names, rates, err := MeasureRates(ctx, r, r.Times(41, 2))
	if err != nil {
		return err
	}
	table := [][]string{{"entries a second, each flushed", "p5", "p25", "p50", "p75", "p95"}}
	var boxes []rig.Box
	for i := range rates {
		row, box := []string{names[i]}, rig.Box{Name: names[i]}
		for n, q := range []float64{0.05, 0.25, 0.5, 0.75, 0.95} {
			box.Quantiles[n] = rig.Quantile(rates[i], q)
			row = append(row, rig.Figure(box.Quantiles[n]))
		}
		table, boxes = append(table, row), append(boxes, box)
	}
	r.Table(table)
	for _, pair := range []struct {
		what string
		a, b int
	}{{"six steps, a buffer beside none", 1, 0}, {"six steps beside one write, no buffer", 0, 2}, {"kit/wal beside one write, no buffer", 4, 2}} {
		r.Say("%s: %s times, the median of the rounds", pair.what, rig.Figure(rig.Median(each(rates[pair.a], rates[pair.b]))))
	}
	off := rig.Median(each(rates[3], rates[2])) - 1
	r.AtMost("one write, with a buffer beside without, off by", 100*max(off, -off), 5, "%")
	return r.Draw("buffers.svg", rig.BoxPlot("Entries a second, each flushed: 5, 25, 50, 75 and 95 % of "+
		fmt.Sprint(len(rates[0]))+" rounds in turn", boxes))
}

// nameOf is what a row of the comparison is called.
func nameOf(n int) string {
	if n < len(ways) {
		return ways[n].name
	}
	return "kit/wal, one writer, no JSON"
}

// each returns a divided by b for each round, because a disturbance in a round affects both.
func each(a, b []float64) (times []float64) {
	for i := range a {
		times = append(times, a[i]/b[i])
	}
	return times
}

// lineTime is how long one way is measured in a round.
const lineTime = 300 * time.Millisecond

func linesOf(ctx context.Context, r *rig.Run, do func(*os.File, *bufio.Writer, line) error) (rate float64, err error) {
	f, err := os.Create(filepath.Join(r.Dir, "lines"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := fmt.Fprintf(f, "%-*d\n", headerSize-1, 0); err != nil {
		return 0, err
	}
	w, e := bufio.NewWriter(nil), line{Key: "foo", Value: make([]byte, 128)}
	began, long := time.Now(), r.Long(lineTime)
	for ctx.Err() == nil && time.Since(began) < long {
		e.Version++
		if err := do(f, w, e); err != nil {
			return 0, err
		}
	}
	return float64(e.Version) / time.Since(began).Seconds(), ctx.Err()
}
