// Places: how many are in at once, all together and of one name.

// Package places bounds how many are at work at once, all together and under
// one name: nobody alone can take every place. Who finds none is told so at
// once; nobody waits (kit/weigh does that).
package places

import (
	"errors"
	"sync"
)

// Why there is no place. ErrFull: every place is taken. ErrEach: all of those
// that one name may have.
var (
	ErrFull = errors.New("places: every place is taken")
	ErrEach = errors.New("places: every place of this name is taken")
)

// Places are to be made by New. They are safe for concurrent use, and hold no
// more than a number for each name that is in.
type Places struct {
	mu        sync.Mutex
	all, each int
	now       int
	taken     map[string]int // by name
	full      int64
	fullEach  int64
}

// New makes places: all together, and each under one name. None are there when
// a number is not above 0.
func New(all, each int) *Places {
	return &Places{all: all, each: each, taken: map[string]int{}}
}

// Limit replaces both numbers. Who is in stays, also where there are more than
// that by now.
func (p *Places) Limit(all, each int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.each = all, each
}

// Take takes a place under a name; leave gives it back, once, however often it
// is called. Errors: ErrEach, ErrFull; of a name to which both apply ErrEach,
// which another's leaving does not end.
func (p *Places) Take(name string) (leave func(), err error) {
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

func (p *Places) leave(name string) {
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
func (p *Places) Load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := Load{All: p.all, Each: p.each, Now: p.now, Refused: p.full, RefusedEach: p.fullEach}
	for _, n := range p.taken {
		l.Most = max(l.Most, n)
	}
	return l
}
