// This file contains what a running job reports about itself.

package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/kit/semaphore"
)

// The causes for which a run's context ends early. A lost lease has the cause understudy.ErrLeaseLost.
var (
	errCancelled = errors.New("cancelled")
	errStopping  = errors.New("the runner is stopping")
)

// overQuotaError is the error of a run, or a part of it, that did not get its memory in time.
type overQuotaError struct{ bytes, limit int64 }

// Error returns a sentence that says how much memory was requested.
func (e *overQuotaError) Error() string {
	if e.bytes > e.limit {
		return fmt.Sprintf("the job needs %s of memory, more than jobs.memory (%s); raise jobs.memory", sizeText(e.bytes), sizeText(e.limit))
	}
	return fmt.Sprintf("other jobs used the memory, and %s did not become free in time; the job starts again later", sizeText(e.bytes))
}

// Unwrap returns understudy.ErrInvalid if the memory can never be granted.
func (e *overQuotaError) Unwrap() error {
	if e.bytes > e.limit {
		return understudy.ErrInvalid
	}
	return nil
}

// Run is one run of a job. Several goroutines may call its methods until the kind's Run function has returned.
type Run struct {
	r        *Runner
	kind     *Kind
	cancel   context.CancelCauseFunc
	weighing sync.Mutex           // held during Weigh
	result   understudy.JobResult // how the run ended

	mu          sync.Mutex
	job         understudy.Job // the job as claimed, with the progress and mark set since
	weights     weights
	pace        pace
	dirty       bool      // whether there is progress that is not stored yet
	heartbeatAt time.Time // the time of the last heartbeat
	leaseEnd    time.Time
	ended       bool // whether the result of the run is being stored or was stored
}

// weights describes the memory of a run.
type weights struct {
	load    *semaphore.Load   // the memory of the run without its parts: the expected weight, or what Weigh set; nil if there is none
	weighed bool              // whether Weigh was called
	parts   []*semaphore.Load // the memory of the parts of the run
	working bool              // whether the run has its memory and has begun its work
}

// pace is the first progress of a run. The end of the run is estimated from it.
type pace struct {
	first   understudy.Progress
	firstAt time.Time // the time of the first progress; zero if the run has reported none
}

// Job returns the job as it was claimed, with its current mark and progress.
func (u *Run) Job() understudy.Job {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.job
}

// SetProgress sets how far the run has come; a total of 0 means unknown. It only changes memory; the runner stores the
// progress at most once a second and at the end. The note is for people; at most 1 KiB of it is stored.
func (u *Run) SetProgress(done, total int64, note string) {
	now := u.r.o.Now()
	u.mu.Lock()
	p := understudy.Progress{Done: done, Total: total, Note: note}
	if u.pace.firstAt.IsZero() || done < u.job.Progress.Done { // progress went back, so another part of the work has begun
		u.pace.first, u.pace.firstAt = p, now
	}
	u.job.Progress = p
	nudge := !u.dirty
	u.dirty = true
	u.mu.Unlock()
	if nudge {
		u.r.wakeLoop(false)
	}
}

// estimateProgress returns the progress with the estimated time of the end.
func (u *Run) estimateProgress(now time.Time) understudy.Progress {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.job.Progress
	done, took := p.Done-u.pace.first.Done, now.Sub(u.pace.firstAt)
	if left := p.Total - p.Done; left >= 0 && p.Total > 0 && done > 0 && took > 0 {
		if wait := float64(took) / float64(done) * float64(left); wait < float64(maxEstimate) {
			p.End = now.Add(time.Duration(wait))
		}
	}
	return p
}

// maxEstimate is the longest remaining time that is estimated.
const maxEstimate = 365 * 24 * time.Hour

// SetMark stores the position at which the next run continues, at most understudy.MaxJobPayload bytes. If it
// returns understudy.ErrLeaseLost, another worker may already run the job, and the run must end. If it returns
// understudy.ErrNotStored, the mark was not stored, and the work before it does not count as done.
func (u *Run) SetMark(ctx context.Context, mark []byte) error {
	u.mu.Lock()
	number, fence := u.job.Number, u.job.Fence
	u.mu.Unlock()
	err := u.r.o.Store.MarkJob(ctx, number, fence, mark)
	if errors.Is(err, understudy.ErrLeaseLost) {
		u.cancel(understudy.ErrLeaseLost)
	}
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.job.Checkpoint = append([]byte(nil), mark...)
	u.mu.Unlock()
	return nil
}

// Weigh sets the memory of the run itself from now on, in bytes, without its parts. It replaces the expected
// weight of the job. Less memory is granted at once. For more memory, Weigh waits until it is free or ctx ends.
// The errors are those of Weigher.
func (u *Run) Weigh(ctx context.Context, bytes int64) error {
	bytes = max(bytes, 0)
	u.weighing.Lock()
	defer u.weighing.Unlock()
	if bytes > u.r.o.Memory {
		return &overQuotaError{bytes, u.r.o.Memory}
	}
	u.mu.Lock()
	load, over := u.weights.load, u.ended
	u.weights.weighed = true
	u.mu.Unlock()
	switch {
	case over:
		return errRunEnded
	case load == nil && bytes == 0:
		return nil
	case load == nil:
		load, err := u.wait(bytes, func() (*semaphore.Load, error) { return u.r.memory.Acquire(ctx, bytes) })
		if err != nil {
			return err
		}
		return u.keep(load, true)
	}
	if held := load.Weight(); bytes <= held {
		load.Shrink(held - bytes)
		u.r.wakeLoop(true)
		return nil
	}
	return u.grow(ctx, load, bytes, nil)
}

// Weigher returns the function of one part of the run with its own weight, such as a page in transfer. The function
// sets the memory of the part from now on, in bytes; 0 at its end. Less memory is granted at once. For more memory, it
// waits until that memory is free or its ctx ends. While it waits, the part has nothing of the new weight.
//
// The first part that calls its function gets the expected weight of the job, unless Weigh was called. If ctx
// ends first, the run must return the error, wrapped or not. The job then runs again when that memory is free;
// the first few such runs do not count as attempts. More than jobs.memory fails the job with an error that
// wraps understudy.ErrInvalid. Only one goroutine at a time may call the function.
func (u *Run) Weigher() func(ctx context.Context, bytes int64) error {
	p := &part{run: u}
	return func(ctx context.Context, bytes int64) error { return p.weigh(ctx, max(bytes, 0)) }
}

// errRunEnded is the error of Weigh and Weigher after the run has ended.
var errRunEnded = fmt.Errorf("jobs: weigh: the run is over: %w", understudy.ErrClosed)

// wait calls get, which waits for memory. If get gives up, wait returns an overQuotaError.
func (u *Run) wait(bytes int64, get func() (*semaphore.Load, error)) (*semaphore.Load, error) {
	u.r.addWaiting(1)
	defer u.r.addWaiting(-1)
	load, err := get()
	if err != nil {
		return nil, &overQuotaError{bytes, u.r.o.Memory}
	}
	return load, nil
}

// grow increases the weight of a load to bytes.
func (u *Run) grow(ctx context.Context, load *semaphore.Load, bytes int64, held []*semaphore.Load) error {
	more := bytes - load.Weight()
	if load.TryGrow(more) {
		return nil
	}
	_, err := u.wait(bytes, func() (*semaphore.Load, error) { return load, load.Grow(ctx, more, held...) })
	return err
}

// keep stores a load so that the end of the run releases it.
func (u *Run) keep(load *semaphore.Load, itself bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.ended:
		load.Release()
		return errRunEnded
	case itself:
		u.weights.load = load
	default:
		u.weights.parts = append(u.weights.parts, load)
	}
	return nil
}

// part is a part of a run that has its own weight.
type part struct {
	run  *Run
	load *semaphore.Load // the memory of the part; nil if it uses none
}

// weigh sets the weight of the part.
func (p *part) weigh(ctx context.Context, bytes int64) error {
	u := p.run
	if bytes > u.r.o.Memory {
		return &overQuotaError{bytes, u.r.o.Memory}
	}
	held, err := p.take(bytes)
	switch weight := p.weight(); {
	case err != nil:
		return err
	case bytes <= weight:
		p.shrink(weight - bytes)
		return nil
	case p.load != nil:
		return u.grow(ctx, p.load, bytes, held)
	}
	load, err := u.wait(bytes, func() (*semaphore.Load, error) { return u.r.memory.Acquire(ctx, bytes, held...) })
	if err != nil {
		return err
	}
	if err := u.keep(load, false); err != nil {
		return err
	}
	p.load = load
	return nil
}

// take gives the expected weight of the job to this part. A part that needs more memory releases this weight before
// it waits, so that no memory is reserved without use. held is the weight set by Weigh, which the run keeps until
// its parts are done.
func (p *part) take(bytes int64) (held []*semaphore.Load, err error) {
	u := p.run
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.ended:
		return nil, errRunEnded
	case u.weights.load != nil && u.weights.weighed:
		return []*semaphore.Load{u.weights.load}, nil
	case u.weights.load == nil || p.load != nil || bytes == 0:
		return nil, nil
	}
	if bytes <= u.weights.load.Weight() {
		p.load = u.weights.load
		u.weights.parts = append(u.weights.parts, p.load)
	} else {
		u.weights.load.Release()
	}
	u.weights.load = nil
	return nil, nil
}

func (p *part) weight() int64 {
	if p.load == nil {
		return 0
	}
	return p.load.Weight()
}

// shrink releases bytes of the part's memory.
func (p *part) shrink(bytes int64) {
	u := p.run
	if p.load == nil {
		return
	}
	// Until a collection, a page that is no longer used still takes memory. A run that waits for that memory would otherwise use
	// it in addition to the garbage.
	if u.r.garbage.Add(bytes) >= u.r.o.Memory/8 {
		u.r.garbage.Store(0)
		u.r.o.CollectGarbage()
	}
	if p.load.Shrink(bytes); p.load.Weight() == 0 {
		u.mu.Lock()
		u.weights.parts = slices.DeleteFunc(u.weights.parts, func(l *semaphore.Load) bool { return l == p.load })
		u.mu.Unlock()
		p.load.Release()
		p.load = nil
	}
	u.r.wakeLoop(true)
}
