// Periodic kinds: over restarts, in step with other processes, never piled up.

package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func TestPeriodicKindsSurviveRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.Open(t, store.Options{})
		var mu sync.Mutex
		var at []time.Duration
		var slow atomic.Int64
		begin := time.Now()
		o := jobs.Options{Kinds: []jobs.Kind{{Name: "tick", Schedule: jobs.Every(time.Minute), Run: func(context.Context, *jobs.Run) error {
			mu.Lock()
			at = append(at, time.Since(begin).Round(time.Second))
			mu.Unlock()
			<-time.After(time.Duration(slow.Load()))
			return nil
		}}}}
		is := func(want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(at) != fmt.Sprint(want) {
				t.Fatalf("begun at %v, want %v", at, want)
			}
			at = nil
		}
		b := start(t, m, o)
		time.Sleep(150 * time.Second)
		is(0, time.Minute, 2*time.Minute)
		b.stop()
		b = start(t, m, o) // within the minute: nothing is due
		time.Sleep(20 * time.Second)
		is()
		b.stop()
		time.Sleep(time.Hour) // what was missed is made up for once
		b = start(t, m, o)
		twin := start(t, m, o) // two processes are one schedule
		time.Sleep(90 * time.Second)
		is(3770*time.Second, 3830*time.Second)
		slow.Store(int64(10 * time.Minute)) // runs longer than its pace: it does not pile up
		time.Sleep(25 * time.Minute)
		synctest.Wait()
		mu.Lock()
		if len(at) > 3 || len(at) < 2 {
			t.Errorf("begun at %v", at)
		}
		mu.Unlock()
		if n, err := b.CountJobs(t.Context()); err != nil || n.Waiting+n.Running > 1 {
			t.Errorf("%+v, %v", n, err)
		}
		slow.Store(0)
		time.Sleep(time.Hour)
		b.stop()
		twin.stop()
	})
}

// A schedule may have appointments; the first is kept too, over a restart.
func TestSchedulesHaveAppointments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs, first := storetest.Open(t, store.Options{}), 0, time.Now().Add(50*time.Minute)
		o := jobs.Options{Kinds: []jobs.Kind{{Name: "nightly", Run: func(context.Context, *jobs.Run) error { runs++; return nil },
			Schedule: func(last time.Time) time.Time {
				if last.IsZero() {
					return first
				}
				return last.Truncate(time.Hour).Add(time.Hour)
			}}}}
		for i, want := range []int{0, 2, 2, 3} { // after 30, 60, 90 and 120 minutes and a bit
			b := start(t, m, o)
			time.Sleep(30*time.Minute + time.Second/4)
			synctest.Wait()
			if b.stop(); runs != want {
				t.Fatalf("%d runs after %d half hours", runs, i+1)
			}
		}
	})
}
