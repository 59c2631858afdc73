// Exports: those under way, whichever settings they began under.

package app

import (
	"cmp"
	"sync"

	"understudy"
	"understudy/internal/config"
	"understudy/kit/limiter"
)

// exports are those of the viewer and of the search. They outlive the handlers,
// which go with every reading of the settings: an export goes on under the
// policy it began under as long as the one in force decides of its caller alike.
//
//	reading of the settings --> judge --> over closed --> the export breaks off
//	                               '----> standing as it was: it goes on
type exports struct {
	viewer, search *limiter.Limiter

	mu    sync.Mutex
	now   policy // the one in force
	under map[*underWay]bool
}

// underWay is one export.
type underWay struct {
	caller   understudy.Caller
	standing string // when it began
	over     chan struct{}
	ended    bool // over is closed
}

// usualExports is how many go on at once, of either, where the settings
// say nothing; one caller has half of them.
const usualExports = 4

func newExports(cfg *config.Settings) *exports {
	e := &exports{viewer: limiter.New(0, 0), search: limiter.New(0, 0), under: map[*underWay]bool{}}
	e.limit(cfg)
	return e
}

// limit takes the limits of the settings over.
func (e *exports) limit(cfg *config.Settings) {
	set := func(p *limiter.Limiter, all, each int) {
		all = cmp.Or(all, usualExports)
		p.Limit(all, cmp.Or(each, (all+1)/2))
	}
	set(e.viewer, cfg.Viewer.Exports, cfg.Viewer.ExportsEach)
	set(e.search, cfg.Search.Exports, cfg.Search.ExportsEach)
}

// until is when exports that begin under a policy must end: over is closed when
// what their caller may see is another matter. done is called at their end.
func (e *exports) until(began policy) func(c understudy.Caller) (over <-chan struct{}, done func()) {
	return func(c understudy.Caller) (<-chan struct{}, func()) {
		u := &underWay{caller: c, standing: began.gate.PolicyFingerprint(c), over: make(chan struct{})}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.under[u] = true
		e.judge(u) // another policy may have come since its request did
		return u.over, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.under, u)
		}
	}
}

// replace puts another policy in force, and ends what differs under it.
func (e *exports) replace(p policy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = p
	for u := range e.under {
		e.judge(u)
	}
}

// judge ends an export whose caller does not stand as when it began; the lock is
// held. Who has no standing may see nothing.
func (e *exports) judge(u *underWay) {
	if now := e.now.standing(u.caller); !u.ended && (now == "" || now != u.standing) {
		u.ended = true
		close(u.over)
	}
}

// standing is that of a caller some policy knew, under this one; "" when this
// one knows it no more.
func (p *policy) standing(c understudy.Caller) string {
	if c.Source == "" && c.Name == understudy.CommandCaller.Name { // of the token, which lasts as long as the process
		return p.gate.PolicyFingerprint(c)
	}
	now, ok := p.book.Again(c)
	if !ok {
		return ""
	}
	return p.gate.PolicyFingerprint(now)
}
