// Package warm decides when the newest page of a list is fetched again, so that it stays fresh, and how much of a
// source's rate these polls may use together.
package warm

import (
	"sync/atomic"
	"time"

	"understudy"
	"understudy/spec"
)

// List is a polled list. It is safe for concurrent use.
type List struct {
	Target *spec.Target
	Whole  bool          // whether the list has no filter, so that it shows every new record of the kind
	Wake   chan struct{} // receives a value when the page must be fetched before its time, because it became outdated
	Gone   chan struct{} // is closed when the list is no longer polled
	hinted atomic.Bool   // whether somebody has said that there is a new record

	newest atomic.Pointer[time.Time] // when upstream sent the stored newest page; nil if none is stored
}

// NewList returns the polled list of a target, of which no page is stored yet.
func NewList(t *spec.Target) *List {
	return &List{Target: t, Whole: t.IsWholeList(), Wake: make(chan struct{}, 1), Gone: make(chan struct{})}
}

// SetNewest notes the time of a newest page that has been stored, whoever has fetched it.
func (p *List) SetNewest(page *understudy.Page, current bool) {
	if current && page.Status < 400 {
		p.newest.Store(&page.At)
	}
}

// WakeUp wakes the goroutine that polls the list.
func (p *List) WakeUp() {
	understudy.Wake(p.Wake)
}

// NewestAt returns when upstream sent the stored newest page. It returns zero if none is stored.
func (p *List) NewestAt() time.Time {
	if at := p.newest.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// AddHint notes that somebody has said that there is a new record. It wakes the goroutine that polls the list.
func (p *List) AddHint() {
	p.hinted.Store(true)
	p.WakeUp()
}

// TakeHint reports whether AddHint was called since the last call of TakeHint.
func (p *List) TakeHint() bool { return p.hinted.Swap(false) }

// Forget forgets that a newest page is stored.
func (p *List) Forget() { p.newest.Store(nil) }
