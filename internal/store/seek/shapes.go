// Words in a question: the postings at which records have a text.

package seek

import (
	"slices"

	"understudy/internal/store/postings"
)

// everyShape is a stream of the postings that records have in all shapes that are asked for, of the records that have
// one in another stream: what is said in one shape is said by the record.
type everyShape struct {
	up      bool
	s       postings.Iterator
	byShape map[int64]*kindPlan

	group  []int64 // postings of one position, in order
	at     int64   // that position
	begun  bool
	closed bool // there is nothing after at
}

func (e *everyShape) Advance(from int64) (int64, bool, error) {
	e.group = e.group[postings.Skip(e.group, from, e.up):]
	for len(e.group) == 0 {
		if e.closed {
			return 0, false, nil
		}
		if at := postings.Position(from); !e.begun || postings.Before(e.at, at, e.up) {
			e.begun = true
		} else { // that one is done
			first, last := postings.At(e.at, 0), postings.At(e.at, 1<<postings.ShapeBits-1)
			if !e.up {
				last = first
			}
			next, ok := postings.Following(last, e.up)
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

// read reads the first position at from or after it.
func (e *everyShape) read(from int64) error {
	e.group = e.group[:0]
	begin := postings.At(postings.Position(from), 0)
	if !e.up {
		begin = postings.At(postings.Position(from), 1<<postings.ShapeBits-1)
	}
	spot, ok, err := e.s.Advance(begin)
	if err != nil || !ok {
		e.closed = true
		return err
	}
	for e.at = postings.Position(spot); ok && postings.Position(spot) == e.at; {
		if k := e.byShape[postings.Shape(spot)]; k != nil {
			for _, s := range k.shapes {
				e.group = append(e.group, postings.At(e.at, s.Number))
			}
		}
		next, more := postings.Following(spot, e.up)
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
