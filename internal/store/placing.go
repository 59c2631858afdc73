// Placing: the rows of a list page get places that fall from top to bottom.
//
// What is known and agrees stays where it is: of the rows the heaviest falling
// subsequence, in which a row that a page has shown weighs more than one that
// only has its clock. So one row that stands oddly moves alone. The others are
// placed between their neighbours, in the second of their clock where that
// lies between those of their neighbours.

package store

import (
	"math"
	"slices"
)

// placing is a row of a page, or what its page follows, and where it stands.
type placing struct {
	at     int64 // its position; noPosition: none yet
	shown  bool  // a page has shown it there; else its clock alone has placed it
	second int64 // the natural one; noSecond: none

	fixed bool // it stays where it is
	fits  bool // its second goes with those around it
}

// ground is where the records of a kind stand.
type ground interface {
	// below is the highest position that is taken below one, from least on,
	// noPosition when there is none; above the lowest above one, up to most.
	below(position, least int64) (int64, error)
	above(position, most int64) (int64, error)
	// widen makes room for n more just below a position, by moving those that
	// stand below it further apart; it tells where those that move stand then.
	widen(position int64, n int, moved func(to map[int64]int64)) error
}

// placedPage is a list page being placed.
type placedPage struct {
	ground
	rows   []*placing
	top    *placing // a record all rows stand below; nil: none is known
	bottom *placing // a record all rows stand above
	after  bool     // others stand above the rows, though none is known
	// next finds bottom, when that matters; nil when there is none.
	next func() (*placing, error)
	all  []*placing // top, rows and bottom
}

// The weights of rows. One that a page has shown outweighs three others. What a
// page follows, and another page has shown, stands above all of it for certain.
const (
	weightShown   = 4
	weightAlone   = 1
	weightCertain = 1 << 30
)

// weight is a row's weight among others.
func (p *placing) weight() int {
	if p.shown {
		return weightShown
	}
	return weightAlone
}

// secondNow is the second a row stands in, or would.
func (p *placing) secondNow() int64 {
	if p.at != noPosition {
		return secondOf(p.at)
	}
	return p.second
}

// place places all rows.
func (g *placedPage) place() error {
	all := make([]*placing, 0, len(g.rows)+2)
	if g.top != nil {
		all = append(all, g.top)
	}
	all = append(all, g.rows...)
	if g.bottom != nil {
		all = append(all, g.bottom)
	}
	if g.all = all; !inPlace(all) {
		g.choose(all)
		// What is not in the page stays where it is; when it stands oddly it says
		// nothing.
		all = slices.DeleteFunc(slices.Clone(all), func(p *placing) bool { return (p == g.top || p == g.bottom) && !p.fixed })
		if err := g.fill(all); err != nil {
			return err
		}
	}
	for _, r := range g.rows {
		r.shown = true
	}
	return nil
}

// inPlace reports whether all have places already that fall.
func inPlace(all []*placing) bool {
	for i, p := range all {
		if p.at == noPosition || i > 0 && all[i-1].at <= p.at {
			return false
		}
	}
	return true
}

// choose says which rows stay where they are, and which stand in their second.
func (g *placedPage) choose(all []*placing) {
	timed := make([]*placing, 0, len(all))
	for _, p := range all {
		if p.fixed, p.fits = false, false; p.secondNow() != noSecond {
			timed = append(timed, p)
		}
	}
	weight := func(p *placing) int {
		if p == g.top && p.shown {
			return weightCertain
		}
		return p.weight()
	}
	// By seconds, which may be the same, and then by positions.
	timed = falling(timed, (*placing).secondNow, weight, false)
	var placed []*placing
	for _, p := range timed {
		if p.fits = true; p.at != noPosition {
			placed = append(placed, p)
		}
	}
	for _, p := range falling(placed, func(p *placing) int64 { return p.at }, weight, true) {
		p.fixed = true
	}
}

// falling is the heaviest subsequence whose keys fall, or, unless strictly, do
// not rise.
func falling(all []*placing, key func(*placing) int64, weight func(*placing) int, strictly bool) []*placing {
	if ok := slices.IsSortedFunc(all, func(a, b *placing) int { return compareFalling(key(a), key(b), strictly) }); ok {
		return all
	}
	keys := make([]int64, len(all))
	for i, p := range all {
		keys[i] = key(p)
	}
	ranks := slices.Clone(keys)
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	// best[r] is the last row of the heaviest subsequence that ends at a rank of
	// r or more, in a tree of such maxima (Fenwick's), from the highest rank on.
	type ending struct{ weight, row int }
	best := make([]ending, len(ranks)+1)
	from := make([]int, len(all))
	last := ending{0, -1}
	for i, p := range all {
		rank, _ := slices.BinarySearch(ranks, keys[i])
		at := len(ranks) - rank // the highest is 1
		upTo := at
		if strictly {
			upTo--
		}
		before := ending{0, -1}
		for j := upTo; j > 0; j -= j & -j {
			if best[j].weight > before.weight {
				before = best[j]
			}
		}
		from[i] = before.row
		one := ending{before.weight + weight(p), i}
		for j := at; j <= len(ranks); j += j & -j {
			if one.weight > best[j].weight {
				best[j] = one
			}
		}
		if one.weight > last.weight {
			last = one
		}
	}
	var chosen []*placing
	for i := last.row; i >= 0; i = from[i] {
		chosen = append(chosen, all[i])
	}
	slices.Reverse(chosen)
	return chosen
}

// compareFalling makes slices.IsSortedFunc see whether keys fall: it asks
// whether a later one comes before an earlier one.
func compareFalling(later, earlier int64, strictly bool) int {
	if later > earlier || strictly && later == earlier {
		return -1
	}
	return 0
}

// fill places the rows that do not stay, run by run between those that do.
func (g *placedPage) fill(all []*placing) error {
	for i := 0; i < len(all); {
		if all[i].fixed {
			i++
			continue
		}
		end := i
		for end < len(all) && !all[end].fixed {
			end++
		}
		var above, below *placing
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
func (g *placedPage) run(rows []*placing, above, below *placing) error {
	for _, r := range rows {
		if r.at = noPosition; !r.fits {
			continue
		}
		if above != nil && r.second > secondOf(above.at) || below != nil && r.second < secondOf(below.at) || r.second == noSecond {
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
func (g *placedPage) nextBelow(rows []*placing, above *placing) (*placing, error) {
	next, err := g.next()
	g.next = nil
	if err != nil || next == nil || next.at == noPosition {
		return nil, err
	}
	if above != nil && next.at >= above.at {
		return nil, nil
	}
	for _, r := range rows { // it stands oddly, or they do: their clocks say more
		if r.fits && r.second < secondOf(next.at) {
			return nil, nil
		}
	}
	g.all = append(g.all, next) // it may have to make room
	return next, nil
}

// group places rows of one second, and such that do not fit, right below each
// other.
func (g *placedPage) group(rows []*placing, above, below *placing) error {
	second := int64(noSecond)
	if rows[0].fits {
		second = rows[0].second
	}
	switch {
	case above != nil && (second == noSecond || secondOf(above.at) <= second): // before it when many stand above
		return g.under(rows, above, below, second)
	case below != nil && (second == noSecond || secondOf(below.at) == second):
		most := int64(math.MaxInt64)
		if above != nil {
			most = above.at
		}
		if second != noSecond && (above != nil || !g.after) {
			// They are the newest of their second: newer, too, than what stood above
			// what they are above and is gone.
			_, last := secondBounds(second)
			switch taken, err := g.below(last+1, below.at); {
			case err != nil:
				return err
			case taken > below.at:
				below = &placing{at: taken}
			}
		}
		return g.over(rows, below, most)
	}
	first, last := secondBounds(second)
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
		return g.under(rows, &placing{at: lowest}, below, second)
	}
	if taken >= first { // others of that second, which stand below the page
		return g.over(rows, &placing{at: taken}, last+1)
	}
	step := min(apartFrom, within/2/int64(len(rows)+1))
	if step == 0 {
		step = 1
	}
	middle := first + within/2
	if needed := step * int64(len(rows)-1); middle-needed < first {
		middle = first + needed
	}
	for i, r := range rows {
		r.at = middle - int64(i)*step
	}
	return nil
}

// under places rows right below one, within its second while that has room.
func (g *placedPage) under(rows []*placing, above, below *placing, second int64) error {
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
			if first, _ := secondBounds(second); above.at-max(floor, first-1) > 4*n {
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
			return damaged("there is no place below %d", above.at)
		}
		if err := g.widen(above.at, len(rows), g.moved); err != nil {
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

// over places rows above one and below most: right above it or, where there is
// no room, above others that stand there and are not in the page.
func (g *placedPage) over(rows []*placing, below *placing, most int64) error {
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
		if step := (ceiling - floor) / (n + 1); step > 0 {
			for i, r := range rows {
				r.at = floor + (n-int64(i))*step
			}
			return nil
		}
		if ceiling == most {
			if !slices.Contains(g.all, below) {
				below = nil // it moves, and is not told
			}
			return g.under(rows, &placing{at: most}, below, noSecond)
		}
		floor = ceiling
	}
}

// timeless places rows of which nothing is known but their order.
func (g *placedPage) timeless(rows []*placing) error {
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
		return g.under(rows, &placing{at: lowest}, nil, noSecond)
	}
	highest, err := g.below(timeless+timelessRoom, lowest)
	if err != nil {
		return err
	}
	return g.over(rows, &placing{at: highest}, timeless+timelessRoom)
}

// timelessRoom is how far from timeless records without a time may stand.
const timelessRoom = 1 << 50

// natural is the position of a record that no page has shown, by its clock
// alone: above the others of its second, which were found before it.
func natural(g ground, second int64) (int64, error) {
	p := &placedPage{ground: g, rows: []*placing{{at: noPosition, second: second}}}
	err := p.place()
	return p.rows[0].at, err
}
