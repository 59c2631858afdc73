// Package warm has what keeping lists warm goes by: the newest page of a list, how often
// it comes due, and how much of a source's rate polls may take together.
package warm

import (
	"sync/atomic"
	"time"

	"understudy"
	"understudy/spec"
)

// List is the newest page of a list. Many goroutines may use it at once.
type List struct {
	Target *spec.Target
	Whole  bool          // no filter: what is new in the kind shows there
	Wake   chan struct{} // what is held became old at once
	Gone   chan struct{} // closed when it is no longer polled
	hinted atomic.Bool   // a hint says that there is something new

	newest atomic.Pointer[time.Time] // when upstream gave what is held
}

// NewList is the list of a target, which was not seen yet.
func NewList(t *spec.Target) *List {
	return &List{Target: t, Whole: t.Whole(), Wake: make(chan struct{}, 1), Gone: make(chan struct{})}
}

// Completed notes that a newest page is held, by whatever flight.
func (p *List) Completed(page *understudy.Page, current bool) {
	if current && page.Status < 400 {
		p.newest.Store(&page.At)
	}
}

// Nudge wakes the goroutine that keeps the list warm.
func (p *List) Nudge() {
	select {
	case p.Wake <- struct{}{}:
	default:
	}
}

// CaughtUp is when upstream last showed the newest page; zero: never.
func (p *List) CaughtUp() time.Time {
	if at := p.newest.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Hint says that there is something new, and wakes the goroutine that keeps it warm.
func (p *List) Hint() {
	p.hinted.Store(true)
	p.Nudge()
}

// TakeHint reports whether a hint came since it was asked last.
func (p *List) TakeHint() bool { return p.hinted.Swap(false) }

// Forget forgets that the newest page was ever seen.
func (p *List) Forget() { p.newest.Store(nil) }
