// Circuit breaker: whether requests go to an upstream that failed.

package throttle

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"understudy"
)

const (
	KeyPause  = time.Second      // a key's wait after a failed fetch
	DownAfter = 5                // different keys that failed in a row make a source down
	TriesDown = 10               // as many tries in a row do, whatever the keys
	ProbeMin  = time.Second      // until the first probe, and until another after an abandoned one
	probeMax  = 60 * time.Second // between later ones
	maxPauses = 1024             // keys whose pause is remembered
)

// Breaker remembers how upstream failed:
//
//	a fetch failed            -> its key waits a second
//	5 keys in a row failed    -> shut: down; probes only, 1 s, 2 s, … 60 s apart
//	10 tries in a row failed  -> shut, narrow: the same, but a key that failed is no probe
//	401                       -> shut: credential; the same
//	a limit, or 503, and a time to wait -> held until then
//	a good answer             -> open, for all keys
//
// Beside shut there is unwell, which changes only health and the probes of Client.Run: 403, or failures of too few
// keys.
type Breaker struct {
	now func() time.Time
	log *slog.Logger

	mu        sync.Mutex
	changed   chan struct{}    // closed, and replaced, whenever a wait may have become pointless
	pauses    map[string]pause // by key
	recent    recent
	condition condition
	probes    probes
	holds     holds
}

// NewBreaker makes a breaker that is open.
func NewBreaker(o Options) *Breaker {
	return &Breaker{
		now: o.Now, log: o.Logger.With("source", o.Source), changed: make(chan struct{}), pauses: map[string]pause{}, holds: holds{},
		recent: recent{keys: map[string]struct{}{}}, condition: condition{since: o.Now()},
	}
}

// Admission is the breaker's answer to a request. Without Err the request may go, perhaps as the probe. Err holds until
// the time Until, or until Changed is closed.
type Admission struct {
	Probe   bool
	Err     *understudy.UpstreamError
	Until   time.Time // zero: unknown, until a probe of another request ends
	Changed <-chan struct{}
}

// Admit says whether a request may go, that counts for the limit of upstream's that is named. A request for which a
// reader is waiting may be the probe.
func (g *Breaker) Admit(key, limit string, waiting bool) Admission {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	v := Admission{Changed: g.changed}
	held := g.holds.of(limit)
	switch p, paused := g.pauses[key]; {
	case now.Before(held.until):
		v.Until, v.Err = held.until, g.refusal(understudy.FailDown, held.by, held.until.Sub(now))
	case g.condition.shut != understudy.FailNone && g.probes.running:
		v.Err = g.refusal(g.condition.shut, g.recent.last, 0)
	case g.condition.shut != understudy.FailNone && (now.Before(g.probes.next) || !waiting || g.suspect(key)):
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

// suspect reports that a key is no probe: it may be the only key that fails.
func (g *Breaker) suspect(key string) bool {
	_, failed := g.recent.keys[key]
	return g.condition.narrow && failed
}

// StillOpen reports whether a request that was admitted and then queued may go. The probe may: all requests wait for
// its answer.
func (g *Breaker) StillOpen(key, limit string, probe bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	return !now.Before(g.holds.of(limit).until) && (probe || g.condition.shut == understudy.FailNone && !now.Before(g.pauses[key].until))
}

// refusal is the error of a request that is not sent.
func (g *Breaker) refusal(why understudy.Failure, last *understudy.UpstreamError, left time.Duration) *understudy.UpstreamError {
	e := &understudy.UpstreamError{Why: why, RetryAfter: max(0, left)}
	if last != nil {
		e.Status, e.LimitName, e.Err = last.Status, last.LimitName, errors.New("after "+last.Error())
	}
	return e
}

// TakeProbe admits the probe of Client.Run, that counts for a limit of upstream's, when one is due and none is under way.
func (g *Breaker) TakeProbe(limit string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if g.condition.unwell == understudy.FailNone || g.probes.running || now.Before(g.probes.next) || now.Before(g.holds.of(limit).until) {
		return false
	}
	g.probes.running = true
	return true
}

// NextProbe is when the next probe is due. Zero: not before something changes.
func (g *Breaker) NextProbe(limit string) (at time.Time, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.condition.unwell == understudy.FailNone || g.probes.running {
		return time.Time{}, g.changed
	}
	if held := g.holds.of(limit); held.until.After(g.probes.next) {
		return held.until, g.changed
	}
	return g.probes.next, g.changed
}

// Succeeded notes a good answer: the breaker is open again.
func (g *Breaker) Succeeded(key string, probe bool) {
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
	g.signal()
}

// Failed notes a try that failed. A probe's failure makes the next one wait longer.
func (g *Breaker) Failed(key string, e *understudy.UpstreamError, probe bool) {
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
			g.shutFor(understudy.FailDown, now)
			g.condition.narrow = !wide
		} else if g.recent.fails >= DownAfter || !g.recent.answered {
			g.becomeUnwell(understudy.FailDown, now)
		}
	case understudy.FailCredential:
		clear(g.recent.keys)
		g.recent.fails = 0
		if e.Status == 401 {
			g.shutFor(understudy.FailCredential, now)
			g.condition.narrow = false
		} else {
			g.condition.shut = understudy.FailNone // it answers; perhaps only the path is not allowed
			g.becomeUnwell(understudy.FailCredential, now)
		}
	}
	if e.RetryAfter > 0 && (e.Why == understudy.FailLimited || e.Status == 503) {
		g.wait(&last, now)
	}
	if probe {
		g.probes.running = false
		g.probes.schedule(now)
	}
	g.signal()
}

// Hold lets no request out for as long as e says, of those that count for e.Of. It is no failure.
func (g *Breaker) Hold(e *understudy.UpstreamError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait(e, g.now())
	g.signal()
}

func (g *Breaker) wait(e *understudy.UpstreamError, now time.Time) {
	if g.holds.wait(e, now) {
		g.log.Warn("upstream asks to wait", "for", e.RetryAfter, "status", e.Status, "limit", e.LimitName)
	}
}

// shutFor shuts the breaker, which counts anew to the first probe.
func (g *Breaker) shutFor(why understudy.Failure, now time.Time) {
	g.becomeUnwell(why, now)
	if g.condition.shut == understudy.FailNone {
		g.probes.restart(now)
	}
	g.condition.shut = why
}

// becomeUnwell notes that upstream is unwell, and when to probe it first.
func (g *Breaker) becomeUnwell(why understudy.Failure, now time.Time) {
	if g.condition.unwell == why {
		return
	}
	if g.condition.unwell == understudy.FailNone {
		g.probes.restart(now)
	}
	g.condition.unwell, g.condition.since = why, now
	g.log.Warn("upstream is unwell", "state", why.String(), "why", g.recent.last.Error())
}

// Pause notes a fetch that failed for good: its key waits.
func (g *Breaker) Pause(key string, e *understudy.UpstreamError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for k := range g.pauses { // any of them: a pause only spares upstream a second
		if len(g.pauses) < maxPauses {
			break
		}
		delete(g.pauses, k)
	}
	last := *e
	last.Page = nil
	g.pauses[key] = pause{now.Add(KeyPause), &last}
}

// ProbeAbandoned notes a probe whose reader left before it had an answer. Another probe may go a second later.
func (g *Breaker) ProbeAbandoned() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probes.running = false
	g.probes.next = g.now().Add(ProbeMin)
	g.signal()
}

// ProbeUnused notes a probe that was not sent.
func (g *Breaker) ProbeUnused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probes.running = false
	g.signal()
}

// CredentialReplaced forgets the pauses that the former credential caused. When upstream refused it, a probe is due at
// once. Until its answer is back, no other request is sent.
func (g *Breaker) CredentialReplaced() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.pauses)
	if g.condition.unwell == understudy.FailCredential {
		g.probes.failed, g.probes.next = 0, g.now()
	}
	g.signal()
}

// signal wakes what waits for a change.
func (g *Breaker) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}
