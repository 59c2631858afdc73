// Limiter: how many are at work at once, all together and under one name.

// Package limiter bounds how many are at work at once, all together and under
// one name: nobody alone can take every place. Who finds none is told so at
// once; nobody waits (kit/semaphore does that).
package limiter

import (
	"errors"
	"sync"
)

// Why there is no place. ErrFull: every place is taken. ErrEach: all of those
// that one name may have.
var (
	ErrFull = errors.New("limiter: every place is taken")
	ErrEach = errors.New("limiter: every place of this name is taken")
)

// Limiter must be made by New. It is safe for concurrent use and holds no
// more than a number for each name that is in.
type Limiter struct {
	mu        sync.Mutex
	all, each int
	now       int
	taken     map[string]int // by name
	full      int64
	fullEach  int64
}

// New makes a limiter: all places together, and each under one name. There are none when
// a number is not above 0.
func New(all, each int) *Limiter {
	return &Limiter{all: all, each: each, taken: map[string]int{}}
}

// Limit replaces both numbers. Who is in stays, also where there are more than
// that by now.
func (p *Limiter) Limit(all, each int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.each = all, each
}

// Take takes a place under a name; leave gives it back, once, however often it
// is called. Errors: ErrEach, ErrFull; of a name to which both apply ErrEach,
// which another's leaving does not end.
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
	p.now++
	p.taken[name]++
	return sync.OnceFunc(func() { p.leave(name) }), nil
}

func (p *Limiter) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
	if p.taken[name]--; p.taken[name] == 0 {
		delete(p.taken, name)
	}
}

// Load is how full places are.
type Load struct {
	All, Each int // the limits
	Now, Most int // taken now: all together, and by the name with most
	// Refused and RefusedEach are how often Take was ErrFull and ErrEach.
	Refused, RefusedEach int64
}

// Load is how full they are now.
func (p *Limiter) Load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := Load{All: p.all, Each: p.each, Now: p.now, Refused: p.full, RefusedEach: p.fullEach}
	for _, n := range p.taken {
		l.Most = max(l.Most, n)
	}
	return l
}
