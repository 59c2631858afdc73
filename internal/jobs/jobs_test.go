// The rules of a runner, in bubbles where time is a matter of waiting.

package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// bench is a runner under test and its store.
type bench struct {
	*testing.T
	*jobs.Runner
	store  *store.DB
	cancel context.CancelFunc
	ended  chan error
}

// start runs a runner over a new store until the test or stop ends it.
func start(t *testing.T, m *store.DB, o jobs.Options) *bench {
	t.Helper()
	if m == nil {
		m = storetest.Open(t, store.Options{})
	}
	if o.Store == nil {
		o.Store = m.Jobs
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	r, err := jobs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{T: t, Runner: r, store: m, cancel: cancel, ended: make(chan error, 1)}
	go func() { b.ended <- r.Run(ctx) }()
	return b
}

// stop ends the runner and waits for it.
func (b *bench) stop() {
	b.Helper()
	b.cancel()
	if err := <-b.ended; err != nil {
		b.Error(err)
	}
}

func (b *bench) add(j understudy.Job) int64 {
	b.Helper()
	n, err := b.Enqueue(b.Context(), j)
	if err != nil {
		b.Fatal(err)
	}
	return n[0]
}

func (b *bench) job(number int64) understudy.Job {
	b.Helper()
	all, err := b.ListJobs(b.Context(), understudy.JobFilter{Number: number})
	if err != nil || len(all) != 1 {
		b.Fatalf("job %d: %v, %v", number, all, err)
	}
	return all[0]
}

// is waits until nothing moves and compares a job's state.
func (b *bench) is(number int64, want understudy.JobState) understudy.Job {
	b.Helper()
	synctest.Wait()
	j := b.job(number)
	if j.State != want {
		b.Fatalf("job %d is %v (%s), want %v", number, j.State, j.Error, want)
	}
	return j
}

// TestPausedRunner: jobs that send nothing run, others and those of workers wait, and periodic ones are not added.
func TestPausedRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		kind := func(name string) jobs.Kind {
			return jobs.Kind{Name: name, Local: name == "index", Run: func(_ context.Context, r *jobs.Run) error {
				ran = append(ran, r.Job().Kind)
				return nil
			}}
		}
		regular := kind("poll")
		regular.Schedule = jobs.Every(time.Minute)
		b := start(t, nil, jobs.Options{Paused: true, Kinds: []jobs.Kind{kind("send"), regular, kind("index"), {Name: "mail", Outside: true}}})
		sent, mail := b.add(understudy.Job{Kind: "send"}), b.add(understudy.Job{Kind: "mail", Key: "1"})
		index := b.add(understudy.Job{Kind: "index"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := b.ClaimOutside(ctx, []string{"mail"}, 0, func() bool { return true })
		checktest.True(t, errors.Is(err, context.DeadlineExceeded), "a worker's claim: %v", err)
		b.is(index, understudy.JobDone)
		b.is(sent, understudy.JobWaiting)
		b.is(mail, understudy.JobWaiting)
		b.stop()
		checktest.MustEqual(t, len(ran), 1, "runs")
		checktest.Equal(t, ran[0], "index", "the run")
	})
}

func TestAJobIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "add numbers", Run: func(_ context.Context, r *jobs.Run) error {
			runs++
			if string(r.Job().Payload) != "[1,2]" {
				t.Errorf("payload %q", r.Job().Payload)
			}
			if runs < 3 {
				return errors.New("not yet")
			}
			r.SetProgress(2, 2, "both")
			return nil
		}}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "add numbers", Payload: []byte("[1,2]")})
		if j := b.is(n, understudy.JobWaiting); j.Attempt != 1 || j.Error != "not yet" {
			t.Fatalf("after the first run: %+v", j)
		}
		time.Sleep(time.Minute)
		{
			j := b.is(n, understudy.JobDone)
			checktest.MustEqual(t, j.Attempt, 3, "after %d runs: j.Attempt", runs)
			checktest.MustEqual(t, runs, 3, "after %d runs: runs", runs)
			checktest.MustEqual(t, j.Progress.Done, 2, "after %d runs: j.Progress.Done", runs)
			checktest.MustEqual(t, j.Error, "", "after %d runs: j.Error", runs)
		}
	})
}
