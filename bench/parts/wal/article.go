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
	"strings"
	"time"

	"understudy/bench/rig"
)

// line is an entry as the article's log writes it: one line of JSON.
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

// article measures all ways in turn.
func article(ctx context.Context, r *rig.Run) error {
	rates := make([][]float64, len(ways))
	for round := range r.Times(21, 2) {
		for i := range ways {
			n := (i + round) % len(ways)
			rate, err := linesOf(ctx, r, ways[n].do)
			if err != nil {
				return fmt.Errorf("%s: %w", ways[n].name, err)
			}
			rates[n] = append(rates[n], rate)
		}
	}
	top := 0.0
	for _, of := range rates {
		top = max(top, rig.Quantile(of, 0.95))
	}
	table := [][]string{{"lines a second, each flushed", "p5", "p25", "p50", "p75", "p95", "0 to " + rig.Figure(top)}}
	for i, way := range ways {
		row := []string{way.name}
		for _, q := range quantiles {
			row = append(row, rig.Figure(rig.Quantile(rates[i], q)))
		}
		table = append(table, append(row, box(rates[i], top)))
	}
	r.Table(table)
	var fair []float64
	for i := range rates[2] {
		fair = append(fair, rates[3][i]/rates[2][i])
	}
	off := rig.Median(fair) - 1
	r.AtMost("one write, with a buffer beside without, off by", 100*max(off, -off), 5, "%")
	return nil
}

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
	began, long := time.Now(), r.Long(300*time.Millisecond)
	for ctx.Err() == nil && time.Since(began) < long {
		e.Version++
		if err := do(f, w, e); err != nil {
			return 0, err
		}
	}
	return float64(e.Version) / time.Since(began).Seconds(), ctx.Err()
}

var quantiles = []float64{0.05, 0.25, 0.5, 0.75, 0.95}

// box draws the quantiles: whiskers from 5 to 95 %, a box from 25 to 75 %, the median.
func box(of []float64, top float64) string {
	const wide = 60
	drawn := []rune(strings.Repeat(" ", wide+1))
	at := make([]int, len(quantiles))
	for i, q := range quantiles {
		at[i] = int(rig.Quantile(of, q) / top * wide)
	}
	for x := at[0]; x <= at[4]; x++ {
		drawn[x] = '─'
	}
	for x := at[1]; x <= at[3]; x++ {
		drawn[x] = '▒'
	}
	drawn[at[0]], drawn[at[4]], drawn[at[2]] = '├', '┤', '┃'
	return strings.TrimRight(string(drawn), " ")
}
