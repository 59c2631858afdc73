// This file limits this process to its parts of a budget that several processes use.

package throttle

import (
	"math"
	"time"
)

// demandMemory is the time in which the demand falls from all parts to none.
const demandMemory = 4 * time.Second

// demand is what the requests have used since it was measured last.
type demand struct {
	since time.Time
	used  int     // the largest number of slots in use
	short bool    // whether a request waited for more parts
	parts float64 // the last result
}

// SetParts limits this process to some parts of a budget that a number of processes (nodes) use. A budget has as many parts as
// slots. A part is one slot and an equal part of the rate. The process has the parts while isValid, which must be fast,
// returns true. SetParts returns how many slots are in use, which may be more than the parts.
func (b *Budget) SetParts(count, nodes int, isValid func() bool) (used int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts, b.nodes, b.isValid = count, nodes, isValid
	b.grant()
	return b.slots.usedCount()
}

// Demand returns how many parts the budget has, and how many of them the requests of this process need: all if a request
// waited, or else twice the slots in use. It is rounded up to an eighth, and falls slowly, so that parts move rarely.
func (b *Budget) Demand() (all, needed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.grant() // notes whether a request waits
	d, total := &b.demand, float64(b.total)
	now := max(2*float64(d.used), d.parts-total*b.at.Sub(d.since).Seconds()/demandMemory.Seconds())
	if d.short {
		now = total
	}
	*d = demand{since: b.at, used: b.slots.usedCount(), parts: min(now, total)}
	return b.total, int(math.Ceil(math.Ceil(d.parts/total*8) / 8 * total))
}

// applyParts sets the limits that follow from the settings and the parts. If other processes may have taken the parts, the
// limits are so low that the sum is still right if no process can ask the others.
func (b *Budget) applyParts() {
	rate, slots := b.rate, b.total
	if n := b.nodes; n > 0 {
		part := math.Inf(1)
		if slots = min(b.parts, b.total); !b.isValid() {
			slots, part = min(max(slots, min(1, b.total/n)), max(1, b.total/(2*n))), 0.5/float64(n)
		}
		rate *= min(float64(slots)/float64(b.total), part)
	}
	if rate != b.bucket.rate || slots != b.slots.total {
		b.bucket.rate, b.bucket.burst = rate, max(1, rate)
		b.bucket.tokens = min(b.bucket.tokens, b.bucket.burst)
		b.reserve.next = time.Time{}
		b.slots.resize(slots, b.at)
	}
}
