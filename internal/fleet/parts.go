// This file divides the budgets of requests between the nodes, and passes on the waits that a source has asked for.

package fleet

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/nodes"
)

// Budget is the budget of requests to a source; throttle.Budget implements it.
type Budget interface {
	// Demand returns how many parts the budget has, and how many of them this node needs.
	Demand() (all, needed int)
	// SetParts limits this node to some of the parts, which it has while isValid returns true. It returns how many are in use.
	SetParts(count, nodes int, isValid func() bool) (used int)
}

// Waits are the waits that a source has asked for; throttle.Breaker implements it.
type Waits interface {
	// Holds returns how long requests still wait, by the name of the limit that they count for.
	Holds() map[string]time.Duration
	// Hold lets the requests of a limit wait.
	Hold(e *understudy.UpstreamError)
}

// budget is a budget with the number of parts that this node may use now, and may use once the database says so.
type budget struct {
	Budget
	waits            Waits
	now, next, nodes int
}

// holding is what the database says about a node and a budget, in parts.
type holding struct {
	Node  string `json:"node"`
	Has   int    `json:"has"`
	Needs int    `json:"needs"`
	// Waits are the times, in milliseconds of SharedNow, until which the source asked this node to wait, by the name of the limit.
	Waits map[string]int64 `json:"waits,omitempty"`
}

// sharedWait is the shortest difference to a known wait that is passed on, so that clocks that differ a little cause no writes.
const sharedWait = time.Second

// AddBudget adds the budget of a source to those that the nodes divide, and waits to those that they share. Call it before Join.
func (f *Fleet) AddBudget(source string, b Budget, waits Waits) {
	f.budgets[source] = &budget{Budget: b, waits: waits}
}

// splitBudgets gives parts to nodes that need them, and takes parts that no node has. all is what a renewal has read. If the
// lease had ended, others may have taken the parts. A node stops using a part before the database says so, and begins
// afterwards. The database refuses a division that is based on an older one. So no two nodes use one part.
func (f *Fleet) splitBudgets(ctx context.Context, all []nodes.Node, ended bool) error {
	if len(f.budgets) == 0 {
		return nil
	}
	read, table := all[0], map[string][]holding{}
	if err := json.Unmarshal([]byte(read.Parts), &table); err != nil {
		return err
	}
	for source, b := range f.budgets {
		if ended {
			b.now = 0
		}
		table[source] = f.moveParts(b, slices.DeleteFunc(table[source], func(h holding) bool {
			return !slices.ContainsFunc(all, func(n nodes.Node) bool { return n.ID == h.Node && n.Left > 0 })
		}))
	}
	text, err := json.Marshal(table)
	if err == nil && (ended || string(text) != read.Parts) {
		if done, err := f.o.Table.ReplaceParts(ctx, read.PartsWrites, string(text)); !done {
			return err // if there is no error, another node was faster
		}
		f.NotifyOthers()
	}
	for _, b := range f.budgets {
		b.now = b.next
		b.SetParts(b.now, b.nodes, f.IsCurrent)
	}
	return err
}

// moveParts lowers the parts of this node to what is fair, or raises them as far as no node has the parts, and returns the
// holdings. If there are fewer parts than nodes, the nodes that need parts take turns.
func (f *Fleet) moveParts(b *budget, list []holding) []holding {
	parts, needs := b.Demand()
	i := slices.IndexFunc(list, func(h holding) bool { return h.Node == f.o.Node.ID })
	if i < 0 {
		list, i = append(list, holding{Node: f.o.Node.ID}), len(list)
	}
	if b.now > 0 && parts < len(list) && slices.ContainsFunc(list, func(h holding) bool { return h.Has == 0 && h.Needs > 0 }) {
		mine := list[i]
		list, i = append(slices.Delete(list, i, i+1), mine), len(list)-1
	}
	f.passWaits(b, &list[i], list)
	list[i].Needs, list[i].Has = needs, b.now
	free := parts + b.now
	for _, h := range list {
		free -= h.Has
	}
	b.next, b.nodes = max(0, min(divide(parts, list)[i], free)), len(list)
	b.now = min(b.now, b.next)
	list[i].Has = max(b.next, b.SetParts(b.now, b.nodes, f.IsCurrent))
	return list
}

// passWaits notes in mine for what the source asked this node and those in list, and lets this node wait, too.
func (f *Fleet) passWaits(b *budget, mine *holding, list []holding) {
	now, known, held := f.o.SharedNow(), map[string]int64{}, b.waits.Holds()
	for limit, left := range held {
		known[limit] = now.Add(left).UnixMilli()
	}
	for _, h := range list {
		for limit, until := range h.Waits {
			left := time.UnixMilli(until).Sub(now)
			if left > 0 && until+sharedWait.Milliseconds() > known[limit] {
				known[limit] = until
			}
			if own, waits := held[limit]; left > own+sharedWait || left > 0 && !waits {
				b.waits.Hold(&understudy.UpstreamError{Why: understudy.FailLimited, Status: 429, LimitName: limit, RetryAfter: left})
			}
		}
	}
	mine.Waits = known
}

// divide returns how many parts each node should have. First each gets a few, if there are enough. Then each gets what it
// needs, one part at a time, so nodes that need more than there is get the same. The rest is divided evenly.
func divide(parts int, list []holding) []int {
	shares, few := make([]int, len(list)), parts/(5*len(list))
	for _, limit := range []func(h holding) int{
		func(holding) int { return few }, func(h holding) int { return h.Needs }, func(holding) int { return math.MaxInt },
	} {
		for given := true; given; {
			given = false
			for i, h := range list {
				if parts > 0 && shares[i] < limit(h) {
					shares[i], parts, given = shares[i]+1, parts-1, true
				}
			}
		}
	}
	return shares
}
