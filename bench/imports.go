// Imports: many jobs that bring pages of very different weight, under one limit.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"understudy"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/mirror"
	"understudy/upstream"
)

const (
	importJobs  = 64
	importLimit = 256 * mib
	importBytes = 2 // bytes of memory a walk reckons with for each byte of a page
)

// imported is what the process that imports tells at its end.
type imported struct {
	Done, Failed, Again int64
	Took                time.Duration
	Peak                int64 // of resident memory, bytes
	Weight              int64 // the most that runs weighed together
}

// fixed is how many of the heaviest jobs the limit holds: what one would allow
// at once who does not weigh.
const fixed = importLimit / (importBytes * importJobs * mib)

// imports runs 64 jobs, each of which fills one page of 1 to 64 MB, under the
// limit of memory a server has, and then a fixed number at once, each in a
// process of its own with the rooms a server has.
func imports(ctx context.Context, r *run) error {
	n := r.times(importJobs, 6)
	api, err := start(ctx, r.dir, "slowapi-imports", "slowapi ", r.bin, "slowapi", "--listen", "127.0.0.1:0", "--latency", "100ms", "--records", "20000")
	if err != nil {
		return err
	}
	defer func() { _ = api.stop() }()
	var rules []string
	for i := range n {
		// Every page has a size of its own by which it is padded.
		rules = append(rules, fmt.Sprintf(`{"match":"PageSize=%d","pad_mb":%d}`, 100+i, 1+(i*37)%(importJobs-1)))
	}
	if err := (&rig{api: api}).faults(ctx, "["+strings.Join(rules, ",")+"]"); err != nil {
		return err
	}
	rows := [][]string{{fmt.Sprintf("%d jobs", n), "done", "failed", "begun again", "seconds", "most weighed MiB", "peak resident MiB"}}
	var limited imported
	for _, atOnce := range []int{0, fixed} {
		got, err := importing(ctx, r, api.addresses["slowapi"], n, atOnce)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d at once", atOnce)
		if atOnce == 0 {
			name, limited = fmt.Sprintf("under %d MiB", importLimit/mib), got
		}
		rows = append(rows, []string{name, fmt.Sprint(got.Done), fmt.Sprint(got.Failed), fmt.Sprint(got.Again), figure(got.Took.Seconds()),
			figure(float64(got.Weight) / mib), figure(float64(got.Peak) / mib)})
	}
	r.table(rows)
	r.exactly("jobs that ended well", int(limited.Done), n)
	r.atMost("peak resident memory", float64(limited.Peak)/mib, 1.1*importLimit/mib, "MiB")
	return nil
}

// importing runs the jobs in a process of its own; atOnce 0 is as many as weigh
// no more than the limit.
func importing(ctx context.Context, r *run, address string, n, atOnce int) (got imported, err error) {
	self, err := os.Executable()
	if err != nil {
		return got, err
	}
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "imports", "-api", address, "-n", fmt.Sprint(n), "-once", fmt.Sprint(atOnce),
		"-path", filepath.Join(r.dir, fmt.Sprintf("imports-%d.db", atOnce)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return got, fmt.Errorf("imports: %w: %s", err, stderr.Bytes())
	}
	return got, json.Unmarshal(out.Bytes(), &got)
}

// importer is the process that imports.
func importer(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := newFlags("bench imports", os.Stderr)
	api := fs.String("api", "", "the simulated API")
	n := fs.Int("n", importJobs, "how many jobs")
	once := fs.Int("once", 0, "how many at once; 0 = as many as weigh no more than the limit")
	path := fs.String("path", "", "the database")
	if err := fs.Parse(args); err != nil {
		return err
	}
	spec, err := upstream.BuiltIn("twilio")
	if err != nil {
		return err
	}
	src := &understudy.Source{Name: "twilio", Spec: spec, User: account}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := store.Open(ctx, store.Options{Path: *path, Specs: map[string]*understudy.Spec{src.Name: spec}, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := upstream.New(upstream.Options{Source: src, Base: *api, Secret: understudy.NewSecret(apiToken), Rate: 1000, Concurrency: importJobs, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	m, err := mirror.New(mirror.Options{Sources: []mirror.Source{{Source: src, Upstream: client}}, Store: db, Logger: log})
	if err != nil {
		return err
	}
	// As a server does whose limits.memory that is: jobs weigh half of it.
	debug.SetMemoryLimit(importLimit)
	limit := int64(importLimit / 2)
	if *once > 0 {
		limit = 1 << 40
	}
	i := &intakes{src: src, m: m}
	runner, err := jobs.New(jobs.Options{Store: db, Workers: importJobs, Memory: limit, Alone: true, Logger: log,
		Kinds: []jobs.Kind{{Name: "import page", Run: i.page, Attempts: 20, Concurrency: *once}}})
	if err != nil {
		return err
	}
	return i.run(ctx, runner, client, *n, out)
}

// intakes are the jobs at work.
type intakes struct {
	src    *understudy.Source
	m      *mirror.Mirror
	weight atomic.Int64 // of all runs
	most   atomic.Int64
}

// page fills one page as a walk does: it weighs what the page takes while it is
// read and looked through, and gives that back.
func (i *intakes) page(ctx context.Context, r *jobs.Run) (err error) {
	target, err := i.src.Spec.Target(i.src.Name, calls, string(r.Job().Payload[1:len(r.Job().Payload)-1]))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var mine int64
	weigh := func(ctx context.Context, bytes int64) error {
		mu.Lock()
		defer mu.Unlock()
		if err := r.Weigh(ctx, bytes*importBytes); err != nil {
			return err
		}
		sum := i.weight.Add(bytes*importBytes - mine)
		mine = bytes * importBytes
		for most := i.most.Load(); sum > most && !i.most.CompareAndSwap(most, sum); most = i.most.Load() {
		}
		return nil
	}
	defer func() { err = errors.Join(err, weigh(ctx, 0)) }()
	landed, err := i.m.Fill(ctx, understudy.Fill{Target: target, Reason: understudy.Sync, RecordsOnly: true, Weigh: weigh})
	if err != nil {
		return err
	}
	if n := len(landed.Page.Rows); n < 100 {
		return fmt.Errorf("a page of %d rows", n)
	}
	return nil
}

// run promises the jobs and waits for their ends.
func (i *intakes) run(ctx context.Context, runner *jobs.Runner, client *upstream.Client, n int, out io.Writer) error {
	ctx, end := context.WithTimeout(ctx, 10*time.Minute)
	defer end()
	var all sync.WaitGroup
	for _, task := range []func(context.Context) error{runner.Run, i.m.Run, client.Run, pace} {
		all.Go(func() { _ = task(ctx) })
	}
	began := time.Now()
	for k := range n {
		job := understudy.Job{Kind: "import page", Key: fmt.Sprint(k), Payload: fmt.Appendf(nil, `"PageSize=%d"`, 100+k), Lane: understudy.Bulk}
		if _, err := runner.Enqueue(ctx, job); err != nil {
			return err
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for st := runner.Stats(); st.Done+st.Failed < int64(n); st = runner.Stats() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%+v: %w", st, ctx.Err())
		}
	}
	st := runner.Stats()
	got := imported{Done: st.Done, Failed: st.Failed, Again: st.Again, Took: time.Since(began), Weight: i.most.Load()}
	end()
	all.Wait()
	var err error
	if got.Peak, err = peakOf(os.Getpid()); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(got)
}

// pace sets the collector's target as the server does.
func pace(ctx context.Context) error {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		metrics.Read(live)
		debug.SetGCPercent(int(min(max(18*mib*100/max(live[0].Value.Uint64(), 1<<20), 40), 400)))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
