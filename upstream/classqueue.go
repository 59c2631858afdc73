// Class queue: requests of one priority class in a row; and why one is turned away.

package upstream

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
)

// classQueue is a queue in which those with different turns go one after the other,
// and those with the same one in the order they came.
type classQueue struct {
	flows []*flow // whoever is first goes first; then he is last
	count int
}

// flow is those who share one. It is in its lane while it has any.
type flow struct {
	id     uint64
	places []*waiter
}

func (l *classQueue) push(p *waiter) {
	l.count++
	for _, t := range l.flows {
		if t.id == p.turn {
			t.places = append(t.places, p)
			return
		}
	}
	l.flows = append(l.flows, &flow{p.turn, []*waiter{p}})
}

// first is whose turn it is; the lane must not be empty.
func (l *classQueue) first() *waiter { return l.flows[0].places[0] }

// remove takes p out; false when it is not there. When it was p's turn, the
// next one's comes.
func (l *classQueue) remove(p *waiter) bool {
	for i, t := range l.flows {
		if t.id != p.turn {
			continue
		}
		j := slices.Index(t.places, p)
		if j < 0 {
			return false
		}
		t.places = slices.Delete(t.places, j, j+1)
		l.count--
		switch {
		case len(t.places) == 0:
			l.flows = slices.Delete(l.flows, i, i+1)
		case i == 0 && j == 0:
			l.flows = append(append(l.flows[:0], l.flows[1:]...), t)
		}
		return true
	}
	return false
}

// ahead is how many go before p; -1 when it is not in the lane.
func (l *classQueue) ahead(p *waiter) int {
	var mine *flow
	for _, t := range l.flows {
		if t.id == p.turn {
			mine = t
		}
	}
	if mine == nil || !slices.Contains(mine.places, p) {
		return -1
	}
	rounds, n, passed := slices.Index(mine.places, p), 0, false
	for _, t := range l.flows {
		switch {
		case t == mine:
			n += rounds
			passed = true
		case passed: // behind mine in every round
			n += min(len(t.places), rounds)
		default:
			n += min(len(t.places), rounds+1)
		}
	}
	return n
}

// oldest is since when whoever waits longest has waited; zero: nobody does.
func (l *classQueue) oldest() (since time.Time) {
	for _, t := range l.flows {
		if first := t.places[0].since; since.IsZero() || first.Before(since) {
			since = first
		}
	}
	return since
}

// minRetry is the shortest wait somebody turned away is asked for.
const minRetry = time.Second

var (
	errQueueFull = errors.New("too many errands wait for this source's budget")
	errNoHope    = errors.New("a prefetch is dropped: the budget is needed elsewhere")
)

// queueError is a place that would come, or came, too late.
type queueError struct{ after time.Duration }

// Error says what happened.
func (e *queueError) Error() string {
	return fmt.Sprintf("the queue for this source's budget is too long; try again in %v", e.after.Round(time.Second))
}

// turnedAway is what an error of the budget is to whoever wanted the request;
// nil for other errors.
func turnedAway(err error) *understudy.UpstreamError {
	var late *queueError
	switch {
	case errors.As(err, &late):
		return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: late.after, Err: err}
	case errors.Is(err, errQueueFull):
		return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: minRetry, Err: err}
	case errors.Is(err, errNoHope):
		return &understudy.UpstreamError{Why: understudy.FailLimited, Err: err}
	}
	return nil
}
