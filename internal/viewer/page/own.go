// Our own phone numbers, which pages mark.

package page

import (
	"context"
	"net/http"
	"sync"

	"understudy"
	"understudy/kit/lockwatch"

	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/kit/lru"
	"understudy/request"
)

// maxOwnNumbers is the maximum number of our own phone numbers that each cache keeps.
const maxOwnNumbers = 100_000

// numbers reads the kinds that list our own phone numbers. Each page requests the list from the mirror, which usually has it
// stored, and reads it with the rights of its caller. A page that cannot wait uses the numbers that its role saw last. If the
// mirror has nothing stored, the page is sent without marks and the fetch continues in the background.
type numbers struct {
	v       *Visitor
	ctx     context.Context
	cancel  context.CancelFunc
	mu      lockwatch.Mutex
	flights map[*plan.Kind]*flight // the running requests by kind, so that there is only one upstream request for each kind at a time
	// the numbers that a role saw last, by source and role, which are used by pages that cannot wait
	lastSeen *lru.Cache[string, map[string]bool]
	byView   *lru.Cache[ownView, []string] // the numbers of our own that a role sees in a list, by the hash of the list
	wg       sync.WaitGroup
}

// ownView identifies a page of our own numbers as a role sees it.
type ownView struct {
	kind *plan.Kind
	role string
	sum  [16]byte
}

// flight is a request for the list of our own numbers. All exchanges that need the list at the same time share it.
type flight struct {
	kind   *plan.Kind
	done   chan struct{}
	answer *request.Response // the answer, set before done is closed; nil if the request failed
}

func newNumbers(v *Visitor) *numbers {
	n := &numbers{v: v, flights: map[*plan.Kind]*flight{}}
	n.lastSeen, n.byView = lru.New[string, map[string]bool](maxOwnNumbers), lru.New[ownView, []string](maxOwnNumbers)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

func (n *numbers) close() {
	n.cancel()
	n.wg.Wait()
}

// numberFlights are the requests for our own numbers that a page waits for.
type numberFlights []*flight

// Begin requests our own numbers, as far as the caller may know them.
func (n *numbers) Begin(q *Exchange) numberFlights {
	var all numberFlights
	if q.DataFormat != "" {
		return nil
	}
	for _, k := range q.Source.OwnKinds {
		if !q.Rights.CanSeeOwnNumbers(k) || !q.Rights.Gate.CanCount(q.Rights.Caller, k.Source.Name, k.Spec.Name) {
			continue // the shared request reads all records of upstream's page, but this caller may find only some of them
		}
		if f := n.join(k); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// join returns the running request for the list of a kind. If none is running, it starts one. After close it returns nil.
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
	n.wg.Go(func() { n.runFlight(f) })
	return f
}

func (n *numbers) runFlight(f *flight) {
	ctx, cancel := context.WithTimeout(n.ctx, n.v.Options.Deadline)
	defer cancel()
	err := recoverPanics(func() (err error) {
		f.answer, err = n.v.Options.Mirror.Answer(ctx, request.Request{Target: f.kind.PlannedLists[0].Newest})
		return err
	})
	if err != nil { // without an answer no number is marked; the page's own read reports the error
		f.answer = nil
	}
	n.mu.Lock()
	delete(n.flights, f.kind)
	n.mu.Unlock()
	close(f.done)
}

// Wait returns the set of our own numbers that the caller may see. It waits only as long as the page may wait.
func (all numberFlights) Wait(q *Exchange) map[string]bool {
	if len(all) == 0 {
		return nil
	}
	own, who := map[string]bool{}, q.Source.Name+" "+q.Rights.Caller.Role()
	for _, f := range all {
		select {
		case <-f.done:
		case <-q.Tasks.partsWait.Done():
		}
		if understudy.IsClosed(f.done) {
			if f.answer == nil {
				continue
			}
			if view, err := q.Rights.Gate.MakeView(q.Rights.Caller, f.answer.Page); err == nil {
				q.V.Numbers.Add(own, q.Rights.Caller.Role(), f.kind, Reading{Answer: f.answer, View: view})
			}
		} else if last, ok := q.V.Numbers.lastSeen.Get(who); ok {
			return last
		} else {
			return own
		}
	}
	q.V.Numbers.lastSeen.Put(who, own, int64(1+len(own)))
	return own
}

// Add adds our own numbers in a list to own, as far as the caller may see them.
func (n *numbers) Add(own map[string]bool, role string, k *plan.Kind, r Reading) {
	if r.View == nil || r.Answer.Page.Status != http.StatusOK {
		return
	}
	key := ownView{k, role, r.View.Sum}
	all, ok := n.byView.Get(key)
	if !ok {
		for _, row := range r.Rows() {
			if val := row.Field(k.Spec.OwnNumber); val.State == access.Seen && val.Text != "" {
				all = append(all, val.Text)
			}
		}
		n.byView.Put(key, all, int64(1+len(all)))
	}
	for _, number := range all {
		own[number] = true
	}
}
