// Placing: the rows of a list page get places that fall from top to bottom.
//
// What is known and agrees stays where it is: of the rows the heaviest falling
// subsequence, in which a row that a page has shown weighs more than one that
// only has its clock. So one row that stands oddly moves alone. The others are
// placed between their neighbours, in the second of their clock where that
// lies between those of their neighbours.

package store

import (
	"slices"

	"understudy/internal/store/postings"
)

// orderAssignment is a row of a page, or what its page follows, and where it stands.
type orderAssignment struct {
	at     int64 // its position; noPosition: none yet
	shown  bool  // a page has shown it there; else its clock alone has placed it
	second int64 // the natural one; noSecond: none

	fixed bool // it stays where it is
	fits  bool // its second goes with those around it
}

// orderStore is where the records of a kind stand.
type orderStore interface {
	// below is the highest position that is taken below one, from least on,
	// noPosition when there is none; above the lowest above one, up to most.
	below(position, least int64) (int64, error)
	above(position, most int64) (int64, error)
	// widen makes room for n more just below a position, by moving those that
	// stand below it further apart; it tells where those that move stand then.
	rebalance(position int64, n int, moved func(to map[int64]int64)) error
}

// placedPage is a list page being placed.
type placedPage struct {
	orderStore
	rows   []*orderAssignment
	top    *orderAssignment // a record all rows stand below; nil: none is known
	bottom *orderAssignment // a record all rows stand above
	after  bool             // others stand above the rows, though none is known
	// next finds bottom, when that matters; nil when there is none.
	next func() (*orderAssignment, error)
	all  []*orderAssignment // top, rows and bottom
}

// The weights of rows. One that a page has shown outweighs three others. What a
// page follows, and another page has shown, stands above all of it for certain.
const (
	weightShown   = 4
	weightAlone   = 1
	weightCertain = 1 << 30
)

// weight is a row's weight among others.
func (p *orderAssignment) weight() int {
	if p.shown {
		return weightShown
	}
	return weightAlone
}

// secondNow is the second a row stands in, or would.
func (p *orderAssignment) secondNow() int64 {
	if p.at != noPosition {
		return postings.Second(p.at)
	}
	return p.second
}

// place places all rows.
func (g *placedPage) place() error {
	all := make([]*orderAssignment, 0, len(g.rows)+2)
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
		all = slices.DeleteFunc(slices.Clone(all), func(p *orderAssignment) bool { return (p == g.top || p == g.bottom) && !p.fixed })
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
func inPlace(all []*orderAssignment) bool {
	for i, p := range all {
		if p.at == noPosition || i > 0 && all[i-1].at <= p.at {
			return false
		}
	}
	return true
}

// choose says which rows stay where they are, and which stand in their second.
func (g *placedPage) choose(all []*orderAssignment) {
	timed := make([]*orderAssignment, 0, len(all))
	for _, p := range all {
		if p.fixed, p.fits = false, false; p.secondNow() != noSecond {
			timed = append(timed, p)
		}
	}
	weight := func(p *orderAssignment) int {
		if p == g.top && p.shown {
			return weightCertain
		}
		return p.weight()
	}
	// By seconds, which may be the same, and then by positions.
	timed = falling(timed, (*orderAssignment).secondNow, weight, false)
	var placed []*orderAssignment
	for _, p := range timed {
		if p.fits = true; p.at != noPosition {
			placed = append(placed, p)
		}
	}
	for _, p := range falling(placed, func(p *orderAssignment) int64 { return p.at }, weight, true) {
		p.fixed = true
	}
}

// falling is the heaviest subsequence whose keys fall, or, unless strictly, do
// not rise.
func falling(all []*orderAssignment, key func(*orderAssignment) int64, weight func(*orderAssignment) int,
	strictly bool) []*orderAssignment {
	if ok := slices.IsSortedFunc(all, func(a, b *orderAssignment) int { return compareFalling(key(a), key(b), strictly) }); ok {
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
	var chosen []*orderAssignment
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
