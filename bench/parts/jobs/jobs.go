// Package jobs is a part of the bench: jobs that do nothing, beside the same jobs in River.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"time"

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/jobs"
	"understudy/internal/store"
)

const (
	workers       = 16
	rickoverRate  = 7000.0 / 60 // jobs a second: what Rickover's authors say of three servers
	wantedRate    = 10_000
	wantedStartMs = 20
)

// queue is a queue whose workers do nothing. Its workers begin with run.
type queue interface {
	add(ctx context.Context, jobs int) error
	// run starts the workers and returns when so many jobs have ended.
	run(ctx context.Context, jobs int) error
	// start starts the workers, adds jobs one at a time, and returns how long each took until its work began.
	start(ctx context.Context, jobs int) ([]time.Duration, error)
	io.Closer
}

// Measure has both queues work off the same number of jobs on one PostgreSQL server, in turns. The jobs are added before, in
// transactions of 1,000. Both keep all jobs that have ended.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	dsn, stop, err := rig.StartPostgres()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var queues []queue
	defer func() {
		for _, q := range queues {
			err = errors.Join(err, q.Close())
		}
	}()
	for _, open := range []func() (queue, error){
		func() (queue, error) { return openOurs(ctx, dsn) },
		func() (queue, error) { return openRiver(ctx, dsn, "river", "off") },
		func() (queue, error) { return openRiver(ctx, dsn, "river_synced", "on") },
		func() (queue, error) { return openOurs(ctx, filepath.Join(r.Dir, "jobs.db")) },
	} {
		q, err := open()
		if err != nil {
			return err
		}
		queues = append(queues, q)
	}
	names := []string{"ours", "River", "River, each commit synced", "ours, SQLite"}
	rates := make([][]float64, len(queues))
	table := [][]string{append([]string{"jobs/s, " + fmt.Sprint(workers) + " workers"}, append(slices.Clone(names), "ours / River")...)}
	jobs := r.Size(20_000, 500)
	for round := range r.Times(9, 1) {
		row := []string{fmt.Sprintf("round %d", round+1)}
		for i := range queues {
			which := (i + round) % len(queues)
			rate, err := measureRate(ctx, queues[which], jobs)
			if err != nil {
				return fmt.Errorf("%s: %w", names[which], err)
			}
			rates[which] = append(rates[which], rate)
		}
		for i := range rates {
			row = append(row, rig.Figure(rates[i][round]))
		}
		table = append(table, append(row, rig.Figure(rates[0][round]/rates[1][round])))
	}
	for _, q := range []float64{0.25, 0.5, 0.75} {
		row := []string{fmt.Sprintf("quantile %g", q)}
		for i := range rates {
			row = append(row, rig.Figure(rig.Quantile(rates[i], q)))
		}
		table = append(table, row)
	}
	r.Table(table)
	r.Say("Claims and ends of jobs that run at least once commit with synchronous_commit=off here: a crash of the machine may repeat")
	r.Say("the last runs. River has the same setting for all its statements in its first column, and the default, on, in its second.")
	r.Say("Rickover: %s jobs/s (7,000 a minute on three servers, as its authors published)", rig.Figure(rickoverRate))
	starts := [][]string{rig.SpreadHead}
	var slowest []float64
	for i, q := range queues {
		took, err := q.start(ctx, r.Times(1000, 50))
		if err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
		starts = append(starts, rig.Spread("from before the enqueue to the start, "+names[i], took))
		slowest = append(slowest, rig.Ms(rig.Quantile(took, 0.99)))
	}
	r.Say("")
	r.Table(starts)
	ratios := make([]float64, len(rates[0]))
	for i := range ratios {
		ratios[i] = rates[0][i] / rates[1][i]
	}
	r.AtLeast("jobs a second, PostgreSQL, median", rig.Median(rates[0]), wantedRate, "")
	r.AtLeast("rate over that of River in the same round, median", rig.Median(ratios), 1, "times")
	r.AtMost("p99 from before the enqueue to the start, PostgreSQL", slowest[0], wantedStartMs, "ms")
	r.AtMost("p99 from before the enqueue to the start, SQLite", slowest[3], wantedStartMs, "ms")
	return nil
}

func measureRate(ctx context.Context, q queue, jobs int) (rate float64, err error) {
	if err := q.add(ctx, jobs); err != nil {
		return 0, err
	}
	began := time.Now()
	err = q.run(ctx, jobs)
	return float64(jobs) / time.Since(began).Seconds(), err
}

// ours is the runner of a store.
type ours struct{ db *store.DB }

func openOurs(ctx context.Context, path string) (queue, error) {
	db, err := store.Open(ctx, store.Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
	return ours{db}, err
}

func (o ours) newRunner(work func()) (*jobs.Runner, error) {
	return jobs.New(jobs.Options{Store: o.db.Jobs, Workers: workers, Keep: math.MaxInt32, Kinds: []jobs.Kind{{Name: "work",
		Run: func(context.Context, *jobs.Run) error { work(); return nil }}}})
}

func (o ours) add(ctx context.Context, n int) error {
	r, err := o.newRunner(func() {})
	for ; n > 0 && err == nil; n -= 1000 {
		_, err = r.Enqueue(ctx, slices.Repeat([]understudy.Job{{Kind: "work"}}, min(n, 1000))...)
	}
	return err
}

func (o ours) run(ctx context.Context, n int) error {
	r, err := o.newRunner(func() {})
	if err != nil {
		return err
	}
	return work(ctx, r, func() error {
		for r.Stats().Done < int64(n) {
			if err := rig.Pause(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
}

func (o ours) start(ctx context.Context, n int) (took []time.Duration, err error) {
	begun := make(chan time.Time, 1)
	r, err := o.newRunner(func() { begun <- time.Now() })
	if err != nil {
		return nil, err
	}
	err = work(ctx, r, func() (err error) {
		took, err = measureStarts(ctx, n, begun, func() error {
			_, err := r.Enqueue(ctx, understudy.Job{Kind: "work"})
			return err
		})
		return err
	})
	return took, err
}

// measureStarts adds jobs one at a time, with a pause between, and measures until each has begun.
func measureStarts(ctx context.Context, n int, begun <-chan time.Time, add func() error) (took []time.Duration, err error) {
	for range n {
		if err := rig.Pause(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
		at := time.Now()
		if err := add(); err != nil {
			return nil, err
		}
		select {
		case began := <-begun:
			took = append(took, began.Sub(at))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return took, nil
}

// work runs a runner while do is run.
func work(ctx context.Context, r *jobs.Runner, do func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	err := do()
	cancel()
	return errors.Join(err, <-ended)
}

// Close implements io.Closer.
func (o ours) Close() error { return o.db.Close() }
