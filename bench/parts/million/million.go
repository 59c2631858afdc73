// Package million is a part of the bench: a million call records on disk.
package million

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"understudy/bench/rig"
)

// Measure fills a data folder by walking a million calls in pages of 1,000,
// asks `understudy store stats` what they take, and times the start of a
// server on that folder: from making the process to the end of the first
// answer with a held page. The mirror's ages are long, so that the first page
// is still held when the walk is over.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	records := r.Size(1_000_000, 2000)
	s := rig.Fast(records / 50)
	s.Mirror = "memory: 25MiB, newest: 24h, older: 24h"
	g, err := r.Rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := fill(ctx, r, g, records); err != nil {
		return err
	}
	if err := g.Serve.Stop(); err != nil {
		return err
	}
	perRecord, err := storeStats(ctx, r, g)
	if err != nil {
		return err
	}
	search, err := r.Tables(ctx, filepath.Join(g.Dir, "data", "understudy.db"), records)
	if err != nil {
		return err
	}
	var served []time.Duration
	for range r.Times(9, 2) {
		took, err := startAndAsk(ctx, g)
		if err != nil {
			return err
		}
		served = append(served, took)
	}
	r.Table([][]string{rig.SpreadHead, rig.Spread("from start to the first answer", served)})
	r.AtMost("serving after start, slowest of the starts", rig.Ms(rig.Quantile(served, 1)), 500, "ms")
	r.AtMost("bytes a record, without the words of search", perRecord-search, 450, "bytes")
	r.AtMost("bytes a record, all in", perRecord, 550, "bytes")
	return g.Begin(ctx)
}

// fill walks all records and says how fast that went.
func fill(ctx context.Context, r *rig.Run, g *rig.Rig, records int) error {
	w := g.Through()
	defer w.Close()
	before, err := g.Serve.Cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := w.Walk(ctx, rig.Calls+"?PageSize=1000", records, nil)
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := g.Serve.Cpu()
	if err != nil {
		return err
	}
	rss, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	r.Table([][]string{
		{"filling", "pages", "seconds", "records/s", "CPU us/record", "resident MiB"},
		{fmt.Sprintf("%d calls by 1,000", records), fmt.Sprint(n), rig.Figure(took.Seconds()), rig.Figure(float64(records) / took.Seconds()),
			rig.Figure(float64((after - before).Microseconds()) / float64(records)), rig.Figure(float64(rss) / rig.Mib)},
	})
	return nil
}

var bytesPerRecord = regexp.MustCompile(`([0-9.]+) bytes per record`)

// storeStats runs the command and shows what it prints.
func storeStats(ctx context.Context, r *rig.Run, g *rig.Rig) (perRecord float64, err error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, g.Bin, "store", "stats", "--data", filepath.Join(g.Dir, "data"))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("store stats: %w: %s", err, stderr.Bytes())
	}
	r.Say("understudy store stats")
	r.Say("%s", out)
	m := bytesPerRecord.FindSubmatch(out)
	if m == nil {
		return 0, errors.New("store stats names no bytes per record")
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// startAndAsk starts the server, asks for a held page, and stops it.
func startAndAsk(ctx context.Context, g *rig.Rig) (took time.Duration, err error) {
	if err := g.Begin(ctx); err != nil {
		return 0, err
	}
	w := g.Through()
	defer w.Close()
	a, err := w.Page(ctx, rig.Calls+"?PageSize=1000")
	took = time.Since(g.Serve.Started)
	if err == nil && a.Waited() {
		err = fmt.Errorf("the page was not held: %s", a.Header.Get("Cache-Status"))
	}
	return took, errors.Join(err, g.Serve.Stop())
}
