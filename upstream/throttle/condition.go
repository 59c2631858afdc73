// Condition: what the breaker knows of upstream.

package throttle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"understudy"
	"understudy/kit/retry"
)

// describe is the text of a failure for health: what went wrong, without addresses of the network. The log has those.
func describe(e *understudy.UpstreamError) string {
	var op *net.OpError
	if !errors.As(e.Err, &op) {
		return e.Error()
	}
	said := *e
	said.Err = op.Err
	var call *os.SyscallError
	if errors.As(op.Err, &call) {
		said.Err = call.Err
	}
	if op.Op == "dial" && op.Timeout() {
		said.Err = errors.New("no connection in time")
	}
	return said.Error()
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

// condition is what follows from recent.
type condition struct {
	shut   understudy.Failure // FailNone, FailDown or FailCredential
	narrow bool               // shut for few keys, and perhaps only these fail
	unwell understudy.Failure // as shut; never FailNone while shut is another
	since  time.Time          // of the state health tells
}

// probes are the requests that find out whether upstream is well again.
type probes struct {
	failed  int       // since upstream became unwell
	next    time.Time // when the next one is due
	running bool      // one is under way
}

// schedule sets the next probe: 1 s on, doubling to 60 s, up to a fifth earlier, so that many processes do not probe in
// step.
func (p *probes) schedule(now time.Time) {
	d := retry.Backoff(ProbeMin, probeMax, p.failed)
	p.failed++
	p.next = now.Add(time.Duration(float64(d) * (1 - 0.2*rand.Float64())))
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

// holds are those waits, by the limit of upstream's that is reached; "": everything waits.
type holds map[string]hold

// of is the wait of a request that counts for a limit.
func (all holds) of(limit string) hold {
	h := all[""]
	if one := all[limit]; one.until.After(h.until) {
		h = one
	}
	return h
}

// wait begins one. It is false when a longer one is under way.
func (all holds) wait(e *understudy.UpstreamError, now time.Time) bool {
	until := now.Add(e.RetryAfter)
	if !until.After(all[e.LimitName].until) {
		return false
	}
	all[e.LimitName] = hold{until, e}
	return true
}

// State is what health shows. A wait counts when it is of everything, or of the limit that
// is named.
func (g *Breaker) State(limit string) (state, why string, since, next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hold := g.holds.of(limit)
	held := g.now().Before(hold.until)
	switch {
	case g.condition.unwell == understudy.FailCredential:
		return "credential", describe(g.recent.last), g.condition.since, g.probes.next
	case g.condition.unwell != understudy.FailNone:
		return "down", describe(g.recent.last), g.condition.since, g.probes.next
	case held:
		why = fmt.Sprintf("%v; held until %s", hold.by, hold.until.UTC().Format(time.TimeOnly))
		return "limited", why, hold.until.Add(-hold.by.RetryAfter), hold.until
	}
	return "ok", "", g.condition.since, time.Time{}
}
