// Package wal is a part of the bench: durable entries in a log, beside bbolt, SQLite and tidwall/wal.
package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"understudy/bench/rig"
	"understudy/kit/wal"
)

// Measure appends entries of 128 bytes from one, 16 and 64 writers, with all logs in
// turn, and opens a large log again.
func Measure(ctx context.Context, r *rig.Run) error {
	rates := map[int]map[string][]float64{}
	for _, writers := range []int{1, 16, 64} {
		var err error
		if rates[writers], err = compare(ctx, r, writers); err != nil {
			return err
		}
	}
	r.AtLeast("one writer, beside SQLite, median", rig.Median(ratios(rates[1], ours, sqlite)), 1, "times")
	best := ratios(rates[16], ours, bestPeer(rates[16]))
	r.AtLeast("16 writers, beside the best peer, lower quartile", rig.Quantile(best, 0.25), 4, "times")
	alone := rig.Median(rates[1][ours])
	r.AtLeast("64 writers, beside one of our own, median", rig.Median(rates[64][ours])/alone, 10, "times")
	return reopen(ctx, r)
}

// compare gives the entries a second of each log, of every round.
func compare(ctx context.Context, r *rig.Run, writers int) (map[string][]float64, error) {
	rates := map[string][]float64{}
	for round := range r.Times(9, 2) {
		for i := range logs {
			l := logs[(i+round)%len(logs)]
			rate, err := rateOf(ctx, r, l, writers, 500*time.Millisecond)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			rates[l.name] = append(rates[l.name], rate)
		}
	}
	table := [][]string{{fmt.Sprintf("durable entries a second, %d at once", writers), "p25", "p50", "p75"}}
	for _, l := range logs {
		row := []string{l.name}
		for _, q := range []float64{0.25, 0.5, 0.75} {
			row = append(row, rig.Figure(rig.Quantile(rates[l.name], q)))
		}
		table = append(table, row)
	}
	r.Table(table)
	return rates, nil
}

// rateOf opens a new log and appends to it for a while.
func rateOf(ctx context.Context, r *rig.Run, l log, writers int, long time.Duration) (rate float64, err error) {
	dir, err := os.MkdirTemp(r.Dir, "log")
	if err != nil {
		return 0, err
	}
	put, end, err := l.open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end(), os.RemoveAll(dir)) }()
	entry := make([]byte, 128)
	if err := put(ctx, entry); err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	counts, errs := make([]int, writers), make([]error, writers)
	began, long := time.Now(), r.Long(long)
	for w := range writers {
		all.Go(func() {
			for ; errs[w] == nil && time.Since(began) < long; counts[w]++ {
				errs[w] = put(ctx, entry)
			}
		})
	}
	all.Wait()
	took, sum := time.Since(began), 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / took.Seconds(), errors.Join(errs...)
}

// bestPeer is the peer with the highest median.
func bestPeer(rates map[string][]float64) (name string) {
	for _, l := range logs[1:] {
		if name == "" || rig.Median(rates[l.name]) > rig.Median(rates[name]) {
			name = l.name
		}
	}
	return name
}

func ratios(rates map[string][]float64, a, b string) []float64 {
	return each(rates[a], rates[b])
}

// reopen fills a log and opens it anew, and reads it from its beginning to its end.
func reopen(ctx context.Context, r *rig.Run) (err error) {
	const entry = 4 << 10
	n := r.Size(1<<30, 16<<20) / entry
	dir := filepath.Join(r.Dir, "large")
	l, err := wal.Open(dir, wal.Options{})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, 64)
	for w := range errs {
		all.Go(func() {
			data := make([]byte, entry)
			for i := w; i < n && errs[w] == nil; i += len(errs) {
				_, errs[w] = l.Append(ctx, data)
			}
		})
	}
	all.Wait()
	if err := errors.Join(append(errs, l.Close())...); err != nil {
		return err
	}
	began := time.Now()
	if l, err = wal.Open(dir, wal.Options{}); err != nil {
		return err
	}
	opened := time.Since(began)
	defer func() { err = errors.Join(err, l.Close(), os.RemoveAll(dir)) }()
	read := 0
	began = time.Now()
	for _, err := range l.Entries(0) {
		if err != nil {
			return err
		}
		read++
	}
	r.Say("a log of %d MiB in files of 64: opened in %s ms, read to its end in %s ms, its bytes in the page cache",
		n*entry>>20, rig.Figure(rig.Ms(opened)), rig.Figure(rig.Ms(time.Since(began))))
	r.Exactly("entries read of the large log", read, n)
	r.AtMost("opening it", opened.Seconds(), 1, "s")
	return nil
}
