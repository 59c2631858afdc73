// Class queue: the requests of one priority class.

package throttle

import (
	"slices"
	"time"

	"understudy/request"
)

// classQueue is a queue in which flows take turns. The requests of one flow are sent in the order of their arrival.
type classQueue struct {
	flows []*flow // the flows in turn: the first flow is next, and then moves to the end
	count int
}

// flow is the waiting requests with the same tag. It is in the queue as long as it has requests.
type flow struct {
	id      flowTag
	waiters []*waiter
}

// flowTag identifies a flow. For requests without a reader it includes upstream's limit, so that a used-up
// limit does not delay requests of other limits.
type flowTag struct {
	flow      uint64
	limitName string
}

// tag returns the tag of a request's flow.
func (p *waiter) tag() flowTag {
	if p.claim.Reason == request.ReasonWaiting {
		return flowTag{flow: p.claim.Flow}
	}
	return flowTag{p.claim.Flow, p.claim.LimitName}
}

// push appends p to its flow.
func (l *classQueue) push(p *waiter) {
	l.count++
	for _, t := range l.flows {
		if t.id == p.tag() {
			t.waiters = append(t.waiters, p)
			return
		}
	}
	l.flows = append(l.flows, &flow{p.tag(), []*waiter{p}})
}

// first returns the request whose turn it is. The queue must not be empty.
func (l *classQueue) first() *waiter { return l.flows[0].waiters[0] }

// moveToFront makes the flow with index i the next one.
func (l *classQueue) moveToFront(i int) {
	t := l.flows[i]
	copy(l.flows[1:], l.flows[:i])
	l.flows[0] = t
}

// remove removes p and reports whether p was in the queue. If it was p's turn, the next flow becomes first.
func (l *classQueue) remove(p *waiter) bool {
	for i, t := range l.flows {
		if t.id != p.tag() {
			continue
		}
		j := slices.Index(t.waiters, p)
		if j < 0 {
			return false
		}
		t.waiters = slices.Delete(t.waiters, j, j+1)
		l.count--
		switch {
		case len(t.waiters) == 0:
			l.flows = slices.Delete(l.flows, i, i+1)
		case i == 0 && j == 0:
			l.flows = append(append(l.flows[:0], l.flows[1:]...), t)
		}
		return true
	}
	return false
}

// countAhead returns how many requests are sent before p, or -1 if p is not in the queue.
func (l *classQueue) countAhead(p *waiter) int {
	var mine *flow
	for _, t := range l.flows {
		if t.id == p.tag() {
			mine = t
		}
	}
	if mine == nil || !slices.Contains(mine.waiters, p) {
		return -1
	}
	rounds, n, passed := slices.Index(mine.waiters, p), 0, false
	for _, t := range l.flows {
		switch {
		case t == mine:
			n += rounds
			passed = true
		case passed: // in every round, the flow of p comes before this flow
			n += min(len(t.waiters), rounds)
		default:
			n += min(len(t.waiters), rounds+1)
		}
	}
	return n
}

// oldest returns since when the oldest request has waited, or the zero time if the queue is empty.
func (l *classQueue) oldest() (since time.Time) {
	for _, t := range l.flows {
		if first := t.waiters[0].since; since.IsZero() || first.Before(since) {
			since = first
		}
	}
	return since
}
