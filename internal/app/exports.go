// Exports: the exports under way, whichever settings they began under.

package app

import (
	"cmp"
	"context"
	"sync"

	"understudy"
	"understudy/internal/config"
	"understudy/kit/limiter"
)

// exports are the exports of the viewer and of the search. They outlive the handlers, which
// every reload replaces: an export goes on under the policy it began under as long as the
// policy in force decides the same for its caller.
//
//	reload --> judge --> another fingerprint: the export breaks off
//	              '----> the same fingerprint: it goes on
type exports struct {
	viewer, search *limiter.Limiter

	mu    sync.Mutex
	now   policy // the one in force
	under map[*underWay]bool
}

// underWay is one export under way.
type underWay struct {
	caller      understudy.Caller
	fingerprint string // of the caller's policy when it began
	end         context.CancelFunc
}

func newExports(cfg *config.Settings) *exports {
	e := &exports{viewer: limiter.New(0, 0), search: limiter.New(0, 0), under: map[*underWay]bool{}}
	e.limit(cfg)
	return e
}

// limit sets the limits of the settings.
func (e *exports) limit(cfg *config.Settings) {
	set := func(p *limiter.Limiter, all, each int) {
		p.SetLimits(all, cmp.Or(each, (all+1)/2))
	}
	set(e.viewer, cfg.Viewer.Exports, cfg.Viewer.ExportsEach)
	set(e.search, cfg.Search.Exports, cfg.Search.ExportsEach)
}

// begin returns what registers exports that begin under a policy. over is closed when the policy in force
// decides otherwise for their caller. done is called at their end.
func (e *exports) begin(began policy) func(c understudy.Caller) (over <-chan struct{}, done func()) {
	return func(c understudy.Caller) (<-chan struct{}, func()) {
		ctx, end := context.WithCancel(context.Background())
		u := &underWay{caller: c, fingerprint: began.gate.PolicyFingerprint(c), end: end}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.under[u] = true
		e.judge(u) // another policy may have come since its request did
		return ctx.Done(), func() {
			end()
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.under, u)
		}
	}
}

// replace puts another policy in force, and ends the exports that it decides otherwise for.
func (e *exports) replace(p policy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = p
	for u := range e.under {
		e.judge(u)
	}
}

// judge ends an export whose caller has another fingerprint than when it began. The caller of judge
// holds the lock.
func (e *exports) judge(u *underWay) {
	if now := e.now.fingerprint(u.caller); now == "" || now != u.fingerprint {
		u.end()
	}
}

// fingerprint returns the fingerprint of what a caller of another policy may see under this one; "" when this
// policy does not know the caller.
func (p *policy) fingerprint(c understudy.Caller) string {
	if c.Source == "" && c.Name == understudy.CommandCaller.Name { // of the token, which lasts as long as the process
		return p.gate.PolicyFingerprint(c)
	}
	now, ok := p.book.Again(c)
	if !ok {
		return ""
	}
	return p.gate.PolicyFingerprint(now)
}
