// This file adds the jobs of periodic kinds.

package jobs

import (
	"context"
	"time"

	"understudy"
)

// plan is a periodic kind, with the time when its next job is probably due.
type plan struct {
	kind    *Kind
	planned bool
	last    time.Time // the slot of the newest periodic job that any process has added
	due     time.Time
}

// Every returns the schedule of a kind whose jobs are d apart.
func Every(d time.Duration) func(time.Time) time.Time {
	return func(last time.Time) time.Time {
		if last.IsZero() {
			return last
		}
		return last.Add(d)
	}
}

// plan adds the periodic jobs that are due. It adds one job for any number of missed slots, and none while such
// a job is waiting or running.
func (r *Runner) plan(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for _, p := range r.plans {
		for !p.planned || !now.Before(p.due) {
			slot := now
			if !p.planned { // another process may have added a job, perhaps before this process started
				slot = time.Time{}
			}
			job := r.withKindDefaults(understudy.Job{Kind: p.kind.Name, Key: periodicKey}, p.kind)
			_, last, err := r.o.Store.PlanJob(ctx, now, p.last, slot, job)
			if err != nil {
				return err
			}
			p.planned, p.last, p.due = true, last, p.kind.Schedule(last)
			if !slot.IsZero() && !p.due.After(now) { // the schedule returned a past time; adding the interval avoids a busy loop
				p.due = now.Add(time.Second)
			}
		}
	}
	return nil
}
