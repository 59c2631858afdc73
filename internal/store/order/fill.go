// This file gives positions to the rows of a page that do not keep their own.

package order

import (
	"math"
	"slices"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
)

// fill places the rows that do not keep their positions, run by run between the rows that do.
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
		if err := g.placeRun(all[i:end], above, below); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// placeRun gives positions to consecutive rows. above and below are the nearest rows that keep their positions, or nil.
func (g *Page) placeRun(rows []*Assignment, above, below *Assignment) error {
	for _, r := range rows {
		if r.At = Nowhere; !r.timeFits {
			continue
		}
		if above != nil && r.Second > postings.PositionSecond(above.At) ||
			below != nil && r.Second < postings.PositionSecond(below.At) || r.Second == NoSecond {
			r.timeFits = false
		}
	}
	if below == nil && g.Next != nil {
		var err error
		if below, err = g.findNextBelow(rows, above); err != nil {
			return err
		}
	}
	// The first rows that do not fit get positions above the row that follows them.
	first := 0
	for above == nil && first < len(rows) && !rows[first].timeFits {
		first++
	}
	for i := first; i < len(rows); {
		end := i + 1
		for end < len(rows) && (!rows[end].timeFits || rows[i].timeFits && rows[end].Second == rows[i].Second) {
			end++
		}
		if err := g.placeGroup(rows[i:end], above, below); err != nil {
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
		return g.placeTimeless(rows[:first])
	}
	return g.placeOver(rows[:first], below, math.MaxInt64)
}

// findNextBelow returns the first row of the next page if the rows of this page must get positions above it. Otherwise
// it returns nil.
func (g *Page) findNextBelow(rows []*Assignment, above *Assignment) (*Assignment, error) {
	next, err := g.Next()
	g.Next = nil
	if err != nil || next == nil || next.At == Nowhere {
		return nil, err
	}
	if above != nil && next.At >= above.At {
		return nil, nil
	}
	for _, r := range rows { // positions and times contradict each other, so the times decide
		if r.timeFits && r.Second < postings.PositionSecond(next.At) {
			return nil, nil
		}
	}
	g.all = append(g.all, next) // in the list of rows, so that its position is updated if MoveApart moves the record
	return next, nil
}

// placeGroup gives adjacent positions to rows of the same second, and to rows whose time does not fit.
func (g *Page) placeGroup(rows []*Assignment, above, below *Assignment) error {
	second := int64(NoSecond)
	if rows[0].timeFits {
		second = rows[0].Second
	}
	switch {
	// Checked before below, because many records may be above
	case above != nil && (second == NoSecond || postings.PositionSecond(above.At) <= second):
		return g.placeUnder(rows, above, below, second)
	case below != nil && (second == NoSecond || postings.PositionSecond(below.At) == second):
		most := int64(math.MaxInt64)
		if above != nil {
			most = above.At
		}
		if second == NoSecond {
			return g.placeOver(rows, below, most)
		}
		// Rows with a time get positions within their second. A single row that is saved later gets a position above all rows
		// of its second.
		_, last := postings.SecondBounds(second)
		most = min(most, last+1)
		if above != nil || !g.AfterUnknown {
			// These rows are the newest of their second, so they also go above deleted records of that second.
			switch taken, err := g.FindBelow(last+1, below.At); {
			case err != nil:
				return err
			case taken > below.At:
				below = &Assignment{At: taken}
			}
		}
		return g.placeOver(rows, below, most)
	}
	first, last := postings.SecondBounds(second)
	taken, err := g.FindBelow(last+1, first)
	if err != nil {
		return err
	}
	if taken >= first && above == nil && g.AfterUnknown {
		// Unknown records are above the page. Some of them probably belong to the same second.
		lowest, err := g.FindAbove(first-1, last)
		if err != nil {
			return err
		}
		return g.placeUnder(rows, &Assignment{At: lowest}, below, second)
	}
	if taken >= first { // records of that second are already stored below the page
		return g.placeOver(rows, &Assignment{At: taken}, last+1)
	}
	step := max(min(positionStep, postings.Within/2/int64(len(rows)+1)), 1)
	middle := first + postings.Within/2
	if needed := step * int64(len(rows)-1); middle-needed < first {
		middle = first + needed
	}
	for i, r := range rows {
		r.At = middle - int64(i)*step
	}
	return nil
}

// placeUnder gives rows positions directly below the row above. It stays within their second while that has room.
func (g *Page) placeUnder(rows []*Assignment, above, below *Assignment, second int64) error {
	n := int64(len(rows))
	for again := false; ; again = true {
		floor := above.At - positionStep*(n+1)
		taken, err := g.FindBelow(above.At, floor)
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
		step := min(positionStep, (above.At-floor)/(n+1))
		if step > 0 {
			for i, r := range rows {
				r.At = above.At - int64(i+1)*step
			}
			return nil
		}
		if again {
			return db.NewDamageError("there is no free position below %d", above.At)
		}
		if err := g.MoveApart(above.At, len(rows), g.updateMoved); err != nil {
			return err
		}
	}
}

// updateMoved updates the positions of the page's rows when MoveApart has moved some of them.
func (g *Page) updateMoved(to map[int64]int64) {
	for _, p := range g.all {
		if at, ok := to[p.At]; ok {
			p.At = at
		}
	}
}

// headroomShare is the inverse of the share of the free positions of a second that the newest rows may take. So 70,000
// rows that are saved one at a time do not make records move.
const headroomShare = 1 << 14

// placeOver gives rows positions above the row below and not above the position most. If there is no room directly
// above below, it uses the next gap between occupied positions.
func (g *Page) placeOver(rows []*Assignment, below *Assignment, most int64) error {
	n := int64(len(rows))
	for floor := below.At; ; {
		ceiling := min(most, floor+positionStep*(n+1))
		taken, err := g.FindAbove(floor, ceiling)
		if err != nil {
			return err
		}
		if taken != Nowhere {
			ceiling = taken
		}
		step := (ceiling - floor) / (n + 1)
		if taken == Nowhere && most != math.MaxInt64 {
			step = min(step, max(1, (most-floor)/(4*n+headroomShare))) // leaves room above for later records
		}
		if step > 0 {
			for i, r := range rows {
				r.At = floor + (n-int64(i))*step
			}
			return nil
		}
		if ceiling == most {
			if !slices.Contains(g.all, below) {
				below = nil // MoveApart may move this record and would not update this copy of its position
			}
			return g.placeUnder(rows, &Assignment{At: most}, below, NoSecond)
		}
		floor = ceiling
	}
}

// placeTimeless gives positions to rows without a time, of which only the order is known.
func (g *Page) placeTimeless(rows []*Assignment) error {
	lowest, err := g.FindAbove(timeless-timelessRoom, timeless+timelessRoom)
	if err != nil {
		return err
	}
	if lowest == Nowhere {
		for i, r := range rows {
			r.At = timeless - int64(i)*positionStep
		}
		return nil
	}
	if g.AfterUnknown {
		return g.placeUnder(rows, &Assignment{At: lowest}, nil, NoSecond)
	}
	highest, err := g.FindBelow(timeless+timelessRoom, lowest)
	if err != nil {
		return err
	}
	return g.placeOver(rows, &Assignment{At: highest}, timeless+timelessRoom)
}

// timelessRoom is the maximum distance of a record without a time from the position timeless.
const timelessRoom = 1 << 50
