// Plans: periodic kinds.

package jobs

import (
	"context"
	"time"

	"understudy"
)

// plan is a periodic kind and when it is probably due next.
type plan struct {
	kind  *Kind
	asked bool
	last  time.Time // the slot planned last, by whichever process
	due   time.Time
}

// Every is the schedule of a kind whose jobs lie that far apart.
func Every(d time.Duration) func(time.Time) time.Time {
	return func(last time.Time) time.Time {
		if last.IsZero() {
			return last
		}
		return last.Add(d)
	}
}

// plan adds what is due. However many slots were missed, one job is added for
// them; while it is live, none.
func (r *Runner) plan(ctx context.Context, now time.Time) error {
	for _, p := range r.plans {
		if p.asked && now.Before(p.due) {
			continue
		}
		slot := now
		if !p.asked { // another process may have planned it, also before this one began
			slot = time.Time{}
		}
		job := r.filled(understudy.Job{Kind: p.kind.Name, Key: periodicKey}, p.kind)
		_, last, err := r.o.Store.PlanJob(ctx, now, p.last, slot, job)
		if err != nil {
			return err
		}
		asked := p.asked
		p.asked, p.last = true, last
		if p.due = p.kind.Schedule(last); !asked && !now.Before(p.due) {
			_, last, err := r.o.Store.PlanJob(ctx, now, p.last, now, job)
			if err != nil {
				return err
			}
			p.last, p.due = last, p.kind.Schedule(last)
		}
		if !p.due.After(now) { // a schedule that stands still is not to spin
			p.due = now.Add(time.Second)
		}
	}
	return nil
}
