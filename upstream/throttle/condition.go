// This file keeps what the breaker knows about the upstream.

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

// describe returns the text of a failure for people, without network addresses. The log has the addresses.
func describe(e *understudy.UpstreamError) string {
	var op *net.OpError
	if !errors.As(e.Err, &op) {
		return e.Error()
	}
	said := *e
	said.Err = op.Err
	if call, ok := errors.AsType[*os.SyscallError](op.Err); ok {
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

// recent is how tries have ended since the last good answer.
type recent struct {
	answered bool                      // whether the upstream has ever given a good answer
	fails    int                       // the number of failed tries
	keys     map[string]struct{}       // the different keys that failed, at most DownAfter
	last     *understudy.UpstreamError // the last failure, without its page
}

// condition is the state that follows from recent.
type condition struct {
	shut   understudy.Failure // why only probes are sent: FailDown or FailCredential, or FailNone if requests are sent
	narrow bool               // whether only few keys have failed, so that perhaps only these keys fail
	unwell understudy.Failure // why people see the source as failing, with the same values as shut; set whenever shut is set
	since  time.Time          // when the state that people see began
}

// probes are the state of the requests that find out whether upstream works again.
type probes struct {
	failed  int       // the number of probes sent since the upstream began to fail
	next    time.Time // when the next probe is due
	running bool      // whether a probe is running
}

// schedule sets the time of the next probe: after 1 s, doubling to 60 s, each up to a fifth earlier, so that
// many processes do not probe at the same time.
func (p *probes) schedule(now time.Time) {
	d := retry.Backoff(ProbeMin, probeMax, p.failed)
	p.failed++
	p.next = now.Add(time.Duration(float64(d) * (1 - 0.2*rand.Float64())))
}

// restart schedules the first probe.
func (p *probes) restart(now time.Time) {
	p.failed = 0
	p.schedule(now)
}

// hold is a wait that the upstream asked for.
type hold struct {
	until time.Time
	by    *understudy.UpstreamError // the answer in which the upstream asked for the wait
}

// holds are the waits that the upstream asked for, by the name of its limit. The wait of "" applies to every request.
type holds map[string]hold

// get returns the wait of a request that counts for a limit.
func (all holds) get(limit string) hold {
	h := all[""]
	if one := all[limit]; one.until.After(h.until) {
		h = one
	}
	return h
}

// wait begins a wait. It returns false if a longer wait is running.
func (all holds) wait(e *understudy.UpstreamError, now time.Time) bool {
	until := now.Add(e.RetryAfter)
	if !until.After(all[e.LimitName].until) {
		return false
	}
	all[e.LimitName] = hold{until, e}
	return true
}

// State returns the state for health: its name, its reason, when it began, and when upstream is asked again
// (zero if now). A wait counts if it applies to every request, or to the given limit.
func (g *Breaker) State(limit string) (state, why string, since, next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hold := g.holds.get(limit)
	held := g.now().Before(hold.until)
	switch {
	case g.condition.unwell == understudy.FailCredential:
		return "credential", describe(g.recent.last), g.condition.since, g.probes.next
	case g.condition.unwell != understudy.FailNone:
		return "down", describe(g.recent.last), g.condition.since, g.probes.next
	case held:
		why = fmt.Sprintf("%v; requests wait until %s", hold.by, hold.until.UTC().Format(time.TimeOnly))
		return "limited", why, hold.until.Add(-hold.by.RetryAfter), hold.until
	}
	return "ok", "", g.condition.since, time.Time{}
}
