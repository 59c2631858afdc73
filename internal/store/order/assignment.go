// Placing: the rows of a list page get places that fall from top to bottom.
//
// What is known and agrees stays where it is: of the rows the heaviest falling
// subsequence, in which a row that a page has shown weighs more than one that
// only has its clock. So one row that stands oddly moves alone. The others are
// placed between their neighbours, in the second of their clock where that
// lies between those of their neighbours.

package order

import (
	"slices"

	"understudy/internal/store/postings"
)

// Assignment is a row of a page, or what its page follows, and where it stands.
type Assignment struct {
	At     int64 // its position; Nowhere: none yet
	Shown  bool  // a page has shown it there; else its clock alone has placed it
	Second int64 // the natural one; NoSecond: none

	fixed bool // it stays where it is
	fits  bool // its second goes with those around it
}

// Store is where the records of a kind stand.
type Store interface {
	// Below is the highest position that is taken below one, from least on,
	// Nowhere when there is none; above the lowest above one, up to most.
	Below(position, least int64) (int64, error)
	Above(position, most int64) (int64, error)
	// widen makes room for n more just below a position, by moving those that
	// stand below it further apart; it tells where those that move stand then.
	Rebalance(position int64, n int, moved func(to map[int64]int64)) error
}

// Page is a list page being placed.
type Page struct {
	Store
	Rows   []*Assignment
	Top    *Assignment // a record all rows stand below; nil: none is known
	Bottom *Assignment // a record all rows stand above
	After  bool        // others stand above the rows, though none is known
	// Next finds bottom, when that matters; nil when there is none.
	Next func() (*Assignment, error)
	all  []*Assignment // top, rows and bottom
}

// The weights of rows. One that a page has shown outweighs three others. What a
// page follows, and another page has shown, stands above all of it for certain.
const (
	weightShown   = 4
	weightAlone   = 1
	weightCertain = 1 << 30
)

// weight is a row's weight among others.
func (p *Assignment) weight() int {
	if p.Shown {
		return weightShown
	}
	return weightAlone
}

// secondNow is the second a row stands in, or would.
func (p *Assignment) secondNow() int64 {
	if p.At != Nowhere {
		return postings.Second(p.At)
	}
	return p.Second
}

// Place places all rows.
func (g *Page) Place() error {
	all := make([]*Assignment, 0, len(g.Rows)+2)
	if g.Top != nil {
		all = append(all, g.Top)
	}
	all = append(all, g.Rows...)
	if g.Bottom != nil {
		all = append(all, g.Bottom)
	}
	if g.all = all; !inPlace(all) {
		g.choose(all)
		// What is not in the page stays where it is; when it stands oddly it says
		// nothing.
		all = slices.DeleteFunc(slices.Clone(all), func(p *Assignment) bool { return (p == g.Top || p == g.Bottom) && !p.fixed })
		if err := g.fill(all); err != nil {
			return err
		}
	}
	for _, r := range g.Rows {
		r.Shown = true
	}
	return nil
}

// inPlace reports whether all have places already that fall.
func inPlace(all []*Assignment) bool {
	for i, p := range all {
		if p.At == Nowhere || i > 0 && all[i-1].At <= p.At {
			return false
		}
	}
	return true
}

// choose says which rows stay where they are, and which stand in their second.
func (g *Page) choose(all []*Assignment) {
	timed := make([]*Assignment, 0, len(all))
	for _, p := range all {
		if p.fixed, p.fits = false, false; p.secondNow() != NoSecond {
			timed = append(timed, p)
		}
	}
	weight := func(p *Assignment) int {
		if p == g.Top && p.Shown {
			return weightCertain
		}
		return p.weight()
	}
	// By seconds, which may be the same, and then by positions.
	timed = falling(timed, (*Assignment).secondNow, weight, false)
	var placed []*Assignment
	for _, p := range timed {
		if p.fits = true; p.At != Nowhere {
			placed = append(placed, p)
		}
	}
	for _, p := range falling(placed, func(p *Assignment) int64 { return p.At }, weight, true) {
		p.fixed = true
	}
}

// falling is the heaviest subsequence whose keys fall, or, unless strictly, do
// not rise.
func falling(all []*Assignment, key func(*Assignment) int64, weight func(*Assignment) int,
	strictly bool) []*Assignment {
	if ok := slices.IsSortedFunc(all, func(a, b *Assignment) int { return compareFalling(key(a), key(b), strictly) }); ok {
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
	var chosen []*Assignment
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
