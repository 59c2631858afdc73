// This file decides whether requests may be sent to an upstream that has failed.

package throttle

import (
	"errors"
	"log/slog"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
)

const (
	KeyPause  = time.Second      // how long a key waits after a fetch of it has failed
	DownAfter = 5                // the number of different keys that must fail in a row before a source counts as down
	TriesDown = 10               // the number of tries that must fail in a row before a source counts as down, whatever their keys
	ProbeMin  = time.Second      // the time until the first probe, and until the next probe after an abandoned one
	probeMax  = 60 * time.Second // the maximum time between two probes
	maxPauses = 1024             // the maximum number of keys whose pause is remembered
)

// Breaker records how upstream failed and decides whether requests are sent:
//
//	a fetch failed            -> its key waits a second
//	5 keys in a row failed    -> shut: down; probes only, 1 s, 2 s, … 60 s apart
//	10 tries in a row failed  -> shut, narrow: the same, but a key that failed is no probe
//	401                       -> shut: credential; the same
//	a limit, or 503, and a time to wait -> held until then
//	a good answer             -> open, for all keys
//
// Beside shut there is the state unwell, which changes only the health and the probes of Client.Run. It follows
// a 403, or failures of too few keys.
type Breaker struct {
	now func() time.Time
	log *slog.Logger

	mu        lockwatch.Mutex
	changed   chan struct{}    // closed and replaced whenever a waiting request should check again
	pauses    map[string]pause // the pause of each key that failed
	recent    recent
	condition condition
	probes    probes
	holds     holds
}

// NewBreaker returns a breaker that lets every request pass.
func NewBreaker(o Options) *Breaker {
	return &Breaker{
		now: o.Now, log: o.Logger.With("source", o.Source), changed: make(chan struct{}), pauses: map[string]pause{}, holds: holds{},
		recent: recent{keys: map[string]struct{}{}}, condition: condition{since: o.Now()},
	}
}

// Admission is the breaker's decision on a request. If Err is nil, the request may be sent, perhaps as the
// probe. Err is valid until the time Until, or until Changed is closed.
type Admission struct {
	Probe   bool
	Err     *understudy.UpstreamError
	Until   time.Time // when the request may ask again; zero if it must wait for another request's probe
	Changed <-chan struct{}
}

// Admit decides whether a request may be sent. limit is the upstream's limit for which the request counts. If waiting
// is set, a reader waits for the request, so it may be sent as the probe.
func (g *Breaker) Admit(key, limit string, waiting bool) Admission {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	v := Admission{Changed: g.changed}
	held := g.holds.get(limit)
	switch p, paused := g.pauses[key]; {
	case now.Before(held.until):
		v.Until, v.Err = held.until, g.refusal(understudy.FailDown, held.by, held.until.Sub(now))
	case g.condition.shut != understudy.FailNone && g.probes.running:
		v.Err = g.refusal(g.condition.shut, g.recent.last, 0)
	case g.condition.shut != understudy.FailNone && (now.Before(g.probes.next) || !waiting || g.isSuspect(key)):
		v.Err = g.refusal(g.condition.shut, g.recent.last, g.probes.next.Sub(now))
		if now.Before(g.probes.next) {
			v.Until = g.probes.next
		}
	case g.condition.shut != understudy.FailNone:
		g.probes.running, v.Probe = true, true
	case paused && now.Before(p.until):
		v.Until, v.Err = p.until, g.refusal(understudy.FailDown, p.err, p.until.Sub(now))
	}
	return v
}

// isSuspect reports whether a key must not be the probe, because it may be the only key that fails.
func (g *Breaker) isSuspect(key string) bool {
	_, failed := g.recent.keys[key]
	return g.condition.narrow && failed
}

// CanSend reports whether a request that was admitted and then queued may still be sent. A probe may be sent
// although the breaker is shut, because all requests wait for its result.
func (g *Breaker) CanSend(key, limit string, probe bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	return !now.Before(g.holds.get(limit).until) && (probe || g.condition.shut == understudy.FailNone && !now.Before(g.pauses[key].until))
}

// refusal returns the error of a request that is not sent.
func (g *Breaker) refusal(why understudy.Failure, last *understudy.UpstreamError, left time.Duration) *understudy.UpstreamError {
	e := &understudy.UpstreamError{Why: why, RetryAfter: max(0, left)}
	if last != nil {
		e.Status, e.LimitName, e.Err = last.Status, last.LimitName, errors.New("after "+last.Error())
	}
	return e
}

// TakeProbe reports whether Client.Run should send a probe now, and marks the probe as running. The probe
// counts for one of upstream's limits.
func (g *Breaker) TakeProbe(limit string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if g.condition.unwell == understudy.FailNone || g.probes.running || now.Before(g.probes.next) || now.Before(g.holds.get(limit).until) {
		return false
	}
	g.probes.running = true
	return true
}

// NextProbe returns when the next probe is due. The time is zero if no probe is due before changed is closed.
func (g *Breaker) NextProbe(limit string) (at time.Time, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.condition.unwell == understudy.FailNone || g.probes.running {
		return time.Time{}, g.changed
	}
	if held := g.holds.get(limit); held.until.After(g.probes.next) {
		return held.until, g.changed
	}
	return g.probes.next, g.changed
}

// RecordSuccess records a good answer. The breaker then lets every request pass.
func (g *Breaker) RecordSuccess(key string, probe bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.condition.unwell
	g.recent.answered, g.recent.fails, g.recent.last, g.probes.failed = true, 0, nil, 0
	g.condition.shut, g.condition.unwell, g.probes.next = understudy.FailNone, understudy.FailNone, time.Time{}
	clear(g.recent.keys)
	if g.probes.running = g.probes.running && !probe; was == understudy.FailNone {
		delete(g.pauses, key)
		return
	}
	clear(g.pauses)
	g.condition.since = g.now()
	g.log.Info("upstream answers again", "was", was.String())
	g.notify()
}

// RecordFailure records a failed try. If it was a probe, the wait for the next probe becomes longer.
func (g *Breaker) RecordFailure(key string, e *understudy.UpstreamError, probe bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	last := *e
	last.Page = nil
	g.recent.last = &last
	switch e.Why {
	case understudy.FailUnreachable, understudy.FailServer:
		g.recent.fails++
		if len(g.recent.keys) < DownAfter {
			g.recent.keys[key] = struct{}{}
		}
		if wide := len(g.recent.keys) >= DownAfter; wide || g.recent.fails >= TriesDown || g.condition.shut != understudy.FailNone {
			g.limitToProbes(understudy.FailDown, now)
			g.condition.narrow = !wide
		} else if g.recent.fails >= DownAfter || !g.recent.answered {
			g.markUnwell(understudy.FailDown, now)
		}
	case understudy.FailCredential:
		clear(g.recent.keys)
		g.recent.fails = 0
		if e.Status == 401 {
			g.limitToProbes(understudy.FailCredential, now)
			g.condition.narrow = false
		} else {
			g.condition.shut = understudy.FailNone // the upstream answers; perhaps only this path is forbidden
			g.markUnwell(understudy.FailCredential, now)
		}
	}
	if e.RetryAfter > 0 && (e.Why == understudy.FailLimited || e.Status == 503) {
		g.wait(&last, now)
	}
	if probe {
		g.probes.running = false
		g.probes.schedule(now)
	}
	g.notify()
}

// Hold stops the requests that count for the limit e.LimitName, for the time e.RetryAfter. It does not count as
// a failure.
func (g *Breaker) Hold(e *understudy.UpstreamError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait(e, g.now())
	g.notify()
}

// Holds returns how long the requests that count for a limit still wait because upstream asked for it, by the name of the limit.
func (g *Breaker) Holds() map[string]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, left := g.now(), map[string]time.Duration{}
	for limit, h := range g.holds {
		if h.until.After(now) {
			left[limit] = h.until.Sub(now)
		}
	}
	return left
}

// wait starts a wait that upstream asked for, and logs it.
func (g *Breaker) wait(e *understudy.UpstreamError, now time.Time) {
	if g.holds.wait(e, now) {
		g.log.Warn("upstream asks to wait", "for", e.RetryAfter, "status", e.Status, "limit", e.LimitName)
	}
}

// limitToProbes shuts the breaker: until a probe succeeds, only probes are sent. It starts the probe schedule
// if the breaker was not shut.
func (g *Breaker) limitToProbes(why understudy.Failure, now time.Time) {
	g.markUnwell(why, now)
	if g.condition.shut == understudy.FailNone {
		g.probes.restart(now)
	}
	g.condition.shut = why
}

// markUnwell records that upstream is unwell, and schedules the first probe.
func (g *Breaker) markUnwell(why understudy.Failure, now time.Time) {
	if g.condition.unwell == why {
		return
	}
	if g.condition.unwell == understudy.FailNone {
		g.probes.restart(now)
	}
	g.condition.unwell, g.condition.since = why, now
	g.log.Warn("upstream is failing; requests pause", "state", why.String(), "why", g.recent.last.Error())
}

// Pause records a fetch that has failed after all its tries. Its key must then wait.
func (g *Breaker) Pause(key string, e *understudy.UpstreamError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for k := range g.pauses { // delete any pause, because each saves the upstream only a second of requests
		if len(g.pauses) < maxPauses {
			break
		}
		delete(g.pauses, k)
	}
	last := *e
	last.Page = nil
	g.pauses[key] = pause{now.Add(KeyPause), &last}
}

// RecordAbandonedProbe records a probe whose reader left before the answer. The next probe may be sent a second later.
func (g *Breaker) RecordAbandonedProbe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probes.running = false
	g.probes.next = g.now().Add(ProbeMin)
	g.notify()
}

// RecordUnusedProbe records that a probe was not sent.
func (g *Breaker) RecordUnusedProbe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probes.running = false
	g.notify()
}

// NoteNewCredential removes the pauses that the former credential caused. If upstream refused the former
// credential, a probe is due at once. Until it is answered, no other request is sent.
func (g *Breaker) NoteNewCredential() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.pauses)
	if g.condition.unwell == understudy.FailCredential {
		g.probes.failed, g.probes.next = 0, g.now()
	}
	g.notify()
}

// notify wakes all requests that wait for a change.
func (g *Breaker) notify() {
	close(g.changed)
	g.changed = make(chan struct{})
}
