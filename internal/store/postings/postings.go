// Package postings has postings in the order of a list, and iterators that join them.
//
// A posting is a record in one shape at its position in a list, with the shape's number in the low bits. Every index
// that finds records gives its postings as an iterator: positions themselves, exact terms, words. A query of several
// parts is answered by iterators that advance to each other, so that the rarest of them decides how much is read.
package postings

import (
	"cmp"
	"database/sql/driver"
	"math"
	"sort"

	"understudy/internal/store/sqlite"
)

// ShapeBits is how many bits of a posting are its shape's number.
const ShapeBits = 10

// At is the posting of a record at a position, in a shape.
func At(position, shape int64) int64 { return position<<ShapeBits | shape }

// Position is the position in a posting.
func Position(spot int64) int64 { return spot >> ShapeBits }

// Shape is the number of the shape in a posting.
func Shape(spot int64) int64 { return spot & (1<<ShapeBits - 1) }

// Iterator gives postings in falling order, or in rising order when it was made to
// go up. It belongs to one read transaction.
type Iterator interface {
	// Advance moves to the first posting that is from, or comes after it in the iterator's order, and stays there;
	// from never goes back. ok is false when there is none.
	Advance(from int64) (spot int64, ok bool, err error)
}

// Following is the next posting there may be after one; ok is false at the end.
func Following(spot int64, up bool) (next int64, ok bool) {
	if up {
		return spot + 1, spot < math.MaxInt64
	}
	return spot - 1, spot > math.MinInt64
}

// Before reports whether a comes before b.
func Before(a, b int64, up bool) bool { return a != b && (a < b) == up }

// And joins iterators: the postings that are in each of them.
func And(up bool, streams ...Iterator) Iterator {
	if len(streams) == 1 {
		return streams[0]
	}
	return &conjunction{up: up, streams: streams}
}

type conjunction struct {
	up      bool
	streams []Iterator
}

func (a *conjunction) Advance(from int64) (int64, bool, error) {
	for same := 0; ; {
		for _, s := range a.streams {
			spot, ok, err := s.Advance(from)
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

// Or joins iterators: the postings that are in one of them.
func Or(up bool, streams ...Iterator) Iterator {
	if len(streams) == 1 {
		return streams[0]
	}
	return &disjunction{up: up, streams: streams}
}

type disjunction struct {
	up      bool
	streams []Iterator
}

func (a *disjunction) Advance(from int64) (first int64, found bool, err error) {
	for _, s := range a.streams {
		spot, ok, err := s.Advance(from)
		if err != nil {
			return 0, false, err
		}
		if ok && (!found || Before(spot, first, a.up)) {
			first, found = spot, true
		}
		if found && first == from {
			break // nothing comes before it
		}
	}
	return first, found, nil
}

// Without is the postings of one iterator that are not in the other.
func Without(up bool, all, without Iterator) Iterator {
	return &difference{up: up, all: all, without: without}
}

type difference struct {
	up           bool
	all, without Iterator
	begun        bool
	at           int64 // when begun: where without is
}

func (d *difference) Advance(from int64) (int64, bool, error) {
	if d.begun && Before(from, d.at, d.up) {
		from = d.at // without has nothing more to say of what comes before
	}
	for {
		spot, ok, err := d.all.Advance(from)
		if err != nil || !ok {
			return 0, false, err
		}
		d.begun, d.at = true, spot
		other, found, err := d.without.Advance(spot)
		if err != nil || !found || other != spot {
			return spot, err == nil, err
		}
		if from, ok = Following(spot, d.up); !ok {
			return 0, false, nil
		}
	}
}

// Sieve is the postings of one iterator that are in each of the others, too. Unlike And it passes over none of the
// first: what is read of that does not depend on the others, nor does what is read of these depend on each other.
func Sieve(up bool, all Iterator, also ...Iterator) Iterator {
	if len(also) == 0 {
		return all
	}
	s := &sieve{up: up, all: all}
	for _, one := range also {
		s.also = append(s.also, standing{Iterator: one})
	}
	return s
}

type sieve struct {
	up   bool
	all  Iterator
	also []standing
}

// standing is an iterator and where it stands.
type standing struct {
	Iterator
	begun, ended bool
	at           int64
}

func (s *sieve) Advance(from int64) (int64, bool, error) {
	for {
		spot, ok, err := s.all.Advance(from)
		if err != nil || !ok {
			return 0, false, err
		}
		in := true
		for i := range s.also {
			one := &s.also[i]
			if !one.ended && (!one.begun || Before(one.at, spot, s.up)) {
				at, found, err := one.Advance(spot)
				if err != nil {
					return 0, false, err
				}
				one.begun, one.ended, one.at = true, !found, at
			}
			in = in && !one.ended && one.at == spot
		}
		if in {
			return spot, true, nil
		}
		if from, ok = Following(spot, s.up); !ok {
			return 0, false, nil
		}
	}
}

// The first and the largest number of postings a stream reads at once: those of a page at first. Asking FTS5 anew
// costs more than a few postings too many, and a stream that is skipped through needs one of each.
const (
	readFirst = 64
	readMost  = 1024
)

// Scan is an iterator over what a statement finds. The statement takes args, and
// then the posting to begin at and how many to read; it gives postings in order.
type Scan struct {
	C    *sqlite.Conn
	St   *sqlite.Statement
	Args []driver.Value
	Up   bool
	Row  func(int64) int64 // a posting's number there, and the posting of a number; nil: the same

	spots []int64 // read and not passed yet
	Size  int     // of the last reading; at first half of what the first is to be
	ended bool    // there is nothing after postings
}

func (r *Scan) Advance(from int64) (int64, bool, error) {
	for {
		r.spots = r.spots[Skip(r.spots, from, r.Up):]
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

func (r *Scan) read(from int64) error {
	r.Size = max(readFirst, min(2*r.Size, readMost))
	buf := r.spots[:0:0]
	row := r.Row
	if row == nil {
		row = func(n int64) int64 { return n }
	}
	err := r.C.Query(r.St, 0, append(append([]driver.Value(nil), r.Args...), row(from), int64(r.Size)), func(v []driver.Value) error {
		buf = append(buf, row(v[0].(int64)))
		return nil
	})
	r.spots, r.ended = buf, len(buf) < r.Size
	return err
}

// Slice is an iterator over postings in memory, in order.
type Slice struct {
	Up    bool
	Spots []int64
}

func (l *Slice) Advance(from int64) (int64, bool, error) {
	l.Spots = l.Spots[Skip(l.Spots, from, l.Up):]
	if len(l.Spots) == 0 {
		return 0, false, nil
	}
	return l.Spots[0], true, nil
}

// Between is every posting from the first position to the last, whether anything stands there or not: it bounds the
// streams it is joined with, and reads nothing.
func Between(up bool, first, last int64) Iterator {
	s := &bounds{up: up, first: math.MinInt64, last: math.MaxInt64}
	if first != math.MinInt64 {
		s.first = At(first, 0)
	}
	if last != math.MaxInt64 {
		s.last = At(last, 1<<ShapeBits-1)
	}
	return s
}

type bounds struct {
	up          bool
	first, last int64
}

func (s *bounds) Advance(from int64) (int64, bool, error) {
	if s.up {
		from = max(from, s.first)
	} else {
		from = min(from, s.last)
	}
	return from, s.first <= from && from <= s.last, nil
}

// Compare is the order of postings in an iterator.
func Compare(up bool) func(a, b int64) int {
	if up {
		return cmp.Compare[int64]
	}
	return func(a, b int64) int { return cmp.Compare(b, a) }
}

// Skip is how many of the postings come before from: looked for in steps that
// double, since it is most often one of the first.
func Skip(spots []int64, from int64, up bool) int {
	step := 1
	for step < len(spots) && Before(spots[step-1], from, up) {
		step *= 2
	}
	low, high := step/2, min(step, len(spots))
	return low + sort.Search(high-low, func(i int) bool { return !Before(spots[low+i], from, up) })
}
