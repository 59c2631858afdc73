// Workers in processes whose clocks differ.

package jobs_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// worker is a runner in a process of its own.
type worker struct {
	*jobs.Runner
	db    *store.DB
	begun chan understudy.Job // the runs of this worker
	end   func()              // ends the process: no heartbeats are sent any more
}

// startWorker starts a runner on a database, by a process whose clock is wrong. It runs jobs of the kinds "long" and "brief", named by
// their leases, which do not end. And it runs jobs of the kind with its own name.
func startWorker(t *testing.T, dsn, name string, wrong time.Duration) worker {
	t.Helper()
	now := func() time.Time { return time.Now().Add(wrong) }
	db, err := store.Open(t.Context(), store.Options{Path: dsn, Now: now, SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open")
	w := worker{db: db, begun: make(chan understudy.Job, 10)}
	run := func(ctx context.Context, r *jobs.Run) error {
		w.begun <- r.Job()
		if r.Job().Kind != name {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	w.Runner, err = jobs.New(jobs.Options{Store: db.Jobs, Worker: name, Now: db.Jobs.Now, Grace: time.Nanosecond, Kinds: []jobs.Kind{
		{Name: "long", Run: run, Lease: time.Minute}, {Name: "brief", Run: run, Lease: time.Second}, {Name: name, Run: run}}})
	checktest.MustNoError(t, err, "new runner")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	w.end = sync.OnceFunc(func() {
		checktest.NoError(t, db.Close(), "close the database of %s", name)
		stop()
		<-done // an error says that a run has not ended
	})
	t.Cleanup(w.end)
	return w
}

func (w worker) add(t *testing.T, kind string, after time.Duration) {
	t.Helper()
	_, err := w.Enqueue(t.Context(), understudy.Job{Kind: kind, Key: kind, RunAfter: w.db.Jobs.Now().Add(after)})
	checktest.MustNoError(t, err, "enqueue")
}

// await returns the next run that begins.
func (w worker) await(t *testing.T) understudy.Job {
	t.Helper()
	select {
	case j := <-w.begun:
		return j
	case <-time.After(storetest.Patience):
		t.Fatal("no job begins")
		panic("unreachable")
	}
}

// TestWorkersWhoseClocksDiffer: the clock of one process is an hour ahead of that of the other one. A job is taken over when its worker
// has died, and not before; and it begins at the time for which it was planned.
func TestWorkersWhoseClocksDiffer(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"worker behind": time.Hour, "worker ahead": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.Database(t)
			a := startWorker(t, dsn, "a", 0)
			a.add(t, "long", 0)
			checktest.Equal(t, a.await(t).Kind, "long", "kind of the first job")
			b := startWorker(t, dsn, "b", wrong)
			b.add(t, "b", 50*time.Millisecond)
			checktest.Equal(t, b.await(t).Kind, "b", "kind of the job that b has begun") // it has looked for lost leases first
			a.add(t, "a", 50*time.Millisecond)
			checktest.Equal(t, a.await(t).Kind, "a", "kind of the job that a has begun")
			a.add(t, "brief", 0)
			select {
			case <-a.begun:
			case <-b.begun: // on a busy machine b may be faster
				return
			}
			a.end()
			b.Wake()
			checktest.Equal(t, b.await(t).Kind, "brief", "kind of the job that b has taken over")
		})
	}
}
