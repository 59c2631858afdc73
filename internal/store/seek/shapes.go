// This file makes a text that was found in one shape of a record count for all its shapes.

package seek

import (
	"slices"

	"understudy/internal/store/postings"
)

// everyShape is an iterator. For each record that another iterator has in one shape, it returns the postings in all
// shapes of the query. So a text found in one shape counts for the whole record.
type everyShape struct {
	up      bool
	s       postings.Iterator
	byShape map[int64]*kindPlan

	group  []int64 // the postings of one position, in order
	at     int64   // the position of the postings in group
	begun  bool
	closed bool // the other iterator has no postings after the position at
}

// Advance implements postings.Iterator.
func (e *everyShape) Advance(from int64) (int64, bool, error) {
	e.group = e.group[postings.Skip(e.group, from, e.up):]
	for len(e.group) == 0 {
		if e.closed {
			return 0, false, nil
		}
		if at := postings.Position(from); !e.begun || postings.IsBefore(e.at, at, e.up) {
			e.begun = true
		} else { // all postings of the current position were returned
			first, last := postings.New(e.at, 0), postings.New(e.at, 1<<postings.ShapeBits-1)
			if !e.up {
				last = first
			}
			next, ok := postings.Next(last, e.up)
			if e.closed = !ok; !ok {
				continue
			}
			from = next
		}
		if err := e.read(from); err != nil {
			return 0, false, err
		}
		e.group = e.group[postings.Skip(e.group, from, e.up):]
	}
	return e.group[0], true, nil
}

// read reads the first position at or after from for which the other iterator has a posting.
func (e *everyShape) read(from int64) error {
	e.group = e.group[:0]
	begin := postings.New(postings.Position(from), 0)
	if !e.up {
		begin = postings.New(postings.Position(from), 1<<postings.ShapeBits-1)
	}
	spot, ok, err := e.s.Advance(begin)
	if err != nil || !ok {
		e.closed = true
		return err
	}
	for e.at = postings.Position(spot); ok && postings.Position(spot) == e.at; {
		if k := e.byShape[postings.Shape(spot)]; k != nil {
			for _, s := range k.shapes {
				e.group = append(e.group, postings.New(e.at, s.Number))
			}
		}
		next, more := postings.Next(spot, e.up)
		if !more {
			break
		}
		if spot, ok, err = e.s.Advance(next); err != nil {
			return err
		}
	}
	slices.SortFunc(e.group, postings.Compare(e.up))
	e.group = slices.Compact(e.group)
	return nil
}
