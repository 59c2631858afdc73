// Jobs and notes in memory, by the same rules.

package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"understudy"
)

// memoryJobs are the jobs and notes of a Memory; its lock guards them.
type memoryJobs struct {
	last  int64
	all   map[int64]*understudy.Job
	plans map[string]time.Time
	notes map[string][]byte
}

func (m *memoryJobs) live(kind, key string) *understudy.Job {
	if key == "" {
		return nil
	}
	for _, j := range m.all {
		if j.State <= understudy.JobRunning && j.Kind == kind && j.Key == key {
			return j
		}
	}
	return nil
}

func (m *memoryJobs) add(now time.Time, j *understudy.Job) int64 {
	if held := m.live(j.Kind, j.Key); held != nil {
		return held.Number
	}
	m.last++
	after := j.RunAfter
	if after.Before(now) {
		after = now
	}
	if m.all == nil {
		m.all = map[int64]*understudy.Job{}
	}
	m.all[m.last] = &understudy.Job{
		Number: m.last, Kind: j.Kind, Key: j.Key, Payload: slices.Clone(j.Payload), Lane: j.Lane, Once: j.Once, Attempts: j.Attempts, Weight: j.Weight,
		RunAfter: instant(nanos(after)), ExpiresAt: instant(nanos(j.ExpiresAt)), State: understudy.JobWaiting, Created: instant(nanos(now)), Mark: slices.Clone(j.Mark),
	}
	return m.last
}

// sorted are the jobs that pass, by number.
func (m *memoryJobs) sorted(pass func(j *understudy.Job) bool) (all []*understudy.Job) {
	for _, n := range slices.Sorted(maps.Keys(m.all)) {
		if pass(m.all[n]) {
			all = append(all, m.all[n])
		}
	}
	return all
}

func copied(j *understudy.Job) understudy.Job {
	c := *j
	c.Payload, c.Mark = slices.Clone(j.Payload), slices.Clone(j.Mark)
	return c
}

// leased is the job if the fence is its lease's.
func (m *memoryJobs) leased(number, fence int64) *understudy.Job {
	if j := m.all[number]; j != nil && j.Fence == fence && j.State == understudy.JobRunning {
		return j
	}
	return nil
}

// AddJobs is as DB.AddJobs.
func (m *Memory) AddJobs(ctx context.Context, now time.Time, jobs ...understudy.Job) ([]int64, error) {
	err := checkAdded(jobs)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return nil, failed(true, err, "add jobs")
	}
	defer m.mu.Unlock()
	numbers := make([]int64, 0, len(jobs))
	for i := range jobs {
		numbers = append(numbers, m.jobs.add(now, &jobs[i]))
	}
	return numbers, nil
}

// BeatJobs is as DB.BeatJobs.
func (m *Memory) BeatJobs(ctx context.Context, beats ...understudy.Beat) ([]understudy.Beaten, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(true, err, "keep leases")
	}
	defer m.mu.Unlock()
	all := make([]understudy.Beaten, len(beats))
	for i, b := range beats {
		if j := m.jobs.leased(b.Number, b.Fence); j != nil {
			j.LeaseEnd, j.Progress = instant(nanos(b.LeaseEnd)), keptProgress(b.Progress)
			all[i].Stop = j.Stop
		} else {
			all[i].Lost = true
		}
	}
	return all, nil
}

func keptProgress(p understudy.Progress) understudy.Progress {
	return understudy.Progress{Done: p.Done, Total: p.Total, Note: clipped(p.Note, maxJobError)}
}

// MarkJob is as DB.MarkJob.
func (m *Memory) MarkJob(ctx context.Context, number, fence int64, mark []byte) error {
	err := checkMark(mark)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return failed(true, err, "mark job %d", number)
	}
	defer m.mu.Unlock()
	j := m.jobs.leased(number, fence)
	if j == nil {
		return failed(true, understudy.ErrLost, "mark job %d", number)
	}
	j.Mark = nil
	if len(mark) > 0 {
		j.Mark = slices.Clone(mark)
	}
	return nil
}

// EndJob is as DB.EndJob.
func (m *Memory) EndJob(ctx context.Context, e understudy.JobEnd) (understudy.JobState, error) {
	err := checkEnd(&e)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return 0, failed(true, err, "end job %d", e.Number)
	}
	defer m.mu.Unlock()
	j := m.jobs.leased(e.Number, e.Fence)
	if j == nil {
		return 0, failed(true, understudy.ErrLost, "end job %d", e.Number)
	}
	j.State, j.Error, j.Progress, j.LeaseEnd = e.State, clipped(e.Error, maxJobError), keptProgress(e.Progress), time.Time{}
	if e.Uncounted {
		j.Attempt--
		j.Again++
	}
	if e.Weight > 0 {
		j.Weight = e.Weight
	}
	if e.State == understudy.JobWaiting {
		j.RunAfter = instant(nanos(e.RunAfter))
		if j.Stop {
			j.State = understudy.JobCancelled
		}
	}
	if j.State != understudy.JobWaiting {
		j.Ended = instant(nanos(e.At))
	}
	return j.State, nil
}

// CancelJob is as DB.CancelJob.
func (m *Memory) CancelJob(ctx context.Context, number int64, now time.Time) (understudy.Job, error) {
	if err := m.enter(ctx); err != nil {
		return understudy.Job{}, failed(true, err, "cancel job %d", number)
	}
	defer m.mu.Unlock()
	j := m.jobs.all[number]
	switch {
	case j == nil:
		return understudy.Job{}, failed(true, understudy.ErrNotFound, "cancel job %d", number)
	case j.State > understudy.JobRunning:
		return copied(j), failed(true, ended(j), "cancel job %d", number)
	case j.State == understudy.JobWaiting:
		j.State, j.Ended, j.Error = understudy.JobCancelled, instant(nanos(now)), "cancelled"
	}
	j.Stop = true
	return copied(j), nil
}

// Jobs is as DB.Jobs.
func (m *Memory) Jobs(ctx context.Context, f understudy.JobFilter) (all []understudy.Job, err error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "read jobs")
	}
	defer m.mu.Unlock()
	found := m.jobs.sorted(func(j *understudy.Job) bool {
		return (f.Kind == "" || j.Kind == f.Kind) && (f.Number == 0 || j.Number == f.Number) && (f.Before == 0 || j.Number < f.Before) &&
			(len(f.States) == 0 || slices.Contains(f.States, j.State))
	})
	slices.Reverse(found)
	for _, j := range found[:min(len(found), filterLimit(&f))] {
		all = append(all, copied(j))
	}
	return all, nil
}

// JobCounts is as DB.JobCounts.
func (m *Memory) JobCounts(ctx context.Context) (n understudy.JobCounts, err error) {
	if err := m.enter(ctx); err != nil {
		return n, failed(false, err, "count jobs")
	}
	defer m.mu.Unlock()
	for _, j := range m.jobs.all {
		switch j.State {
		case understudy.JobWaiting:
			n.Waiting++
		case understudy.JobRunning:
			n.Running++
		default:
			n.Archived++
		}
	}
	return n, nil
}

// TrimJobs is as DB.TrimJobs.
func (m *Memory) TrimJobs(ctx context.Context, keep int, before time.Time) (removed int, err error) {
	if err := m.enter(ctx); err != nil {
		return 0, failed(true, err, "trim jobs")
	}
	defer m.mu.Unlock()
	for state := understudy.JobDone; state <= understudy.JobExpired; state++ {
		of := m.jobs.sorted(func(j *understudy.Job) bool { return j.State == state })
		slices.SortFunc(of, func(a, b *understudy.Job) int {
			return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(b.Number, a.Number))
		})
		for i, j := range of {
			if i >= max(keep, 0) || j.Ended.Before(before) {
				delete(m.jobs.all, j.Number)
				removed++
			}
		}
	}
	return removed, nil
}
