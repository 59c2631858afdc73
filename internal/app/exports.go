// This file keeps track of the running exports across changes of the settings.

package app

import (
	"cmp"
	"context"

	"understudy"
	"understudy/internal/config"
	"understudy/kit/limiter"
	"understudy/kit/lockwatch"
)

// exports are the running exports of the viewer and of the search. They outlive the handlers, which every reload
// replaces. An export continues as long as the current policy makes the same decisions for its caller as the policy
// under which the export began.
//
//	reload --> judge --> another fingerprint: the export ends
//	              '----> the same fingerprint: it goes on
type exports struct {
	viewer, search *limiter.Limiter

	mu      lockwatch.Mutex
	current policy // the current policy
	running map[*runningExport]bool
}

// runningExport is an export that has not ended.
type runningExport struct {
	caller      understudy.Caller
	fingerprint string // the fingerprint of the caller's policy when the export began
	end         context.CancelFunc
}

func newExports(cfg *config.Settings) *exports {
	e := &exports{viewer: limiter.New(0, 0), search: limiter.New(0, 0), running: map[*runningExport]bool{}}
	e.setLimits(cfg)
	return e
}

// setLimits applies the limits in the settings.
func (e *exports) setLimits(cfg *config.Settings) {
	set := func(p *limiter.Limiter, all, each int) {
		p.SetLimits(all, cmp.Or(each, (all+1)/2))
	}
	set(e.viewer, cfg.Viewer.Exports, cfg.Viewer.ExportsEach)
	set(e.search, cfg.Search.Exports, cfg.Search.ExportsEach)
}

// begin returns a function that registers exports begun under a policy. The function's result over is closed when
// the current policy decides differently for the caller. done must be called at the end of the export.
func (e *exports) begin(began policy) func(c understudy.Caller) (over <-chan struct{}, done func()) {
	return func(c understudy.Caller) (<-chan struct{}, func()) {
		ctx, end := context.WithCancel(context.Background())
		u := &runningExport{caller: c, fingerprint: began.gate.PolicyFingerprint(c), end: end}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running[u] = true
		e.endIfChanged(u) // the policy may have changed since the request was received
		return ctx.Done(), func() {
			end()
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.running, u)
		}
	}
}

// replace makes another policy current, and ends the exports whose callers it treats differently.
func (e *exports) replace(p policy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current = p
	for u := range e.running {
		e.endIfChanged(u)
	}
}

// endIfChanged ends an export if the fingerprint of its caller has changed. The caller must hold the lock.
func (e *exports) endIfChanged(u *runningExport) {
	if now := e.current.fingerprint(u.caller); now == "" || now != u.fingerprint {
		u.end()
	}
}

// fingerprint returns the fingerprint of what a caller may see under this policy. It returns "" if the policy
// does not know the caller.
func (p *policy) fingerprint(c understudy.Caller) string {
	if c.Source == "" && c.Name == understudy.CommandCaller.Name { // the token of commands is valid as long as the process runs
		return p.gate.PolicyFingerprint(c)
	}
	now, ok := p.book.Recheck(c)
	if !ok {
		return ""
	}
	return p.gate.PolicyFingerprint(now)
}
