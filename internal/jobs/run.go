// Run: what a running job reports about itself.

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

// Why a run's context ends before the run does; a lost lease is
// understudy.ErrLost.
var (
	errCancelled = errors.New("cancelled")
	errStopping  = errors.New("the runner is stopping")
)

// overQuotaError is the error of a part that did not get its memory in time.
type overQuotaError struct{ bytes, most int64 }

// Error tells what was asked for.
func (e *overQuotaError) Error() string {
	if e.bytes > e.most {
		return fmt.Sprintf("it weighs %s, more than jobs.memory (%s); raise it", bytesOf(e.bytes), bytesOf(e.most))
	}
	return fmt.Sprintf("there was no room for %s in time; it begins again when there is", bytesOf(e.bytes))
}

// Unwrap returns understudy.ErrInvalid if the memory can never be granted.
func (e *overQuotaError) Unwrap() error {
	if e.bytes > e.most {
		return understudy.ErrInvalid
	}
	return nil
}

// Run is one run of a job. Its methods may be called by several goroutines, as
// long as the kind's function has not returned.
type Run struct {
	r        *Runner
	kind     *Kind
	cancel   context.CancelCauseFunc
	weighing sync.Mutex // one Weigh at a time

	mu          sync.Mutex
	job         understudy.Job // as claimed, and as it says of itself since
	weights     weights
	pace        pace
	dirty       bool      // progress that is not written yet
	heartbeatAt time.Time // of the last heartbeat
	leaseEnd    time.Time
	over        bool // its end is being written, or was
}

// weights are the memory of a run.
type weights struct {
	load    *semaphore.Load   // what it was expected to weigh, or weighs itself; nil: next to nothing
	itself  bool              // it has said what it weighs itself
	parts   []*semaphore.Load // what its parts weigh
	working bool              // it has its weight and has begun
}

// pace is the progress from which the end of a run is estimated.
type pace struct {
	first   understudy.Progress
	firstAt time.Time // of the first progress; zero: none yet
}

// Job is the job as it was claimed, with its mark and progress as they are now.
func (u *Run) Job() understudy.Job {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.job
}

// Progress sets how far the run has come; total 0 means not known. It writes to
// memory only; the store gets it at most once a second and at the end. The note
// is for people; at most 1 KiB of it is kept.
func (u *Run) Progress(done, total int64, note string) {
	now := u.r.o.Now()
	u.mu.Lock()
	p := understudy.Progress{Done: done, Total: total, Note: note}
	if u.pace.firstAt.IsZero() || done < u.job.Progress.Done { // another part of the work has another pace
		u.pace.first, u.pace.firstAt = p, now
	}
	u.job.Progress = p
	nudge := !u.dirty
	u.dirty = true
	u.mu.Unlock()
	if nudge {
		u.r.ring(false)
	}
}

// progress is the progress, with the estimated end.
func (u *Run) progress(now time.Time) understudy.Progress {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.job.Progress
	done, took := p.Done-u.pace.first.Done, now.Sub(u.pace.firstAt)
	if left := p.Total - p.Done; left >= 0 && p.Total > 0 && done > 0 && took > 0 {
		if wait := float64(took) / float64(done) * float64(left); wait < float64(maxReckoned) {
			p.End = now.Add(time.Duration(wait))
		}
	}
	return p
}

// maxReckoned bounds an estimated end.
const maxReckoned = 365 * 24 * time.Hour

// SetMark saves the position from which the next run continues, at most
// understudy.MaxJobPayload bytes. understudy.ErrLost: another worker may run the
// job already; end the run. understudy.ErrNotStored: the mark was not saved, and
// the work it stands for does not count as done.
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

// Weigh sets the memory of the run itself from now on, in bytes, without its parts.
// It replaces the expected weight of the job. Less memory is granted at once. For
// more, Weigh waits until that memory is free or ctx ends. Errors are those of
// Weigher.
func (u *Run) Weigh(ctx context.Context, bytes int64) error {
	bytes = max(bytes, 0)
	u.weighing.Lock()
	defer u.weighing.Unlock()
	if bytes > u.r.o.Memory {
		return &overQuotaError{bytes, u.r.o.Memory}
	}
	u.mu.Lock()
	load, over := u.weights.load, u.over
	u.weights.itself = true
	u.mu.Unlock()
	switch {
	case over:
		return errOver
	case load == nil && bytes == 0:
		return nil
	case load == nil:
		load, err := u.wait(bytes, func() (*semaphore.Load, error) { return u.r.scale.Acquire(ctx, bytes) })
		if err != nil {
			return err
		}
		return u.keep(load, true)
	}
	if held := load.Weight(); bytes <= held {
		load.Shrink(held - bytes)
		u.r.ring(true)
		return nil
	}
	return u.grow(ctx, load, bytes, nil)
}

// Weigher returns the function of one part of the run with its own weight, such as
// a page in transfer. The function sets the memory of the part from now on, in
// bytes; 0 at its end. Less memory is granted at once. For more, it waits until
// that memory is free or its ctx ends. While it waits, the part has nothing of the
// new weight.
//
// The first part that calls its function gets the expected weight of the job,
// unless Weigh was called. If ctx ends first, the run has to return the error,
// wrapped or not. The job then begins again when that memory is free; the first few
// times do not count as attempts. More than jobs.memory fails the job with an error
// that wraps understudy.ErrInvalid. Only one goroutine at a time may call the
// function.
func (u *Run) Weigher() func(ctx context.Context, bytes int64) error {
	p := &part{run: u}
	return func(ctx context.Context, bytes int64) error { return p.weigh(ctx, max(bytes, 0)) }
}

// errOver is the error of Weigh and Weigher after the run has ended.
var errOver = fmt.Errorf("jobs: weigh: the run is over: %w", understudy.ErrClosed)

// wait waits for memory; a wait that is given up returns a overQuotaError error.
func (u *Run) wait(bytes int64, get func() (*semaphore.Load, error)) (*semaphore.Load, error) {
	u.r.gathers(1)
	defer u.r.gathers(-1)
	load, err := get()
	if err != nil {
		return nil, &overQuotaError{bytes, u.r.o.Memory}
	}
	return load, nil
}

// grow makes a load weigh so much.
func (u *Run) grow(ctx context.Context, load *semaphore.Load, bytes int64, held []*semaphore.Load) error {
	more := bytes - load.Weight()
	if load.TryGrow(more) {
		return nil
	}
	_, err := u.wait(bytes, func() (*semaphore.Load, error) { return load, load.Grow(ctx, more, held...) })
	return err
}

// keep holds a load until the run is over at the latest.
func (u *Run) keep(load *semaphore.Load, itself bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.over:
		load.Release()
		return errOver
	case itself:
		u.weights.load = load
	default:
		u.weights.parts = append(u.weights.parts, load)
	}
	return nil
}

// part is something of a run that weighs.
type part struct {
	run  *Run
	load *semaphore.Load // nil: it weighs nothing
}

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
		p.less(weight - bytes)
		return nil
	case p.load != nil:
		return u.grow(ctx, p.load, bytes, held)
	}
	load, err := u.wait(bytes, func() (*semaphore.Load, error) { return u.r.scale.Acquire(ctx, bytes, held...) })
	if err != nil {
		return err
	}
	if err := u.keep(load, false); err != nil {
		return err
	}
	p.load = load
	return nil
}

// take takes over the expected weight of the job. A part that needs more than that
// holds nothing while it waits for all of it, so that no other run waits for it.
// held is the run's own weight, which it holds until its parts are done.
func (p *part) take(bytes int64) (held []*semaphore.Load, err error) {
	u := p.run
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.over:
		return nil, errOver
	case u.weights.load != nil && u.weights.itself:
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

// collect starts a garbage collection when the released bytes reach an eighth of
// the memory limit. Until then a page that is no longer used still takes memory. A
// run that waits for that memory would otherwise use it in addition to the garbage.
func (r *Runner) collect(bytes int64) {
	if r.garbage.Add(bytes) < r.o.Memory/8 {
		return
	}
	r.garbage.Store(0)
	r.o.Collect()
}

// less gives back.
func (p *part) less(bytes int64) {
	u := p.run
	if p.load == nil {
		return
	}
	u.r.collect(bytes)
	if p.load.Shrink(bytes); p.load.Weight() == 0 {
		u.mu.Lock()
		u.weights.parts = slices.DeleteFunc(u.weights.parts, func(l *semaphore.Load) bool { return l == p.load })
		u.mu.Unlock()
		p.load.Release()
		p.load = nil
	}
	u.r.ring(true)
}
