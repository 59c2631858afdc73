// Own: which numbers are our own, to mark them in lists.

package page

import (
	"context"
	"net/http"
	"sync"

	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/kit/lru"
	"understudy/request"
)

// mostOwn bounds the numbers of our own that are kept of each sort.
const mostOwn = 100_000

// numbers reads the kinds that list our own numbers: each page asks the mirror,
// which has them, and reads the answer as its own caller. A page that cannot wait
// takes those its role saw last. A first page that finds the mirror empty goes out
// unmarked, and the fetch it began goes on.
type numbers struct {
	v       *Visitor
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	flights map[*plan.Kind]*flight              // one request about each at a time
	last    *lru.Cache[string, map[string]bool] // what a role last saw, by source and role: for a page that cannot wait
	seen    *lru.Cache[ownView, []string]       // what a view says
	wg      sync.WaitGroup
}

// ownView is a page of our own numbers as a role sees it.
type ownView struct {
	kind *plan.Kind
	role string
	sum  [16]byte
}

// flight is one request on its way to every exchange that began it or joined.
type flight struct {
	kind   *plan.Kind
	done   chan struct{}
	answer *request.Response // set before done is closed; nil when none came
}

func newNumbers(v *Visitor) *numbers {
	n := &numbers{v: v, flights: map[*plan.Kind]*flight{}}
	n.last, n.seen = lru.New[string, map[string]bool](mostOwn), lru.New[ownView, []string](mostOwn)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

func (n *numbers) close() {
	n.cancel()
	n.wg.Wait()
}

// marks are the answers on their way to one exchange.
type marks []*flight

// Begin asks for the numbers the caller may know of.
func (n *numbers) Begin(q *Exchange) marks {
	var all marks
	if q.Data != "" {
		return nil
	}
	for _, k := range q.Source.OwnKinds {
		if !q.Rights.OwnVisible(k) || !q.Rights.Gate.Counts(q.Rights.Caller, k.Source.Name, k.Spec.Name) {
			continue // what is read here for all is a page of upstream's
		}
		if f := n.join(k); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// join is the running question about a kind, or a new one; nil after close.
func (n *numbers) join(k *plan.Kind) *flight {
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
	ctx, cancel := context.WithTimeout(n.ctx, n.v.Options.Deadline)
	defer cancel()
	err := contain(func() (err error) {
		f.answer, err = n.v.Options.Mirror.Answer(ctx, request.Request{Target: f.kind.PlannedLists[0].Newest})
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

// Wait gathers what has come, or comes while the page waits, as the caller sees it.
func (all marks) Wait(q *Exchange) map[string]bool {
	if len(all) == 0 {
		return nil
	}
	own, who := map[string]bool{}, q.Source.Name+" "+q.Rights.Caller.Role()
	for _, f := range all {
		select {
		case <-f.done:
			f.read(q, own)
			continue
		default:
		}
		select {
		case <-f.done:
			f.read(q, own)
		case <-q.Tasks.soon.Done():
			if last, ok := q.V.Numbers.last.Get(who); ok {
				return last
			}
			return own
		}
	}
	q.V.Numbers.last.Put(who, own, int64(1+len(own)))
	return own
}

// read adds the numbers of an answer that the caller sees.
func (f *flight) read(q *Exchange, own map[string]bool) {
	if f.answer == nil {
		return
	}
	view, err := q.Rights.Gate.View(q.Rights.Caller, f.answer.Page)
	if err == nil {
		q.V.Numbers.Add(own, q.Rights.Caller.Role(), f.kind, Reading{Answer: f.answer, View: view})
	}
}

// Add adds the numbers of a reading that the caller sees.
func (n *numbers) Add(own map[string]bool, role string, k *plan.Kind, r Reading) {
	if r.View == nil || r.Answer.Page.Status != http.StatusOK {
		return
	}
	key := ownView{k, role, r.View.Sum}
	all, ok := n.seen.Get(key)
	if !ok {
		for _, row := range r.Rows() {
			if val := row.Field(k.Spec.Own); val.State == access.Seen && val.Text != "" {
				all = append(all, val.Text)
			}
		}
		n.seen.Put(key, all, int64(1+len(all)))
	}
	for _, number := range all {
		own[number] = true
	}
}
