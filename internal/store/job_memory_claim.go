// Claiming jobs in memory: whose turn it is, and what is planned.

package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"understudy"
)

// ClaimJobs is as DB.ClaimJobs.
func (m *Memory) ClaimJobs(ctx context.Context, want understudy.Claim) (got understudy.Claimed, err error) {
	if err = checkClaim(&want); err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return got, failed(true, err, "claim jobs")
	}
	defer m.mu.Unlock()
	m.jobs.sweep(&want, &got)
	for len(got.Jobs) < want.Limit {
		j, lease := m.jobs.turn(&want)
		if j == nil {
			break
		}
		j.State, j.Attempt, j.Fence, j.Worker, j.Stop = understudy.JobRunning, j.Attempt+1, j.Fence+1, want.Worker, false
		j.Started, j.LeaseEnd, j.Progress = instant(nanos(want.Now)), instant(nanos(want.Now.Add(lease))), understudy.Progress{}
		got.Jobs = append(got.Jobs, copied(j))
	}
	m.jobs.planned(&want, &got)
	return got, nil
}

func (m *memoryJobs) sweep(want *understudy.Claim, got *understudy.Claimed) {
	lost := m.sorted(func(j *understudy.Job) bool {
		return j.State == understudy.JobRunning && (j.LeaseEnd.Before(want.Now) || want.Alone && j.Worker != want.Worker)
	})
	for _, j := range lost[:min(len(lost), sweptAtOnce)] {
		j.State, j.Error, j.RunAfter, j.LeaseEnd = understudy.JobWaiting, "broke off: its process ended or was not heard of", instant(nanos(want.Now)), time.Time{}
		switch {
		case j.Stop:
			j.State, j.Error = understudy.JobCancelled, "cancelled"
		case j.Once:
			j.State, j.Error = understudy.JobFailed, j.Error+"; it runs at most once"
		case j.Attempt >= j.Attempts:
			j.State = understudy.JobFailed
		}
		if j.State != understudy.JobWaiting {
			j.Ended = j.RunAfter
		}
		got.Count(j.State)
	}
	over := m.sorted(func(j *understudy.Job) bool {
		return j.State == understudy.JobWaiting && !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(want.Now)
	})
	for _, j := range over[:min(len(over), sweptAtOnce)] {
		j.State, j.Ended = understudy.JobExpired, instant(nanos(want.Now))
		got.Expired++
	}
}

// turn is the job whose turn it is.
func (m *memoryJobs) turn(want *understudy.Claim) (*understudy.Job, time.Duration) {
	running := map[string]int{}
	for _, j := range m.all {
		if j.State == understudy.JobRunning {
			running[j.Kind]++
		}
	}
	leases := map[string]time.Duration{}
	for _, k := range want.Kinds {
		if running[k.Name] < k.Most {
			leases[k.Name] = k.Lease
		}
	}
	all := m.sorted(func(j *understudy.Job) bool {
		_, room := leases[j.Kind]
		return room && j.State == understudy.JobWaiting && j.Lane <= want.Lane && j.Weight <= want.Weight && !j.RunAfter.After(want.Now)
	})
	if len(all) == 0 {
		return nil, 0
	}
	j := slices.MinFunc(all, func(a, b *understudy.Job) int {
		return cmp.Or(cmp.Compare(a.Lane, b.Lane), a.RunAfter.Compare(b.RunAfter), cmp.Compare(a.Number, b.Number))
	})
	return j, leases[j.Kind]
}

func (m *memoryJobs) planned(want *understudy.Claim, got *understudy.Claimed) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (got.Next.IsZero() || t.Before(got.Next)) {
			got.Next = t
		}
	}
	for _, j := range m.all {
		ours := slices.ContainsFunc(want.Kinds, func(k understudy.ClaimKind) bool { return k.Name == j.Kind })
		switch {
		case j.State == understudy.JobRunning:
			sooner(j.LeaseEnd)
		case j.State != understudy.JobWaiting:
		default:
			sooner(j.ExpiresAt)
			if ours && j.RunAfter.After(want.Now) {
				sooner(j.RunAfter)
			}
			got.Held = got.Held || ours && !j.RunAfter.After(want.Now)
		}
	}
}

// PlanJob is as DB.PlanJob.
func (m *Memory) PlanJob(ctx context.Context, now, since, slot time.Time, job understudy.Job) (number int64, last time.Time, err error) {
	if err = checkJob(&job); err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return 0, time.Time{}, failed(true, err, "plan job")
	}
	defer m.mu.Unlock()
	last, add := plan(m.jobs.plans[job.Kind], now, since, slot)
	if m.jobs.plans == nil {
		m.jobs.plans = map[string]time.Time{}
	}
	m.jobs.plans[job.Kind] = instant(nanos(last))
	if add {
		number = m.jobs.add(now, &job)
	}
	return number, m.jobs.plans[job.Kind], nil
}
