// Limiter: how many are at work at once, all together and under one name.

// Package limiter bounds how many are at work at once, all together and under one name:
// no name alone can take every slot. What weighs more than one slot is for kit/semaphore.
package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// The errors of Take. ErrFull: every slot is taken. ErrEach: all slots that one name
// may have are taken.
var (
	ErrFull = errors.New("limiter: every place is taken")
	ErrEach = errors.New("limiter: every place of this name is taken")
)

// Limiter must be made by New. It is safe for concurrent use and holds only a number
// for each name with a slot.
type Limiter struct {
	mu        sync.Mutex
	all, each int
	now       int
	taken     map[string]int // by name
	waiting   []*waiter      // first come first
	full      int64
	fullEach  int64
}

// waiter is one that waits for a slot under a name.
type waiter struct {
	name string
	in   chan struct{} // closed when it has one
}

// New makes a limiter with so many slots in all, and under each name. A number below 1
// means none.
func New(all, each int) *Limiter {
	return &Limiter{all: all, each: each, taken: map[string]int{}}
}

// Limit replaces both numbers. Slots that are taken stay taken, also when there are now
// more than that.
func (p *Limiter) Limit(all, each int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.each = all, each
}

// Take takes a slot under a name; leave gives it back, once, however often it is
// called. Errors: ErrEach, ErrFull. When both apply the error is ErrEach, because
// another name's leaving does not end that.
func (p *Limiter) Take(name string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken[name] >= p.each:
		p.fullEach++
		return nil, ErrEach
	case p.now >= p.all:
		p.full++
		return nil, ErrFull
	}
	return p.enter(name), nil
}

// Wait waits for a slot under a name. Who waits for a name whose slots are taken does not hold up others. The error
// is ctx's cause.
func (p *Limiter) Wait(ctx context.Context, name string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fits(name) {
		return p.enter(name), nil
	}
	w := &waiter{name, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-w.in:
	case <-ctx.Done():
	}
	p.mu.Lock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return nil, fmt.Errorf("limiter: %w", context.Cause(ctx))
	}
	return p.once(name), nil
}

func (p *Limiter) fits(name string) bool { return p.taken[name] < p.each && p.now < p.all }

// enter takes a slot; p.mu is held.
func (p *Limiter) enter(name string) (leave func()) {
	p.now++
	p.taken[name]++
	return p.once(name)
}

func (p *Limiter) once(name string) func() { return sync.OnceFunc(func() { p.leave(name) }) }

func (p *Limiter) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
	if p.taken[name]--; p.taken[name] == 0 {
		delete(p.taken, name)
	}
	for i := 0; i < len(p.waiting) && p.now < p.all; i++ {
		if w := p.waiting[i]; p.fits(w.name) {
			p.enter(w.name)
			close(w.in)
			p.waiting = slices.Delete(p.waiting, i, i+1)
			i--
		}
	}
}

// Load is how many slots are taken.
type Load struct {
	All, Each int // the limits
	Now, Most int // taken now: all together, and by the name with most
	// Refused and RefusedEach are how often Take was ErrFull and ErrEach.
	Refused, RefusedEach int64
}

// Load is how many slots are taken now.
func (p *Limiter) Load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := Load{All: p.all, Each: p.each, Now: p.now, Refused: p.full, RefusedEach: p.fullEach}
	for _, n := range p.taken {
		l.Most = max(l.Most, n)
	}
	return l
}
