// Circuit breaker: whether upstream may be asked at all, after it failed.

package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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
	now   func() time.Time
	log   *slog.Logger
	large atomic.Int64 // bodies larger than the limit

	mu       sync.Mutex
	pauses   map[string]pause          // by key
	row      map[string]struct{}       // keys that failed since the last good answer, downAfter at most
	fails    int                       // tries that failed since then
	answered bool                      // upstream ever gave a good answer
	last     *understudy.UpstreamError // the last failure, without its page
	shut     understudy.Failure        // FailNone, FailDown or FailCredential
	narrow   bool                      // shut for few keys, which may be all there is to it
	unwell   understudy.Failure        // the same; never none while shut is not
	since    time.Time                 // of the state health tells
	probes   int                       // that failed since unwell
	next     time.Time                 // when the next probe is due
	probing  bool                      // a probe is under way
	until    time.Time                 // held until then
	holder   *understudy.UpstreamError // what held it
	changed  chan struct{}             // closed, and replaced, whenever waiting may have become pointless
}

type pause struct {
	until time.Time
	err   *understudy.UpstreamError
}

func newBreaker(o *Options) *breaker {
	return &breaker{
		now: o.Now, log: o.Logger.With("source", o.Source.Name), since: o.Now(),
		pauses: map[string]pause{}, row: map[string]struct{}{}, changed: make(chan struct{}),
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
	case now.Before(g.until):
		v.until, v.err = g.until, g.refusal(understudy.FailDown, g.holder, g.until.Sub(now))
	case g.shut != understudy.FailNone && g.probing:
		v.err = g.refusal(g.shut, g.last, 0)
	case g.shut != understudy.FailNone && (now.Before(g.next) || !waiting || g.suspect(key)):
		v.until, v.err = g.next, g.refusal(g.shut, g.last, g.next.Sub(now))
	case g.shut != understudy.FailNone:
		g.probing, v.probe = true, true
	case paused && now.Before(p.until):
		v.until, v.err = p.until, g.refusal(understudy.FailDown, p.err, p.until.Sub(now))
	}
	return v
}

// suspect reports whether a key is no probe: it may be the only one that fails.
func (g *breaker) suspect(key string) bool {
	_, failed := g.row[key]
	return g.narrow && failed
}

// still reports whether a request that was let in and then queued may go. The
// probe may; it is what everybody waits for.
func (g *breaker) still(key string, probe bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	return !now.Before(g.until) && (probe || g.shut == understudy.FailNone && !now.Before(g.pauses[key].until))
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
	if g.unwell == understudy.FailNone || g.probing || now.Before(g.next) || now.Before(g.until) {
		return false
	}
	g.probing = true
	return true
}

// due is when Run should look again; zero: not before something changes.
func (g *breaker) due() (at time.Time, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unwell == understudy.FailNone || g.probing {
		return time.Time{}, g.changed
	}
	if g.until.After(g.next) {
		return g.until, g.changed
	}
	return g.next, g.changed
}

// good notes a good answer: everything is open again.
func (g *breaker) good(key string, probe bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.unwell
	g.answered, g.fails, g.last, g.probes = true, 0, nil, 0
	g.shut, g.unwell, g.next = understudy.FailNone, understudy.FailNone, time.Time{}
	clear(g.row)
	if g.probing = g.probing && !probe; was == understudy.FailNone {
		delete(g.pauses, key)
		return
	}
	clear(g.pauses)
	g.since = g.now()
	g.log.Info("upstream answers again", "was", was.String())
	g.tell()
}

// failed notes a try that failed. A probe's failure makes the next one wait
// longer.
func (g *breaker) failed(key string, e *understudy.UpstreamError, probe bool) {
	if errors.Is(e.Err, errTooLarge) {
		g.large.Add(1)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	last := *e
	last.Page = nil
	g.last = &last
	switch e.Why {
	case understudy.FailUnreachable, understudy.FailServer:
		g.fails++
		if len(g.row) < downAfter {
			g.row[key] = struct{}{}
		}
		if wide := len(g.row) >= downAfter; wide || g.fails >= triesDown || g.shut != understudy.FailNone {
			g.close(understudy.FailDown, now)
			g.narrow = !wide
		} else if g.fails >= downAfter || !g.answered {
			g.ail(understudy.FailDown, now)
		}
	case understudy.FailCredential:
		clear(g.row)
		g.fails = 0
		if e.Status == 401 {
			g.close(understudy.FailCredential, now)
			g.narrow = false
		} else {
			g.shut = understudy.FailNone // it answers; the path, perhaps, is not ours
			g.ail(understudy.FailCredential, now)
		}
	}
	if e.RetryAfter > 0 && (e.Status == 429 || e.Status == 503) {
		if until := now.Add(e.RetryAfter); until.After(g.until) {
			g.until, g.holder = until, &last
			g.log.Warn("upstream asks to wait", "for", e.RetryAfter, "status", e.Status)
		}
	}
	if probe {
		g.probing = false
		g.schedule(now)
	}
	g.tell()
}

// close shuts the breaker, which counts anew to the first probe.
func (g *breaker) close(why understudy.Failure, now time.Time) {
	g.ail(why, now)
	if g.shut == understudy.FailNone {
		g.probes = 0
		g.schedule(now)
	}
	g.shut = why
}

// ail notes that upstream is unwell, and when to probe it first.
func (g *breaker) ail(why understudy.Failure, now time.Time) {
	if g.unwell == why {
		return
	}
	if g.unwell == understudy.FailNone {
		g.probes = 0
		g.schedule(now)
	}
	g.unwell, g.since = why, now
	g.log.Warn("upstream is unwell", "state", why.String(), "why", g.last.Error())
}

// schedule sets the next probe: 1 s on, doubling to 60 s, up to a fifth
// earlier so that many sources or processes do not probe in step.
func (g *breaker) schedule(now time.Time) {
	d := probeMin << min(g.probes, 6)
	g.probes++
	g.next = now.Add(time.Duration(float64(min(d, probeMax)) * (1 - 0.2*rand.Float64())))
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
	g.probing = false
	g.next = g.now().Add(probeMin)
	g.tell()
}

// unused notes a probe that was never sent.
func (g *breaker) unused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
	g.tell()
}

// credential forgets the waits a former credential ran into. Where that was
// refused a probe is due at once; until it is back nobody else is sent into
// another refusal.
func (g *breaker) credential() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.pauses)
	if g.unwell == understudy.FailCredential {
		g.probes, g.next = 0, g.now()
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
	held := g.now().Before(g.until)
	switch {
	case g.unwell == understudy.FailCredential:
		return "credential", plainly(g.last), g.since, g.next
	case g.unwell != understudy.FailNone:
		return "down", plainly(g.last), g.since, g.next
	case held:
		return "limited", fmt.Sprintf("%v; held until %s", g.holder, g.until.UTC().Format(time.TimeOnly)), g.until.Add(-g.holder.RetryAfter), g.until
	}
	return "ok", "", g.since, time.Time{}
}
