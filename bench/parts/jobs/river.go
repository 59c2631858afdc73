// River: the same jobs in github.com/riverqueue/river.

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// theirs is River on a database of its own.
type theirs struct{ pool *pgxpool.Pool }

// emptyArgs are the arguments of a job.
type emptyArgs struct{}

// Kind implements river.JobArgs.
func (emptyArgs) Kind() string { return "work" }

// openRiver creates a database on the server of a data source name. synced is the setting synchronous_commit of all its sessions.
func openRiver(ctx context.Context, dsn, database, synced string) (queue, error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	_, err = c.Exec(ctx, "CREATE DATABASE "+database)
	if err := errors.Join(err, c.Close(ctx)); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Database = database
	config.ConnConfig.RuntimeParams["synchronous_commit"] = synced
	config.MaxConns = workers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	t := theirs{pool}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		pool.Close()
	}
	return t, err
}

// newClient returns a client that fetches as often as River allows.
func (t theirs) newClient(work func()) (*river.Client[pgx.Tx], error) {
	all := river.NewWorkers()
	river.AddWorker(all, river.WorkFunc(func(context.Context, *river.Job[emptyArgs]) error { work(); return nil }))
	return river.NewClient(riverpgxv5.New(t.pool), &river.Config{Workers: all, FetchCooldown: river.FetchCooldownMin,
		FetchPollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}})
}

func (t theirs) add(ctx context.Context, n int) error {
	c, err := t.newClient(func() {})
	for ; n > 0 && err == nil; n -= 1000 {
		all := make([]river.InsertManyParams, min(n, 1000))
		for i := range all {
			all[i].Args = emptyArgs{}
		}
		_, err = c.InsertManyFast(ctx, all)
	}
	return err
}

func (t theirs) run(ctx context.Context, n int) error {
	c, err := t.newClient(func() {})
	if err != nil {
		return err
	}
	ended, cancel := c.SubscribeConfig(&river.SubscribeConfig{ChanSize: n, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	if err := c.Start(ctx); err != nil {
		return err
	}
	for done := 0; done < n && err == nil; {
		select {
		case <-ended:
			done++
		case <-time.After(time.Minute):
			err = fmt.Errorf("%d of %d jobs have ended, and no other one for a minute", done, n)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
}

func (t theirs) start(ctx context.Context, n int) (took []time.Duration, err error) {
	begun := make(chan time.Time, 1)
	c, err := t.newClient(func() { begun <- time.Now() })
	if err == nil {
		err = c.Start(ctx)
	}
	if err != nil {
		return nil, err
	}
	took, err = measureStarts(ctx, n, begun, func() error {
		_, err := c.Insert(ctx, emptyArgs{}, nil)
		return err
	})
	return took, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
}

// Close implements io.Closer.
func (t theirs) Close() error {
	t.pool.Close()
	return nil
}
