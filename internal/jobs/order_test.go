// Tests of the order in which jobs run.

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func TestSoonGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		gate := make(chan struct{})
		b := start(t, nil, jobs.Options{Workers: 1, Kinds: []jobs.Kind{{Name: "work", Run: func(_ context.Context, r *jobs.Run) error {
			<-gate
			order = append(order, r.Job().Priority.String())
			return nil
		}}}})
		defer b.stop()
		b.add(understudy.Job{Kind: "work"})
		synctest.Wait()
		for _, lane := range []understudy.Priority{understudy.PriorityBulk, understudy.PrioritySteady, understudy.PriorityBulk,
			understudy.PrioritySoon, understudy.PrioritySteady,
			understudy.PrioritySoon} {
			b.add(understudy.Job{Kind: "work", Priority: lane})
		}
		close(gate)
		synctest.Wait()
		if got := fmt.Sprint(order); got != "[soon soon soon steady steady bulk bulk]" {
			t.Error(got)
		}
	})
}

// Bulk jobs leave workers for jobs that a caller waits for.
func TestBulkLeavesWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, gate := map[string]int{}, make(chan struct{})
		var mu sync.Mutex
		b := start(t, nil, jobs.Options{Workers: 8, Kinds: []jobs.Kind{{Name: "work", Run: func(_ context.Context, r *jobs.Run) error {
			mu.Lock()
			running[r.Job().Priority.String()]++
			mu.Unlock()
			<-gate
			return nil
		}}}})
		defer b.stop()
		for _, c := range []struct {
			lane understudy.Priority
			want string
		}{{understudy.PriorityBulk, "map[bulk:6]"}, {understudy.PrioritySteady, "map[bulk:6 steady:1]"},
			{understudy.PrioritySoon, "map[bulk:6 soon:1 steady:1]"}} {
			for range 20 {
				b.add(understudy.Job{Kind: "work", Priority: c.lane})
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			mu.Lock()
			if got := fmt.Sprint(running); got != c.want {
				t.Errorf("running %v, want %v", got, c.want)
			}
			mu.Unlock()
		}
		close(gate)
	})
}

func TestOneLiveJobAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, runs := make(chan struct{}), 0
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "work",
			Run: func(context.Context, *jobs.Run) error { runs++; <-gate; return nil }}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "work", Key: "k"})
		b.is(n, understudy.JobRunning)
		if again := b.add(understudy.Job{Kind: "work", Key: "k"}); again != n {
			t.Errorf("job %d beside %d", again, n)
		}
		close(gate)
		b.is(n, understudy.JobDone)
		if again := b.add(understudy.Job{Kind: "work", Key: "k"}); again == n {
			t.Error("a job that is done takes the place of another")
		}
		if synctest.Wait(); runs != 2 {
			t.Errorf("%d runs", runs)
		}
	})
}

func TestHurriedJobDoesNotWaitForItsRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []time.Time
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "work", Attempts: 9, Backoff: time.Hour, MaxBackoff: time.Hour,
			Run: func(context.Context, *jobs.Run) error {
				if runs = append(runs, time.Now()); len(runs) == 1 {
					return errors.New("refused")
				}
				return nil
			}}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "work", Key: "k"})
		b.is(n, understudy.JobWaiting)
		b.add(understudy.Job{Kind: "work", Key: "k"})
		b.is(n, understudy.JobWaiting)
		b.add(understudy.Job{Kind: "work", Key: "k", Hurry: true})
		b.is(n, understudy.JobDone)
		if len(runs) != 2 || !runs[1].Equal(runs[0]) {
			t.Errorf("the job ran at %v, want two runs at one time", runs)
		}
	})
}

func TestCancelEndsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.Open(t, store.Options{})
		kind := jobs.Kind{Name: "work", Run: func(ctx context.Context, _ *jobs.Run) error { <-ctx.Done(); return ctx.Err() }}
		a, b := start(t, m, jobs.Options{Kinds: []jobs.Kind{kind}}),
			start(t, m, jobs.Options{Workers: 1, Kinds: []jobs.Kind{{Name: "other", Run: kind.Run}}})
		n := a.add(understudy.Job{Kind: "work"})
		a.is(n, understudy.JobRunning)
		if err := a.Cancel(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if j := a.is(n, understudy.JobCancelled); j.Error != "cancelled" || j.Attempt != 1 {
			t.Errorf("%+v", j)
		}
		// From another process it takes until the next sign of life.
		n = a.add(understudy.Job{Kind: "work"})
		a.is(n, understudy.JobRunning)
		if err := b.Cancel(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		a.is(n, understudy.JobCancelled)
		// Waiting ones are cancelled at once.
		n = a.add(understudy.Job{Kind: "work", RunAfter: time.Now().Add(time.Hour)})
		if err := b.Cancel(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		a.is(n, understudy.JobCancelled)
		if err := b.Cancel(t.Context(), n); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("twice: %v", err)
		}
		a.stop()
		b.stop()
	})
}

// Nothing is waited for: in a bubble, where only waiting takes time, none has
// passed.
func TestAJobStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun time.Time
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "work",
			Run: func(context.Context, *jobs.Run) error { begun = time.Now(); return nil }}}})
		defer b.stop()
		for range 20 {
			time.Sleep(13 * time.Minute)
			added := time.Now()
			b.is(b.add(understudy.Job{Kind: "work"}), understudy.JobDone)
			if d := begun.Sub(added); d != 0 {
				t.Fatalf("begun after %v", d)
			}
		}
	})
}
