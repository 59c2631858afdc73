// Package imports is a part of the bench: many jobs that bring pages of very different weight,
// under one limit.
package imports

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"understudy/bench/rig"
)

const (
	importJobs    = 64
	importLimit   = 256 * rig.Mib
	importBytes   = 2 // bytes of memory a walk reckons with for each byte of a page
	importWorkers = 8 // as many as a server has that is not told otherwise
	importBig     = 200
	importSmall   = 40 // jobs beside a big one
	mostFixed     = 4
)

// imported is what the process that imports tells at its end.
type imported struct {
	Done, Failed, Again int64
	Requests            int64 // upstream
	Took, CPU           time.Duration
	Peak                int64         // of resident memory, bytes
	Weight              int64         // the most that runs weighed together
	Wait                time.Duration // of small jobs, p99, until they have their weight
}

// Measure runs 64 jobs, each of which fills one page of 1 to 64 MB, under the
// memory limit of a server. Then it runs fixed numbers of jobs at once. Each run
// is a process of its own with the packages of a server. The first run is done
// three times. Then small jobs come while one of 200 MB runs.
func Measure(ctx context.Context, r *rig.Run) error {
	n, small := r.Size(importJobs, 6), r.Size(importSmall, 10)
	api, err := rig.Start(ctx, r.Dir, "slowapi-imports", "slowapi ", r.Bin, "slowapi", "--listen", "127.0.0.1:0", "--latency", "100ms", "--records", "20000")
	if err != nil {
		return err
	}
	defer func() { _ = api.Stop() }()
	var rules []string
	for i := range n {
		// Every page has a size of its own by which it is padded.
		rules = append(rules, fmt.Sprintf(`{"match":"PageSize=%d","pad_mb":%d}`, 100+i, 1+(i*37)%(importJobs-1)))
	}
	for i := range small {
		rules = append(rules, fmt.Sprintf(`{"match":"PageSize=%d","pad_mb":2}`, 301+i))
	}
	rules = append(rules, fmt.Sprintf(`{"match":"PageSize=300","pad_mb":%d}`, r.Size(importBig, 20)))
	if err := (&rig.Rig{Api: api}).Faults(ctx, "["+strings.Join(rules, ",")+"]"); err != nil {
		return err
	}
	rows := [][]string{{fmt.Sprintf("%d jobs", n), "round", "done", "failed", "begun again", "requests", "seconds", "processor s", "most weighed MiB", "peak resident MiB"}}
	row := func(name string, round int, got imported) {
		rows = append(rows, []string{name, fmt.Sprint(round + 1), fmt.Sprint(got.Done), fmt.Sprint(got.Failed), fmt.Sprint(got.Again), fmt.Sprint(got.Requests),
			rig.Figure(got.Took.Seconds()), rig.Figure(got.CPU.Seconds()), rig.Figure(float64(got.Weight) / rig.Mib), rig.Figure(float64(got.Peak) / rig.Mib)})
	}
	var done, again, requests []int
	var took []time.Duration
	peak, best := int64(0), time.Duration(0)
	for round := range r.Times(3, 1) {
		got, err := importing(ctx, r, api.Addresses["slowapi"], n, 0)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("under %d MiB", importLimit/rig.Mib), round, got)
		done, again, requests = append(done, int(got.Done)), append(again, int(got.Again)), append(requests, int(got.Requests))
		peak, took = max(peak, got.Peak), append(took, got.Took)
		for fixed := 1; fixed <= mostFixed && round == 0; fixed++ {
			other, err := importing(ctx, r, api.Addresses["slowapi"], n, fixed)
			if err != nil {
				return err
			}
			row(fmt.Sprintf("%d at once", fixed), round, other)
			if float64(other.Peak) > 1.1*importLimit {
				break // more of them take more
			}
			if best == 0 || other.Took < best {
				best = other.Took
			}
		}
	}
	r.Table(rows)
	for i := range done {
		r.Exactly(fmt.Sprintf("jobs that ended well, round %d", i+1), done[i], n)
		r.Exactly("runs begun again", again[i], 0)
		r.Exactly("upstream requests", requests[i], n)
	}
	r.AtMost("peak resident memory, the highest round", float64(peak)/rig.Mib, 1.1*importLimit/rig.Mib, "MiB")
	r.AtLeast("throughput beside the fastest fixed number that fits, median", best.Seconds()/rig.Median(took).Seconds(), 0.9, "")
	beside, err := importing(ctx, r, api.Addresses["slowapi"], small, -1)
	if err != nil {
		return err
	}
	r.Exactly(fmt.Sprintf("jobs that ended well beside one of %d MB", importBig), int(beside.Done), small+1)
	r.AtMost("p99 of the wait of small jobs beside it", beside.Wait.Seconds(), 2, "s")
	return nil
}

// importing runs the jobs in a process of its own; atOnce 0 is as many as weigh
// no more than the limit, -1 is small ones beside a big one.
func importing(ctx context.Context, r *rig.Run, address string, n, atOnce int) (got imported, err error) {
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, r.Self, "imports", "-api", address, "-n", fmt.Sprint(n), "-once", fmt.Sprint(atOnce),
		"-path", filepath.Join(r.Dir, fmt.Sprintf("imports-%d-%d.db", atOnce, time.Now().UnixNano())))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return got, fmt.Errorf("imports: %w: %s", err, stderr.Bytes())
	}
	return got, json.Unmarshal(out.Bytes(), &got)
}
