// This file gives the rows of a list page descending positions, from top to bottom.
//
// Rows whose positions are in the right order keep them. These rows are the heaviest descending subsequence of the
// page. A row that was shown in a page before weighs more than a row whose position follows only from its clock. So if
// one row is out of order, only that row moves. Each other row gets a position between its neighbours, in the second of
// its clock if that is between their seconds.

package order

import (
	"slices"

	"understudy/internal/store/postings"
)

// Assignment is the position of a row of a page, or of a record directly above or below the page.
type Assignment struct {
	At     int64 // the position of the record, or Nowhere
	Shown  bool  // a page has shown the record at At; otherwise its position follows from its clock
	Second int64 // the time of the record in seconds, or NoSecond

	fixed    bool // the row keeps its position
	timeFits bool // the time in Second is between the times of the neighbouring rows
}

// Store holds the positions of a kind's records.
type Store interface {
	// FindBelow returns the highest occupied position that is less than position and not less than least, or Nowhere.
	// FindAbove returns the lowest occupied position that is greater than position and not greater than most, or Nowhere.
	FindBelow(position, least int64) (int64, error)
	FindAbove(position, most int64) (int64, error)
	// MoveApart makes room for n more records directly below a position. It moves the records that are below the position
	// further apart and calls moved with their old and new positions.
	MoveApart(position int64, n int, moved func(to map[int64]int64)) error
}

// Page is a list page whose rows get positions.
type Page struct {
	Store
	Rows         []*Assignment
	Top          *Assignment // a record that the list shows above all rows of the page, or nil if none is known
	Bottom       *Assignment // a record that the list shows below all rows of the page, or nil if none is known
	AfterUnknown bool        // the page does not begin at the top of its list, so unknown records are above it
	// Next looks up the value for Bottom when it is first needed. Next is nil if no page follows.
	Next func() (*Assignment, error)
	all  []*Assignment // the rows of the page, with Top before and Bottom after them
}

// The weights of rows. A row that a page has shown before outweighs three other rows. The record in Top, if a page has
// shown it, is certainly above the whole page.
const (
	weightShown   = 4
	weightAlone   = 1
	weightCertain = 1 << 30
)

// currentSecond returns the second of a row's position or, if the row has no position, of its time.
func (p *Assignment) currentSecond() int64 {
	if p.At != Nowhere {
		return postings.PositionSecond(p.At)
	}
	return p.Second
}

// Place gives positions to all rows.
func (g *Page) Place() error {
	all := make([]*Assignment, 0, len(g.Rows)+2)
	if g.Top != nil {
		all = append(all, g.Top)
	}
	all = append(all, g.Rows...)
	if g.Bottom != nil {
		all = append(all, g.Bottom)
	}
	if g.all = all; !isInPlace(all) {
		g.choose(all)
		// A record outside the page keeps its position. If that position does not fit, the record is ignored.
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

// isInPlace reports whether all assignments have positions, in descending order.
func isInPlace(all []*Assignment) bool {
	for i, p := range all {
		if p.At == Nowhere || i > 0 && all[i-1].At <= p.At {
			return false
		}
	}
	return true
}

// choose marks the rows that keep their positions, and the rows whose time is between the times of their neighbours.
func (g *Page) choose(all []*Assignment) {
	timed := make([]*Assignment, 0, len(all))
	for _, p := range all {
		if p.fixed, p.timeFits = false, false; p.currentSecond() != NoSecond {
			timed = append(timed, p)
		}
	}
	weight := func(p *Assignment) int {
		switch {
		case p == g.Top && p.Shown:
			return weightCertain
		case p.Shown:
			return weightShown
		}
		return weightAlone
	}
	// Choose rows first by seconds, which may be equal, then by positions.
	timed = heaviestDescent(timed, (*Assignment).currentSecond, weight, false)
	var placed []*Assignment
	for _, p := range timed {
		if p.timeFits = true; p.At != Nowhere {
			placed = append(placed, p)
		}
	}
	for _, p := range heaviestDescent(placed, func(p *Assignment) int64 { return p.At }, weight, true) {
		p.fixed = true
	}
}

// heaviestDescent returns the heaviest subsequence with descending keys. Unless strictly is set, consecutive keys may
// be equal.
func heaviestDescent(all []*Assignment, key func(*Assignment) int64, weight func(*Assignment) int,
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
	// best[r] is the last row of the heaviest subsequence that ends at rank r or higher, in a Fenwick tree of
	// maxima over the ranks from the highest down.
	type ending struct{ weight, row int }
	best := make([]ending, len(ranks)+1)
	from := make([]int, len(all))
	last := ending{0, -1}
	for i, p := range all {
		rank, _ := slices.BinarySearch(ranks, keys[i])
		at := len(ranks) - rank // the highest rank has the index 1 in the tree
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

// compareFalling is a comparison for slices.IsSortedFunc, which asks whether a later element comes before an earlier
// one.
func compareFalling(later, earlier int64, strictly bool) int {
	if later > earlier || strictly && later == earlier {
		return -1
	}
	return 0
}
