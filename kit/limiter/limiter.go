// Limiter: limits concurrent work in total and for each name.

// Package limiter limits how many operations run at once, in total and for each name, so that no name can take
// every slot. For operations of different weights use kit/semaphore.
package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// The errors of Take. ErrFull means that all slots are taken. ErrEach means that all slots of one name are taken.
var (
	ErrFull = errors.New("limiter: every place is taken")
	ErrEach = errors.New("limiter: every place of this name is taken")
)

// Limiter limits the number of slots taken at once. Create it with New. It is safe for concurrent use, and it
// stores only one number for each name that has a slot.
type Limiter struct {
	mu          sync.Mutex
	all, each   int
	inUse       int
	taken       map[string]int // the number of slots taken, by name
	waiting     []*waiter      // waiting callers in order of arrival
	refused     int64
	refusedEach int64
}

// waiter is a caller that waits for a slot under a name.
type waiter struct {
	name     string
	admitted chan struct{} // closed when the waiter has a slot
}

// New returns a limiter with all slots in total and each slots for a name. A number below 1 means no slots.
func New(all, each int) *Limiter {
	return &Limiter{all: all, each: each, taken: map[string]int{}}
}

// SetLimits replaces both limits. Slots that are already taken stay taken, even if they exceed the new limits.
func (p *Limiter) SetLimits(all, each int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.each = all, each
}

// Take takes a slot under a name without waiting. The caller must call leave to give the slot back; further
// calls of leave do nothing. The errors are ErrEach and ErrFull. If both apply, the error is ErrEach, because a
// slot given back by another name would not help.
func (p *Limiter) Take(name string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken[name] >= p.each:
		p.refusedEach++
		return nil, ErrEach
	case p.inUse >= p.all:
		p.refused++
		return nil, ErrFull
	}
	return p.enter(name), nil
}

// Wait waits for a slot under a name. Waiting for a name whose slots are all taken does not delay other names.
// If ctx ends, Wait returns its cause.
func (p *Limiter) Wait(ctx context.Context, name string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hasSlot(name) {
		return p.enter(name), nil
	}
	w := &waiter{name, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-w.admitted:
	case <-ctx.Done():
	}
	p.mu.Lock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return nil, fmt.Errorf("limiter: %w", context.Cause(ctx))
	}
	return p.releaseOnce(name), nil
}

func (p *Limiter) hasSlot(name string) bool { return p.taken[name] < p.each && p.inUse < p.all }

// enter takes a slot. The caller holds p.mu.
func (p *Limiter) enter(name string) (leave func()) {
	p.inUse++
	p.taken[name]++
	return p.releaseOnce(name)
}

// releaseOnce returns a function that gives a slot of name back, at most once.
func (p *Limiter) releaseOnce(name string) func() { return sync.OnceFunc(func() { p.leave(name) }) }

func (p *Limiter) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse--
	if p.taken[name]--; p.taken[name] == 0 {
		delete(p.taken, name)
	}
	for i := 0; i < len(p.waiting) && p.inUse < p.all; i++ {
		if w := p.waiting[i]; p.hasSlot(w.name) {
			p.enter(w.name)
			close(w.admitted)
			p.waiting = slices.Delete(p.waiting, i, i+1)
			i--
		}
	}
}

// Load describes how many slots are taken.
type Load struct {
	All, Each      int // the limits in total and for each name
	InUse, Busiest int // the number of slots taken in total, and the number of slots taken by the name that has most
	// The number of calls of Take that returned ErrFull and ErrEach.
	Refused, RefusedEach int64
}

// Load returns how many slots are taken now.
func (p *Limiter) Load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := Load{All: p.all, Each: p.each, InUse: p.inUse, Refused: p.refused, RefusedEach: p.refusedEach}
	for _, n := range p.taken {
		l.Busiest = max(l.Busiest, n)
	}
	return l
}
