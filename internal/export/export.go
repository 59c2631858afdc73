// Package export admits exports, answers that may take minutes, and says when
// one must end. The viewer and the search write theirs in forms of their own.
package export

import (
	"understudy"
	"understudy/kit/limiter"
)

// Exports are those of one frontend under one policy. Their methods may be called
// by many goroutines.
type Exports struct {
	limit *limiter.Limiter
	until func(c understudy.Caller) (over <-chan struct{}, done func())
}

// New admits as many as limit does. until is called when one begins: over is
// closed when its caller may see something else by now, done is called at its
// end. nil: none ends before it is whole.
func New(limit *limiter.Limiter, until func(c understudy.Caller) (over <-chan struct{}, done func())) *Exports {
	if until == nil {
		until = func(understudy.Caller) (<-chan struct{}, func()) { return nil, func() {} }
	}
	return &Exports{limit: limit, until: until}
}

// Export is one under way. It belongs to one goroutine.
type Export struct {
	grant       *understudy.Grant
	over        <-chan struct{}
	leave, done func()
}

// Begin admits one of a caller; End must be called. Errors: limiter.ErrEach and
// limiter.ErrFull when too many are under way.
func (e *Exports) Begin(c understudy.Caller) (*Export, error) {
	leave, err := e.limit.Take(c.Name)
	if err != nil {
		return nil, err
	}
	over, done := e.until(c)
	return &Export{grant: c.Grant, over: over, leave: leave, done: done}, nil
}

// Over reports whether it must end, because what its caller may see has changed.
func (x *Export) Over() bool {
	select {
	case <-x.over:
		return true
	default:
		return x.grant != nil && x.grant.Revoked()
	}
}

// End gives its place to another.
func (x *Export) End() { x.done(); x.leave() }
