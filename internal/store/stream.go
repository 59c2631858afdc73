// Streams: spots in the order of their places, and how several are joined.
//
// A spot is a record in one shape where it stands: its place with the shape's
// number in the low bits. Every index that finds records gives its spots as a
// stream: places themselves, exact terms, words. A question of several parts is
// answered by streams that skip to each other, so that the rarest of them says
// how much is read.

package store

import (
	"cmp"
	"database/sql/driver"
	"math"
	"sort"

	"understudy/internal/store/sqlite"
)

// shapeBits is how many bits of a spot are its shape's number.
const shapeBits = 10

// spotOf is the spot of a record that stands at a position, in a shape.
func spotOf(position, shape int64) int64 { return position<<shapeBits | shape }

// positionOf is the position in a spot, shapeOf the number of the shape.
func positionOf(spot int64) int64 { return spot >> shapeBits }
func shapeOf(spot int64) int64    { return spot & (1<<shapeBits - 1) }

// stream is spots in falling order, or in rising order when it was made to go
// up. It belongs to one read transaction.
type stream interface {
	// seek moves to the first spot that is from, or comes after it in the
	// stream's order, and stays there; from never goes back. ok is false when
	// there is none.
	seek(from int64) (spot int64, ok bool, err error)
}

// past is the next spot there may be after one; ok is false at the end.
func past(spot int64, up bool) (next int64, ok bool) {
	if up {
		return spot + 1, spot < math.MaxInt64
	}
	return spot - 1, spot > math.MinInt64
}

// before reports whether a comes before b.
func before(a, b int64, up bool) bool { return a != b && (a < b) == up }

// allIn joins streams: the spots that are in each of them.
func allIn(up bool, streams ...stream) stream {
	if len(streams) == 1 {
		return streams[0]
	}
	return &allOf{up: up, streams: streams}
}

type allOf struct {
	up      bool
	streams []stream
}

func (a *allOf) seek(from int64) (int64, bool, error) {
	for same := 0; ; {
		for _, s := range a.streams {
			spot, ok, err := s.seek(from)
			if err != nil || !ok {
				return 0, false, err
			}
			if spot != from {
				from, same = spot, 0
			}
			if same++; same >= len(a.streams) {
				return from, true, nil
			}
		}
	}
}

// anyIn joins streams: the spots that are in one of them.
func anyIn(up bool, streams ...stream) stream {
	if len(streams) == 1 {
		return streams[0]
	}
	return &oneOf{up: up, streams: streams}
}

type oneOf struct {
	up      bool
	streams []stream
}

func (a *oneOf) seek(from int64) (first int64, found bool, err error) {
	for _, s := range a.streams {
		spot, ok, err := s.seek(from)
		if err != nil {
			return 0, false, err
		}
		if ok && (!found || before(spot, first, a.up)) {
			first, found = spot, true
		}
		if found && first == from {
			break // nothing comes before it
		}
	}
	return first, found, nil
}

// The first and the largest number of spots a stream reads at once: those of a
// page at first. Asking FTS5 anew costs more than a few spots too many, and a
// stream that is skipped through needs one of each.
const (
	readFirst = 64
	readMost  = 1024
)

// reading is a stream of what a statement finds. The statement takes args, and
// then the spot to begin at and how many to read; it gives spots in order.
type reading struct {
	c    *sqlite.Conn
	st   *sqlite.Statement
	args []driver.Value
	up   bool
	row  func(int64) int64 // a spot's number there, and the spot of a number; nil: the same

	spots []int64 // read and not passed yet
	size  int     // of the last reading; at first half of what the first is to be
	ended bool    // there is nothing after spots
}

func (r *reading) seek(from int64) (int64, bool, error) {
	for {
		r.spots = r.spots[passed(r.spots, from, r.up):]
		if len(r.spots) > 0 {
			return r.spots[0], true, nil
		}
		if r.ended {
			return 0, false, nil
		}
		if err := r.read(from); err != nil {
			return 0, false, err
		}
	}
}

func (r *reading) read(from int64) error {
	r.size = max(readFirst, min(2*r.size, readMost))
	buf := r.spots[:0:0]
	row := r.row
	if row == nil {
		row = func(n int64) int64 { return n }
	}
	err := r.c.Query(r.st, 0, append(append([]driver.Value(nil), r.args...), row(from), int64(r.size)), func(v []driver.Value) error {
		buf = append(buf, row(v[0].(int64)))
		return nil
	})
	r.spots, r.ended = buf, len(buf) < r.size
	return err
}

// listed is a stream of spots that are in memory, in order.
type listed struct {
	up    bool
	spots []int64
}

func (l *listed) seek(from int64) (int64, bool, error) {
	l.spots = l.spots[passed(l.spots, from, l.up):]
	if len(l.spots) == 0 {
		return 0, false, nil
	}
	return l.spots[0], true, nil
}

// between is every spot from the first position to the last, whether anything
// stands there or not: it bounds the streams it is joined with, and reads
// nothing.
func between(up bool, first, last int64) stream {
	s := &allBetween{up: up, first: math.MinInt64, last: math.MaxInt64}
	if first != math.MinInt64 {
		s.first = spotOf(first, 0)
	}
	if last != math.MaxInt64 {
		s.last = spotOf(last, 1<<shapeBits-1)
	}
	return s
}

type allBetween struct {
	up          bool
	first, last int64
}

func (s *allBetween) seek(from int64) (int64, bool, error) {
	if s.up {
		from = max(from, s.first)
	} else {
		from = min(from, s.last)
	}
	return from, s.first <= from && from <= s.last, nil
}

// inOrder compares spots as a stream has them.
func inOrder(up bool) func(a, b int64) int {
	if up {
		return cmp.Compare[int64]
	}
	return func(a, b int64) int { return cmp.Compare(b, a) }
}

// passed is how many of the spots come before from: looked for in steps that
// double, since it is most often one of the first.
func passed(spots []int64, from int64, up bool) int {
	step := 1
	for step < len(spots) && before(spots[step-1], from, up) {
		step *= 2
	}
	low, high := step/2, min(step, len(spots))
	return low + sort.Search(high-low, func(i int) bool { return !before(spots[low+i], from, up) })
}
