// Circuit breaker: whether upstream may be asked at all, after it failed.

package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"understudy"
)

const (
	keyPause  = time.Second      // a key's wait after a failed fetch
	downAfter = 5                // different keys that failed in a row make a source down
	triesDown = 10               // as many tries in a row do, whatever the keys
	probeMin  = time.Second      // until the first probe
	probeMax  = 60 * time.Second // between later ones
	maxPauses = 1024             // keys whose wait is remembered
)

// breaker remembers how upstream failed:
//
//	a fetch failed            -> its key waits a second
//	5 keys in a row failed    -> shut: down; probes only, 1 s, 2 s, … 60 s apart
//	10 tries in a row failed  -> shut: narrowly; the same, but what failed is no probe
//	401                       -> shut: credential; the same
//	429 or 503, Retry-After   -> held until then
//	a good answer             -> open, for all keys
//
// Beside shut there is unwell, which changes nothing but health and Run's
// probes: 403, or failures too few keys ran into.
type breaker struct {
	now func() time.Time
	log *slog.Logger

	mu        sync.Mutex
	changed   chan struct{}    // closed, and replaced, whenever a wait may have become pointless
	pauses    map[string]pause // by key
	recent    recent
	condition condition
	probes    probes
	hold      hold
}

// pause is the wait of a key after a fetch of it failed.
type pause struct {
	until time.Time
	err   *understudy.UpstreamError
}

// recent is how tries ended since the last good answer.
type recent struct {
	answered bool                      // upstream ever gave a good answer
	fails    int                       // tries that failed
	keys     map[string]struct{}       // keys that failed, downAfter at most
	last     *understudy.UpstreamError // the last failure, without its page
}

// condition is what the breaker makes of that.
type condition struct {
	shut   understudy.Failure // FailNone, FailDown or FailCredential
	narrow bool               // shut for few keys, which may be all there is to it
	unwell understudy.Failure // the same; never none while shut is not
	since  time.Time          // of the state health tells
}

// probes are the requests that find out whether upstream is well again.
type probes struct {
	failed  int       // since upstream became unwell
	next    time.Time // when the next one is due
	running bool      // one is under way
}

// schedule sets the next probe: 1 s on, doubling to 60 s, up to a fifth
// earlier so that many sources or processes do not probe in step.
func (p *probes) schedule(now time.Time) {
	d := probeMin << min(p.failed, 6)
	p.failed++
	p.next = now.Add(time.Duration(float64(min(d, probeMax)) * (1 - 0.2*rand.Float64())))
}

// restart counts anew to the first probe.
func (p *probes) restart(now time.Time) {
	p.failed = 0
	p.schedule(now)
}

// hold is a wait that upstream asked for.
type hold struct {
	until time.Time
	by    *understudy.UpstreamError // its answer
}

func newBreaker(o *Options) *breaker {
	return &breaker{
		now: o.Now, log: o.Logger.With("source", o.Source.Name), changed: make(chan struct{}), pauses: map[string]pause{},
		recent: recent{keys: map[string]struct{}{}}, condition: condition{since: o.Now()},
	}
}

// admission is what the breaker says to a request: go (as the probe, perhaps), or
// err now, which may change at until or when changed is closed.
type admission struct {
	probe   bool
	err     *understudy.UpstreamError
	until   time.Time // zero: nobody knows (a probe is under way)
	changed <-chan struct{}
}

// ask asks for a request. waiting: somebody waits for it, so it may be the
// probe.
func (g *breaker) ask(key string, waiting bool) admission {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	v := admission{changed: g.changed}
	switch p, paused := g.pauses[key]; {
	case now.Before(g.hold.until):
		v.until, v.err = g.hold.until, g.refusal(understudy.FailDown, g.hold.by, g.hold.until.Sub(now))
	case g.condition.shut != understudy.FailNone && g.probes.running:
		v.err = g.refusal(g.condition.shut, g.recent.last, 0)
	case g.condition.shut != understudy.FailNone && (now.Before(g.probes.next) || !waiting || g.suspect(key)):
		v.until, v.err = g.probes.next, g.refusal(g.condition.shut, g.recent.last, g.probes.next.Sub(now))
	case g.condition.shut != understudy.FailNone:
		g.probes.running, v.probe = true, true
	case paused && now.Before(p.until):
		v.until, v.err = p.until, g.refusal(understudy.FailDown, p.err, p.until.Sub(now))
	}
	return v
}

// suspect reports whether a key is no probe: it may be the only one that fails.
func (g *breaker) suspect(key string) bool {
	_, failed := g.recent.keys[key]
	return g.condition.narrow && failed
}

// still reports whether a request that was let in and then queued may go. The
// probe may; it is what everybody waits for.
func (g *breaker) still(key string, probe bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	return !now.Before(g.hold.until) && (probe || g.condition.shut == understudy.FailNone && !now.Before(g.pauses[key].until))
}

// refusal is the error of a request that is not sent.
func (g *breaker) refusal(why understudy.Failure, last *understudy.UpstreamError, left time.Duration) *understudy.UpstreamError {
	e := &understudy.UpstreamError{Why: why, RetryAfter: max(0, left)}
	if last != nil {
		e.Status, e.Err = last.Status, errors.New("after "+last.Error())
	}
	return e
}

// probeNow lets Run's probe in when one is due and nobody has taken it.
func (g *breaker) probeNow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if g.condition.unwell == understudy.FailNone || g.probes.running || now.Before(g.probes.next) || now.Before(g.hold.until) {
		return false
	}
	g.probes.running = true
	return true
}

// due is when Run should look again; zero: not before something changes.
func (g *breaker) due() (at time.Time, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.condition.unwell == understudy.FailNone || g.probes.running {
		return time.Time{}, g.changed
	}
	if g.hold.until.After(g.probes.next) {
		return g.hold.until, g.changed
	}
	return g.probes.next, g.changed
}

// good notes a good answer: everything is open again.
func (g *breaker) good(key string, probe bool) {
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
	g.tell()
}

// failed notes a try that failed. A probe's failure makes the next one wait
// longer.
func (g *breaker) failed(key string, e *understudy.UpstreamError, probe bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	last := *e
	last.Page = nil
	g.recent.last = &last
	switch e.Why {
	case understudy.FailUnreachable, understudy.FailServer:
		g.recent.fails++
		if len(g.recent.keys) < downAfter {
			g.recent.keys[key] = struct{}{}
		}
		if wide := len(g.recent.keys) >= downAfter; wide || g.recent.fails >= triesDown || g.condition.shut != understudy.FailNone {
			g.close(understudy.FailDown, now)
			g.condition.narrow = !wide
		} else if g.recent.fails >= downAfter || !g.recent.answered {
			g.ail(understudy.FailDown, now)
		}
	case understudy.FailCredential:
		clear(g.recent.keys)
		g.recent.fails = 0
		if e.Status == 401 {
			g.close(understudy.FailCredential, now)
			g.condition.narrow = false
		} else {
			g.condition.shut = understudy.FailNone // it answers; the path, perhaps, is not ours
			g.ail(understudy.FailCredential, now)
		}
	}
	if e.RetryAfter > 0 && (e.Status == 429 || e.Status == 503) {
		if until := now.Add(e.RetryAfter); until.After(g.hold.until) {
			g.hold.until, g.hold.by = until, &last
			g.log.Warn("upstream asks to wait", "for", e.RetryAfter, "status", e.Status)
		}
	}
	if probe {
		g.probes.running = false
		g.probes.schedule(now)
	}
	g.tell()
}

// close shuts the breaker, which counts anew to the first probe.
func (g *breaker) close(why understudy.Failure, now time.Time) {
	g.ail(why, now)
	if g.condition.shut == understudy.FailNone {
		g.probes.restart(now)
	}
	g.condition.shut = why
}

// ail notes that upstream is unwell, and when to probe it first.
func (g *breaker) ail(why understudy.Failure, now time.Time) {
	if g.condition.unwell == why {
		return
	}
	if g.condition.unwell == understudy.FailNone {
		g.probes.restart(now)
	}
	g.condition.unwell, g.condition.since = why, now
	g.log.Warn("upstream is unwell", "state", why.String(), "why", g.recent.last.Error())
}

// ended notes a fetch that failed for good: its key waits.
func (g *breaker) ended(key string, e *understudy.UpstreamError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for k := range g.pauses { // any of them: they only spare upstream a second
		if len(g.pauses) < maxPauses {
			break
		}
		delete(g.pauses, k)
	}
	last := *e
	last.Page = nil
	g.pauses[key] = pause{now.Add(keyPause), &last}
}

// abandon notes a probe that ended without an answer either way: its reader
// left. Somebody else may probe a second later.
func (g *breaker) abandon() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probes.running = false
	g.probes.next = g.now().Add(probeMin)
	g.tell()
}

// unused notes a probe that was never sent.
func (g *breaker) unused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probes.running = false
	g.tell()
}

// credential forgets the waits a former credential ran into. Where that was
// refused a probe is due at once; until it is back nobody else is sent into
// another refusal.
func (g *breaker) credential() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.pauses)
	if g.condition.unwell == understudy.FailCredential {
		g.probes.failed, g.probes.next = 0, g.now()
	}
	g.tell()
}

func (g *breaker) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// state is what health says.
func (g *breaker) state() (state, why string, since, next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.now().Before(g.hold.until)
	switch {
	case g.condition.unwell == understudy.FailCredential:
		return "credential", plainly(g.recent.last), g.condition.since, g.probes.next
	case g.condition.unwell != understudy.FailNone:
		return "down", plainly(g.recent.last), g.condition.since, g.probes.next
	case held:
		why = fmt.Sprintf("%v; held until %s", g.hold.by, g.hold.until.UTC().Format(time.TimeOnly))
		return "limited", why, g.hold.until.Add(-g.hold.by.RetryAfter), g.hold.until
	}
	return "ok", "", g.condition.since, time.Time{}
}
