// Filling in: rows without a place get one between those that keep theirs.

package store

import (
	"math"
	"slices"

	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// fill places the rows that do not stay, run by run between those that do.
func (g *placedPage) fill(all []*orderAssignment) error {
	for i := 0; i < len(all); {
		if all[i].fixed {
			i++
			continue
		}
		end := i
		for end < len(all) && !all[end].fixed {
			end++
		}
		var above, below *orderAssignment
		if i > 0 {
			above = all[i-1]
		}
		if end < len(all) {
			below = all[end]
		}
		if err := g.run(all[i:end], above, below); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// run places rows that stand between two that stay, or one, or none.
func (g *placedPage) run(rows []*orderAssignment, above, below *orderAssignment) error {
	for _, r := range rows {
		if r.at = noPosition; !r.fits {
			continue
		}
		if above != nil && r.second > postings.Second(above.at) || below != nil && r.second < postings.Second(below.at) || r.second == noSecond {
			r.fits = false
		}
	}
	if below == nil && g.next != nil {
		var err error
		if below, err = g.nextBelow(rows, above); err != nil {
			return err
		}
	}
	// What stands at the top and does not fit goes above what comes after it.
	first := 0
	for above == nil && first < len(rows) && !rows[first].fits {
		first++
	}
	for i := first; i < len(rows); {
		end := i + 1
		for end < len(rows) && (!rows[end].fits || rows[i].fits && rows[end].second == rows[i].second) {
			end++
		}
		if err := g.group(rows[i:end], above, below); err != nil {
			return err
		}
		above, i = rows[end-1], end
	}
	if first == 0 {
		return nil
	}
	if first < len(rows) {
		below = rows[first]
	}
	if below == nil {
		return g.timeless(rows[:first])
	}
	return g.over(rows[:first], below, math.MaxInt64)
}

// nextBelow is what the page that follows begins with, when rows may have to
// be told apart from it.
func (g *placedPage) nextBelow(rows []*orderAssignment, above *orderAssignment) (*orderAssignment, error) {
	next, err := g.next()
	g.next = nil
	if err != nil || next == nil || next.at == noPosition {
		return nil, err
	}
	if above != nil && next.at >= above.at {
		return nil, nil
	}
	for _, r := range rows { // it stands oddly, or they do: their clocks say more
		if r.fits && r.second < postings.Second(next.at) {
			return nil, nil
		}
	}
	g.all = append(g.all, next) // it may have to make room
	return next, nil
}

// group places rows of one second, and such that do not fit, right below each
// other.
func (g *placedPage) group(rows []*orderAssignment, above, below *orderAssignment) error {
	second := int64(noSecond)
	if rows[0].fits {
		second = rows[0].second
	}
	switch {
	case above != nil && (second == noSecond || postings.Second(above.at) <= second): // before it when many stand above
		return g.under(rows, above, below, second)
	case below != nil && (second == noSecond || postings.Second(below.at) == second):
		most := int64(math.MaxInt64)
		if above != nil {
			most = above.at
		}
		if second == noSecond {
			return g.over(rows, below, most)
		}
		// No further than their second: what comes alone later goes above all it has.
		_, last := postings.SecondBounds(second)
		most = min(most, last+1)
		if above != nil || !g.after {
			// They are the newest of their second: newer, too, than what stood above
			// what they are above and is gone.
			switch taken, err := g.below(last+1, below.at); {
			case err != nil:
				return err
			case taken > below.at:
				below = &orderAssignment{at: taken}
			}
		}
		return g.over(rows, below, most)
	}
	first, last := postings.SecondBounds(second)
	taken, err := g.below(last+1, first)
	if err != nil {
		return err
	}
	if taken >= first && above == nil && g.after {
		// What stands above the page is not known yet; others of that second most
		// likely do.
		lowest, err := g.above(first-1, last)
		if err != nil {
			return err
		}
		return g.under(rows, &orderAssignment{at: lowest}, below, second)
	}
	if taken >= first { // others of that second, which stand below the page
		return g.over(rows, &orderAssignment{at: taken}, last+1)
	}
	step := min(apartFrom, postings.Within/2/int64(len(rows)+1))
	if step == 0 {
		step = 1
	}
	middle := first + postings.Within/2
	if needed := step * int64(len(rows)-1); middle-needed < first {
		middle = first + needed
	}
	for i, r := range rows {
		r.at = middle - int64(i)*step
	}
	return nil
}

// under places rows right below one, within its second while that has room.
func (g *placedPage) under(rows []*orderAssignment, above, below *orderAssignment, second int64) error {
	n := int64(len(rows))
	for again := false; ; again = true {
		floor := above.at - apartFrom*(n+1)
		taken, err := g.below(above.at, floor)
		if err != nil {
			return err
		}
		floor = max(floor, taken)
		if below != nil {
			floor = max(floor, below.at)
		}
		if second != noSecond {
			if first, _ := postings.SecondBounds(second); above.at-max(floor, first-1) > 4*n {
				floor = max(floor, first-1)
			}
		}
		step := min(apartFrom, (above.at-floor)/(n+1))
		if step > 0 {
			for i, r := range rows {
				r.at = above.at - int64(i+1)*step
			}
			return nil
		}
		if again {
			return sqlite.Damaged("there is no place below %d", above.at)
		}
		if err := g.rebalance(above.at, len(rows), g.moved); err != nil {
			return err
		}
	}
}

// moved keeps what is known of the rows right when one of them has moved.
func (g *placedPage) moved(to map[int64]int64) {
	for _, p := range g.all {
		if at, ok := to[p.at]; ok {
			p.at = at
		}
	}
}

// fewOf is which part of the room up to the end of a second its newest takes at
// most: 70,000 that come one by one find room without a move.
const fewOf = 1 << 14

// over places rows above one and below most: right above it or, where there is
// no room, above others that stand there and are not in the page.
func (g *placedPage) over(rows []*orderAssignment, below *orderAssignment, most int64) error {
	n := int64(len(rows))
	for floor := below.at; ; {
		ceiling := min(most, floor+apartFrom*(n+1))
		taken, err := g.above(floor, ceiling)
		if err != nil {
			return err
		}
		if taken != noPosition {
			ceiling = taken
		}
		step := (ceiling - floor) / (n + 1)
		if taken == noPosition && most != math.MaxInt64 {
			step = min(step, max(1, (most-floor)/(4*n+fewOf))) // what comes later stands above
		}
		if step > 0 {
			for i, r := range rows {
				r.at = floor + (n-int64(i))*step
			}
			return nil
		}
		if ceiling == most {
			if !slices.Contains(g.all, below) {
				below = nil // it moves, and is not told
			}
			return g.under(rows, &orderAssignment{at: most}, below, noSecond)
		}
		floor = ceiling
	}
}

// timeless places rows of which nothing is known but their order.
func (g *placedPage) timeless(rows []*orderAssignment) error {
	lowest, err := g.above(timeless-timelessRoom, timeless+timelessRoom)
	if err != nil {
		return err
	}
	if lowest == noPosition {
		for i, r := range rows {
			r.at = timeless - int64(i)*apartFrom
		}
		return nil
	}
	if g.after {
		return g.under(rows, &orderAssignment{at: lowest}, nil, noSecond)
	}
	highest, err := g.below(timeless+timelessRoom, lowest)
	if err != nil {
		return err
	}
	return g.over(rows, &orderAssignment{at: highest}, timeless+timelessRoom)
}

// timelessRoom is how far from timeless records without a time may stand.
const timelessRoom = 1 << 50
