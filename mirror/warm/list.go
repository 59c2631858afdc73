// Package warm keeps the newest pages of lists fresh. It knows when a list is due and how much of a source's
// rate all polls together may use.
package warm

import (
	"sync/atomic"
	"time"

	"understudy"
	"understudy/spec"
)

// List is the newest page of a polled list. Many goroutines may use it at once.
type List struct {
	Target *spec.Target
	Whole  bool          // the list has no filter, so every new record of the kind appears in it
	Wake   chan struct{} // signals that the page became outdated
	Gone   chan struct{} // closed when the list is no longer polled
	hinted atomic.Bool   // a hint says that there is a new record

	newest atomic.Pointer[time.Time] // when upstream gave the stored page
}

// NewList returns the list of a target without a page.
func NewList(t *spec.Target) *List {
	return &List{Target: t, Whole: t.IsWholeList(), Wake: make(chan struct{}, 1), Gone: make(chan struct{})}
}

// SetNewest stores the time of a newest page that was stored. Any flight may have fetched it.
func (p *List) SetNewest(page *understudy.Page, current bool) {
	if current && page.Status < 400 {
		p.newest.Store(&page.At)
	}
}

// WakeUp wakes the goroutine that polls the list.
func (p *List) WakeUp() {
	select {
	case p.Wake <- struct{}{}:
	default:
	}
}

// NewestAt returns when upstream gave the newest page, or zero if there is none.
func (p *List) NewestAt() time.Time {
	if at := p.newest.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// AddHint notes that there is a new record and wakes the goroutine that polls the list.
func (p *List) AddHint() {
	p.hinted.Store(true)
	p.WakeUp()
}

// TakeHint reports whether there was a hint since the last call.
func (p *List) TakeHint() bool { return p.hinted.Swap(false) }

// Forget forgets the time of the newest page.
func (p *List) Forget() { p.newest.Store(nil) }
