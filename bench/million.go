// Million: a million call records on disk.

package main

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
)

// million fills a data folder by walking a million calls in pages of 1,000,
// asks `understudy store stats` what they take, and times the start of a
// server on that folder: from making the process to the end of the first
// answer with a held page. The mirror's ages are long, so that the first page
// is still held when the walk is over.
func million(ctx context.Context, r *run) (err error) {
	records := r.times(1_000_000, 2000)
	s := fast(records / 50)
	s.mirror = "hot: 25MiB, newest: 24h, older: 24h"
	g, err := r.rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := fill(ctx, r, g, records); err != nil {
		return err
	}
	if err := g.serve.stop(); err != nil {
		return err
	}
	perRecord, err := storeStats(ctx, r, g)
	if err != nil {
		return err
	}
	search, err := r.tables(ctx, filepath.Join(g.dir, "data", "understudy.db"), records)
	if err != nil {
		return err
	}
	var served []time.Duration
	for range r.times(9, 2) {
		took, err := startAndAsk(ctx, g)
		if err != nil {
			return err
		}
		served = append(served, took)
	}
	r.table([][]string{spreadHead, spread("from start to the first answer", served)})
	r.atMost("serving after start, slowest of the starts", ms(quantile(served, 1)), 500, "ms")
	r.atMost("bytes a record, without the words of search", perRecord-search, 450, "bytes")
	r.atMost("bytes a record, all in", perRecord, 550, "bytes")
	return g.begin(ctx)
}

// fill walks all records and says how fast that went.
func fill(ctx context.Context, r *run, g *Rig, records int) error {
	w := g.through()
	defer w.close()
	before, err := g.serve.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := w.walk(ctx, calls+"?PageSize=1000", records, nil)
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := g.serve.cpu()
	if err != nil {
		return err
	}
	rss, err := g.serve.resident()
	if err != nil {
		return err
	}
	r.table([][]string{
		{"filling", "pages", "seconds", "records/s", "CPU us/record", "resident MiB"},
		{fmt.Sprintf("%d calls by 1,000", records), fmt.Sprint(n), figure(took.Seconds()), figure(float64(records) / took.Seconds()),
			figure(float64((after - before).Microseconds()) / float64(records)), figure(float64(rss) / mib)},
	})
	return nil
}

var bytesPerRecord = regexp.MustCompile(`([0-9.]+) bytes per record`)

// storeStats runs the command and shows what it prints.
func storeStats(ctx context.Context, r *run, g *Rig) (perRecord float64, err error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, g.bin, "store", "stats", "--data", filepath.Join(g.dir, "data"))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("store stats: %w: %s", err, stderr.Bytes())
	}
	r.say("understudy store stats")
	r.say("%s", out)
	m := bytesPerRecord.FindSubmatch(out)
	if m == nil {
		return 0, errors.New("store stats names no bytes per record")
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// startAndAsk starts the server, asks for a held page, and stops it.
func startAndAsk(ctx context.Context, g *Rig) (took time.Duration, err error) {
	if err := g.begin(ctx); err != nil {
		return 0, err
	}
	w := g.through()
	defer w.close()
	a, err := w.page(ctx, calls+"?PageSize=1000")
	took = time.Since(g.serve.started)
	if err == nil && a.waited() {
		err = fmt.Errorf("the page was not held: %s", a.header.Get("Cache-Status"))
	}
	return took, errors.Join(err, g.serve.stop())
}
