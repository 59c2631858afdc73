// Run: what a job at work may say about itself.

package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy"
	"understudy/kit/weigh"
)

// Why a run's context ends before the run does; a lost lease is
// understudy.ErrLost.
var (
	errCancelled = errors.New("cancelled")
	errStopping  = errors.New("the runner is stopping")
)

// tooHeavy is the error of Weigh when there is no room now.
type tooHeavy struct{ bytes, most int64 }

// Error tells what was asked for.
func (e *tooHeavy) Error() string {
	if e.bytes > e.most {
		return fmt.Sprintf("it weighs %s, more than jobs.memory (%s); raise it", bytesOf(e.bytes), bytesOf(e.most))
	}
	return fmt.Sprintf("there is no room for %s now; it begins again when there is", bytesOf(e.bytes))
}

// Unwrap is understudy.ErrInvalid when there can never be room.
func (e *tooHeavy) Unwrap() error {
	if e.bytes > e.most {
		return understudy.ErrInvalid
	}
	return nil
}

// Run is one run of a job. Its methods may be called by several goroutines, as
// long as the kind's function has not returned.
type Run struct {
	r      *Runner
	kind   *Kind
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	job      understudy.Job // as claimed, and as it says of itself since
	load     *weigh.Load    // nil: it weighs next to nothing
	working  bool           // it has its weight and has begun
	first    understudy.Progress
	firstAt  time.Time // of the first progress; zero: none yet
	dirty    bool      // progress that is not written yet
	beatAt   time.Time // of the last sign of life
	leaseEnd time.Time
	over     bool // its end is being written, or was
}

// Job is the job as it was claimed, with its mark and progress as they are now.
func (u *Run) Job() understudy.Job {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.job
}

// Progress says how far the run has come; total 0 means that nobody knows. It
// only writes to memory: the store learns of it at most once a second and at
// the end. The note is for people, at most 1 KiB of it is kept.
func (u *Run) Progress(done, total int64, note string) {
	now := u.r.o.Now()
	u.mu.Lock()
	p := understudy.Progress{Done: done, Total: total, Note: note}
	if u.firstAt.IsZero() {
		u.first, u.firstAt = p, now
	}
	u.job.Progress = p
	nudge := !u.dirty
	u.dirty = true
	u.mu.Unlock()
	if nudge {
		u.r.ring(false)
	}
}

// progress is the progress, with the time it is expected to be through.
func (u *Run) progress(now time.Time) understudy.Progress {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.job.Progress
	done, took := p.Done-u.first.Done, now.Sub(u.firstAt)
	if left := p.Total - p.Done; left >= 0 && p.Total > 0 && done > 0 && took > 0 {
		if wait := float64(took) / float64(done) * float64(left); wait < float64(maxReckoned) {
			p.End = now.Add(time.Duration(wait))
		}
	}
	return p
}

// maxReckoned is the furthest end that is told.
const maxReckoned = 365 * 24 * time.Hour

// SetMark keeps where the next run goes on, at most understudy.MaxJobPayload
// bytes. understudy.ErrLost: another may be at the job already; end the run.
// understudy.ErrNotStored: it was not kept, and what it stands for must not be
// taken for done.
func (u *Run) SetMark(ctx context.Context, mark []byte) error {
	u.mu.Lock()
	number, fence := u.job.Number, u.job.Fence
	u.mu.Unlock()
	err := u.r.o.Store.MarkJob(ctx, number, fence, mark)
	if errors.Is(err, understudy.ErrLost) {
		u.cancel(understudy.ErrLost)
	}
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.job.Mark = append([]byte(nil), mark...)
	u.mu.Unlock()
	return nil
}

// Weigh says what the run weighs from now on, in bytes of memory, instead of
// what it weighed before. Less is always granted. When there is no room for
// more now it returns an error: the run is to return it, wrapped or not, and
// the job begins again once there is room for that weight, which is not counted
// as an attempt the first few times. More than jobs.memory fails the job: that
// error wraps understudy.ErrInvalid.
func (u *Run) Weigh(_ context.Context, bytes int64) error {
	bytes = max(bytes, 0)
	u.mu.Lock()
	defer u.mu.Unlock()
	held := int64(0)
	if u.load != nil {
		held = u.load.Weight()
	}
	switch {
	case u.over:
		return fmt.Errorf("jobs: weigh: the run is over: %w", understudy.ErrClosed)
	case bytes <= held:
		if u.load != nil {
			u.load.Shrink(held - bytes)
		}
		u.r.ring(true)
		return nil
	case bytes > u.r.o.Memory:
	case u.load != nil:
		if u.load.TryGrow(bytes - held) {
			return nil
		}
	default:
		if u.load = u.r.scale.TryAcquire(bytes); u.load != nil {
			return nil
		}
	}
	return &tooHeavy{bytes, u.r.o.Memory}
}
