// Class queue: the requests of one priority class.

package throttle

import (
	"slices"
	"time"

	"understudy/request"
)

// classQueue is a queue in which flows take turns. Within a flow, requests go in the order in which they came.
type classQueue struct {
	flows []*flow // the first one goes next, and is last then
	count int
}

// flow has the requests with one tag. It is in the queue while it has any.
type flow struct {
	id      flowTag
	waiters []*waiter
}

// flowTag is what a flow is told apart by. Requests without a reader also are by upstream's
// limit, so that one that is used up does not delay others.
type flowTag struct {
	flow uint64
	of   string
}

func (p *waiter) tag() flowTag {
	if p.claim.Reason == request.ReasonWaiting {
		return flowTag{flow: p.claim.Flow}
	}
	return flowTag{p.claim.Flow, p.claim.Of}
}

// push puts p at the end of its flow.
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

// first is the request whose turn it is. The queue must not be empty.
func (l *classQueue) first() *waiter { return l.flows[0].waiters[0] }

// toFront makes the flow at i the one that goes next.
func (l *classQueue) toFront(i int) {
	t := l.flows[i]
	copy(l.flows[1:], l.flows[:i])
	l.flows[0] = t
}

// remove takes p out. It is false when p is not there. When it was the turn of p, the next flow is first.
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

// ahead is how many requests go before p. It is -1 when p is not in the queue.
func (l *classQueue) ahead(p *waiter) int {
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
		case passed: // behind mine in every round
			n += min(len(t.waiters), rounds)
		default:
			n += min(len(t.waiters), rounds+1)
		}
	}
	return n
}

// oldest is since when the oldest request has waited. It is zero when the queue is empty.
func (l *classQueue) oldest() (since time.Time) {
	for _, t := range l.flows {
		if first := t.waiters[0].since; since.IsZero() || first.Before(since) {
			since = first
		}
	}
	return since
}
