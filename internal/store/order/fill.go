// Filling in: rows without a place get one between those that keep theirs.

package order

import (
	"math"
	"slices"

	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// fill places the rows that do not stay, run by run between those that do.
func (g *Page) fill(all []*Assignment) error {
	for i := 0; i < len(all); {
		if all[i].fixed {
			i++
			continue
		}
		end := i
		for end < len(all) && !all[end].fixed {
			end++
		}
		var above, below *Assignment
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
func (g *Page) run(rows []*Assignment, above, below *Assignment) error {
	for _, r := range rows {
		if r.At = Nowhere; !r.fits {
			continue
		}
		if above != nil && r.Second > postings.Second(above.At) || below != nil && r.Second < postings.Second(below.At) || r.Second == NoSecond {
			r.fits = false
		}
	}
	if below == nil && g.Next != nil {
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
		for end < len(rows) && (!rows[end].fits || rows[i].fits && rows[end].Second == rows[i].Second) {
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
func (g *Page) nextBelow(rows []*Assignment, above *Assignment) (*Assignment, error) {
	next, err := g.Next()
	g.Next = nil
	if err != nil || next == nil || next.At == Nowhere {
		return nil, err
	}
	if above != nil && next.At >= above.At {
		return nil, nil
	}
	for _, r := range rows { // it stands oddly, or they do: their clocks say more
		if r.fits && r.Second < postings.Second(next.At) {
			return nil, nil
		}
	}
	g.all = append(g.all, next) // it may have to make room
	return next, nil
}

// group places rows of one second, and such that do not fit, right below each
// other.
func (g *Page) group(rows []*Assignment, above, below *Assignment) error {
	second := int64(NoSecond)
	if rows[0].fits {
		second = rows[0].Second
	}
	switch {
	case above != nil && (second == NoSecond || postings.Second(above.At) <= second): // before it when many stand above
		return g.under(rows, above, below, second)
	case below != nil && (second == NoSecond || postings.Second(below.At) == second):
		most := int64(math.MaxInt64)
		if above != nil {
			most = above.At
		}
		if second == NoSecond {
			return g.over(rows, below, most)
		}
		// No further than their second: what comes alone later goes above all it has.
		_, last := postings.SecondBounds(second)
		most = min(most, last+1)
		if above != nil || !g.After {
			// They are the newest of their second: newer, too, than what stood above
			// what they are above and is gone.
			switch taken, err := g.Below(last+1, below.At); {
			case err != nil:
				return err
			case taken > below.At:
				below = &Assignment{At: taken}
			}
		}
		return g.over(rows, below, most)
	}
	first, last := postings.SecondBounds(second)
	taken, err := g.Below(last+1, first)
	if err != nil {
		return err
	}
	if taken >= first && above == nil && g.After {
		// What stands above the page is not known yet; others of that second most
		// likely do.
		lowest, err := g.Above(first-1, last)
		if err != nil {
			return err
		}
		return g.under(rows, &Assignment{At: lowest}, below, second)
	}
	if taken >= first { // others of that second, which stand below the page
		return g.over(rows, &Assignment{At: taken}, last+1)
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
		r.At = middle - int64(i)*step
	}
	return nil
}

// under places rows right below one, within its second while that has room.
func (g *Page) under(rows []*Assignment, above, below *Assignment, second int64) error {
	n := int64(len(rows))
	for again := false; ; again = true {
		floor := above.At - apartFrom*(n+1)
		taken, err := g.Below(above.At, floor)
		if err != nil {
			return err
		}
		floor = max(floor, taken)
		if below != nil {
			floor = max(floor, below.At)
		}
		if second != NoSecond {
			if first, _ := postings.SecondBounds(second); above.At-max(floor, first-1) > 4*n {
				floor = max(floor, first-1)
			}
		}
		step := min(apartFrom, (above.At-floor)/(n+1))
		if step > 0 {
			for i, r := range rows {
				r.At = above.At - int64(i+1)*step
			}
			return nil
		}
		if again {
			return sqlite.Damaged("there is no place below %d", above.At)
		}
		if err := g.Rebalance(above.At, len(rows), g.moved); err != nil {
			return err
		}
	}
}

// moved keeps what is known of the rows right when one of them has moved.
func (g *Page) moved(to map[int64]int64) {
	for _, p := range g.all {
		if at, ok := to[p.At]; ok {
			p.At = at
		}
	}
}

// fewOf is which part of the room up to the end of a second its newest takes at
// most: 70,000 that come one by one find room without a move.
const fewOf = 1 << 14

// over places rows above one and below most: right above it or, where there is
// no room, above others that stand there and are not in the page.
func (g *Page) over(rows []*Assignment, below *Assignment, most int64) error {
	n := int64(len(rows))
	for floor := below.At; ; {
		ceiling := min(most, floor+apartFrom*(n+1))
		taken, err := g.Above(floor, ceiling)
		if err != nil {
			return err
		}
		if taken != Nowhere {
			ceiling = taken
		}
		step := (ceiling - floor) / (n + 1)
		if taken == Nowhere && most != math.MaxInt64 {
			step = min(step, max(1, (most-floor)/(4*n+fewOf))) // what comes later stands above
		}
		if step > 0 {
			for i, r := range rows {
				r.At = floor + (n-int64(i))*step
			}
			return nil
		}
		if ceiling == most {
			if !slices.Contains(g.all, below) {
				below = nil // it moves, and is not told
			}
			return g.under(rows, &Assignment{At: most}, below, NoSecond)
		}
		floor = ceiling
	}
}

// timeless places rows of which nothing is known but their order.
func (g *Page) timeless(rows []*Assignment) error {
	lowest, err := g.Above(timeless-timelessRoom, timeless+timelessRoom)
	if err != nil {
		return err
	}
	if lowest == Nowhere {
		for i, r := range rows {
			r.At = timeless - int64(i)*apartFrom
		}
		return nil
	}
	if g.After {
		return g.under(rows, &Assignment{At: lowest}, nil, NoSecond)
	}
	highest, err := g.Below(timeless+timelessRoom, lowest)
	if err != nil {
		return err
	}
	return g.over(rows, &Assignment{At: highest}, timeless+timelessRoom)
}

// timelessRoom is how far from timeless records without a time may stand.
const timelessRoom = 1 << 50
