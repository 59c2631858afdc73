// Words in a question: the spots at which records have a text.

package store

import (
	"slices"

	"understudy/internal/query"
	"understudy/spec"
)

// everyShape is a stream of the spots that records have in all shapes that are
// asked for, of the records that have one in another stream: what is said in one
// shape is said by the record.
type everyShape struct {
	up      bool
	s       stream
	byShape map[int64]*kindPlan

	group  []int64 // spots of one position, in order
	at     int64   // that position
	begun  bool
	closed bool // there is nothing after at
}

func (e *everyShape) seek(from int64) (int64, bool, error) {
	e.group = e.group[passed(e.group, from, e.up):]
	for len(e.group) == 0 {
		if e.closed {
			return 0, false, nil
		}
		if at := positionOf(from); !e.begun || before(e.at, at, e.up) {
			e.begun = true
		} else { // that one is done
			first, last := spotOf(e.at, 0), spotOf(e.at, 1<<shapeBits-1)
			if !e.up {
				last = first
			}
			next, ok := past(last, e.up)
			if e.closed = !ok; !ok {
				continue
			}
			from = next
		}
		if err := e.read(from); err != nil {
			return 0, false, err
		}
		e.group = e.group[passed(e.group, from, e.up):]
	}
	return e.group[0], true, nil
}

// read reads the first position at from or after it.
func (e *everyShape) read(from int64) error {
	e.group = e.group[:0]
	begin := spotOf(positionOf(from), 0)
	if !e.up {
		begin = spotOf(positionOf(from), 1<<shapeBits-1)
	}
	spot, ok, err := e.s.seek(begin)
	if err != nil || !ok {
		e.closed = true
		return err
	}
	for e.at = positionOf(spot); ok && positionOf(spot) == e.at; {
		if k := e.byShape[shapeOf(spot)]; k != nil {
			for _, s := range k.shapes {
				e.group = append(e.group, spotOf(e.at, s.number))
			}
		}
		next, more := past(spot, e.up)
		if !more {
			break
		}
		if spot, ok, err = e.s.seek(next); err != nil {
			return err
		}
	}
	slices.SortFunc(e.group, inOrder(e.up))
	e.group = slices.Compact(e.group)
	return nil
}

// askedText is the text of a question made ready; ok is false when it asks for
// none.
func (o *Options) askedText(q *query.RecordQuery) (plan *textPlan, ok bool, err error) {
	if q.Text == nil {
		return nil, false, nil
	}
	plan, err = planText(q.Text, o.kindsAsked(q))
	return plan, true, err
}

// kindsAsked are the specs of the kinds a question is about; nil stands for
// those no spec names.
func (o *Options) kindsAsked(q *query.RecordQuery) (kinds []*spec.Kind) {
	for source, sp := range o.Specs {
		for _, k := range sp.Kinds {
			if wants(q, source, k.Name) {
				kinds = append(kinds, k)
			}
		}
	}
	if len(kinds) == 0 || len(q.Kinds) == 0 {
		kinds = append(kinds, nil)
	}
	return kinds
}
