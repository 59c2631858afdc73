// Package export limits how many exports run at once, and says when an export must end. Exports may take
// minutes. The viewer and the search write them in their own formats.
package export

import (
	"understudy"
	"understudy/kit/limiter"
)

// Exports are the running exports of one frontend, under a common limit. It is safe for concurrent use.
type Exports struct {
	limit *limiter.Limiter
	until func(c understudy.Caller) (over <-chan struct{}, done func())
}

// New returns Exports with the given limit. until is called when an export begins. Its result over is closed when
// the caller's rights may have changed, and its result done is called at the end of the export. If until is nil,
// rights never change.
func New(limit *limiter.Limiter, until func(c understudy.Caller) (over <-chan struct{}, done func())) *Exports {
	if until == nil {
		until = func(understudy.Caller) (<-chan struct{}, func()) { return nil, func() {} }
	}
	return &Exports{limit: limit, until: until}
}

// Export is a running export. It is not safe for concurrent use.
type Export struct {
	grant       *understudy.Grant
	over        <-chan struct{}
	leave, done func()
}

// Begin admits an export of a caller. The caller of Begin must call End. Errors: limiter.ErrEach and
// limiter.ErrFull if too many exports are running.
func (e *Exports) Begin(c understudy.Caller) (*Export, error) {
	leave, err := e.limit.Take(c.Name)
	if err != nil {
		return nil, err
	}
	over, done := e.until(c)
	return &Export{grant: c.Grant, over: over, leave: leave, done: done}, nil
}

// MustEnd reports whether the export must end because the rights of its caller have changed.
func (x *Export) MustEnd() bool {
	return understudy.IsClosed(x.over) || x.grant.IsRevoked()
}

// End releases the slot of the export.
func (x *Export) End() { x.done(); x.leave() }
