// Own: which numbers are our own, to mark them in lists.

package viewer

import (
	"context"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
)

// patience is how long a page that is otherwise ready waits for the marks.
const patience = 20 * time.Millisecond

// numbers reads the kinds that list our own numbers. It holds none of them:
// each page asks the mirror, which has them, and reads the answer as its own
// caller. A first page that finds the mirror empty goes out unmarked, and the
// fetch it began goes on.
type numbers struct {
	v       *Viewer
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	flights map[*kindPlan]*flight // one question about each at a time
	wg      sync.WaitGroup
}

// flight is one question on its way to every visit that began it or joined.
type flight struct {
	kind   *kindPlan
	done   chan struct{}
	answer *understudy.Answer // set before done is closed; nil when none came
}

func newNumbers(v *Viewer) *numbers {
	n := &numbers{v: v, flights: map[*kindPlan]*flight{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

func (n *numbers) close() {
	n.cancel()
	n.wg.Wait()
}

// marks are the answers on their way to one visit.
type marks []*flight

// begin asks for the numbers the caller may know of.
func (n *numbers) begin(q *visit) marks {
	var all marks
	if q.data != "" {
		return nil
	}
	for _, k := range q.source.own {
		if !q.ownVisible(k) || !q.v.Gate.Counts(q.caller, k.source.Name, k.Name) {
			continue // what is read here for all is a page of upstream's
		}
		if f := n.join(k); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// ownVisible reports whether the caller may know our own numbers by a kind.
func (q *visit) ownVisible(k *kindPlan) bool {
	return q.v.Gate.Read(q.caller, k.lists[0].newest) == nil && q.v.Gate.Level(q.caller, k.source.Name, k.Name, k.Own) == access.See
}

// join is the running question about a kind, or a new one; nil after close.
func (n *numbers) join(k *kindPlan) *flight {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return nil
	}
	if f := n.flights[k]; f != nil {
		return f
	}
	f := &flight{kind: k, done: make(chan struct{})}
	n.flights[k] = f
	n.wg.Go(func() { n.fly(f) })
	return f
}

func (n *numbers) fly(f *flight) {
	ctx, cancel := context.WithTimeout(n.ctx, n.v.Deadline)
	defer cancel()
	err := contain(func() (err error) {
		f.answer, err = n.v.Mirror.Page(ctx, understudy.Ask{Target: f.kind.lists[0].newest})
		return err
	})
	if err != nil { // without an answer there are no marks; the page itself says what is wrong
		f.answer = nil
	}
	n.mu.Lock()
	delete(n.flights, f.kind)
	n.mu.Unlock()
	close(f.done)
}

// wait gathers what has come, or comes within patience, as the caller sees it.
func (all marks) wait(q *visit) map[string]bool {
	if len(all) == 0 {
		return nil
	}
	own := map[string]bool{}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, f := range all {
		select {
		case <-f.done:
			f.read(q, own)
		case <-timer.C:
			return own
		case <-q.ctx.Done():
			return own
		}
	}
	return own
}

// read adds the numbers of an answer that the caller sees.
func (f *flight) read(q *visit, own map[string]bool) {
	if f.answer == nil {
		return
	}
	view, err := q.v.Gate.View(q.caller, f.answer.Page)
	if err == nil {
		q.addOwn(own, f.kind, reading{answer: f.answer, view: view})
	}
}

// addOwn adds the numbers of a reading that the caller sees.
func (q *visit) addOwn(own map[string]bool, k *kindPlan, r reading) {
	for _, row := range r.rows() {
		if val := row.Field(k.Own); val.State == access.Seen && val.Text != "" {
			own[val.Text] = true
		}
	}
}
