// Package postings provides postings in the order of a list, and iterators that combine them.
//
// A posting is one number for a record in one shape: the record's position in a list, with the shape's number in the
// low bits. Every index returns its postings as an iterator: an index of positions, of exact terms or of words. A query
// of several parts combines iterators that advance to each other, so the rarest part decides how much is read.
package postings

import (
	"cmp"
	"database/sql/driver"
	"math"
	"sort"

	"understudy/internal/store/db"
)

// ShapeBits is the number of bits of a posting that hold the shape's number.
const ShapeBits = 10

// New returns the posting of a record at a position, in a shape.
func New(position, shape int64) int64 { return position<<ShapeBits | shape }

// Position returns the position in a posting.
func Position(spot int64) int64 { return spot >> ShapeBits }

// Shape returns the number of the shape in a posting.
func Shape(spot int64) int64 { return spot & (1<<ShapeBits - 1) }

// Iterator returns postings in descending order, or in ascending order if it was created with up set. It belongs to one
// read transaction.
type Iterator interface {
	// Advance moves to the first posting at or after from, in the iterator's order, and stays there. from must never be
	// before an earlier from. ok is false if there is no such posting.
	Advance(from int64) (spot int64, ok bool, err error)
}

// Next returns the next possible posting after the posting spot, in ascending order if up is set. ok is false at the
// end.
func Next(spot int64, up bool) (next int64, ok bool) {
	if up {
		return spot + 1, spot < math.MaxInt64
	}
	return spot - 1, spot > math.MinInt64
}

// IsBefore reports whether a comes before b in an iterator's order.
func IsBefore(a, b int64, up bool) bool { return a != b && (a < b) == up }

// Intersect returns the postings that are in every iterator.
func Intersect(streams ...Iterator) Iterator {
	if len(streams) == 1 {
		return streams[0]
	}
	return &conjunction{streams}
}

type conjunction struct{ streams []Iterator }

// Advance implements Iterator.
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

// Unite returns the postings that are in at least one iterator.
func Unite(up bool, streams ...Iterator) Iterator {
	if len(streams) == 1 {
		return streams[0]
	}
	return &disjunction{up: up, streams: streams}
}

type disjunction struct {
	up      bool
	streams []Iterator
}

// Advance implements Iterator.
func (a *disjunction) Advance(from int64) (first int64, found bool, err error) {
	for _, s := range a.streams {
		spot, ok, err := s.Advance(from)
		if err != nil {
			return 0, false, err
		}
		if ok && (!found || IsBefore(spot, first, a.up)) {
			first, found = spot, true
		}
		if found && first == from {
			break // no other iterator can have an earlier posting
		}
	}
	return first, found, nil
}

// Exclude returns the postings of the iterator all that are not in the iterator without.
func Exclude(up bool, all, without Iterator) Iterator {
	return &difference{up: up, all: all, without: without}
}

type difference struct {
	up           bool
	all, without Iterator
	begun        bool
	at           int64 // once begun is set: the last posting returned by the iterator all
}

// Advance implements Iterator.
func (d *difference) Advance(from int64) (int64, bool, error) {
	if d.begun && IsBefore(from, d.at, d.up) {
		from = d.at // the iterator all has no posting between from and at
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
		if from, ok = Next(spot, d.up); !ok {
			return 0, false, nil
		}
	}
}

// Sieve returns the postings of the iterator all that are also in every iterator of also. Unlike Intersect it reads
// every posting of all. So what it reads from all does not depend on the iterators in also, and these do not depend on
// each other.
func Sieve(up bool, all Iterator, also ...Iterator) Iterator {
	if len(also) == 0 {
		return all
	}
	s := &sieve{up: up, all: all}
	for _, one := range also {
		s.also = append(s.also, iteratorState{Iterator: one})
	}
	return s
}

type sieve struct {
	up   bool
	all  Iterator
	also []iteratorState
}

// iteratorState is an iterator together with its current posting.
type iteratorState struct {
	Iterator
	begun, ended bool
	at           int64
}

// Advance implements Iterator.
func (s *sieve) Advance(from int64) (int64, bool, error) {
	for {
		spot, ok, err := s.all.Advance(from)
		if err != nil || !ok {
			return 0, false, err
		}
		in := true
		for i := range s.also {
			one := &s.also[i]
			if !one.ended && (!one.begun || IsBefore(one.at, spot, s.up)) {
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
		if from, ok = Next(spot, s.up); !ok {
			return 0, false, nil
		}
	}
}

// The number of postings that a Scan reads at first, and the maximum number that it reads at once. The first number is
// about one page. A new FTS5 query costs more than a few unneeded postings, but a Scan that is mostly skipped needs few
// at a time.
const (
	readFirst = 64
	readMax   = 1024
)

// Scan is an iterator over the results of an SQL statement. The arguments of the statement are Args, then the posting
// to begin at, then the maximum number of results. It must return postings in order.
type Scan struct {
	C    db.Conn
	St   *db.Statement
	Args []driver.Value
	Up   bool

	spots []int64 // postings that were read and are not returned yet
	Size  int     // the number of postings of the last read; before the first read half of its number
	ended bool    // the statement has no more postings after those in spots
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
	r.Size = max(readFirst, min(2*r.Size, readMax))
	buf := r.spots[:0:0]
	err := r.C.Query(r.St, 0, append(append([]driver.Value(nil), r.Args...), from, int64(r.Size)), func(v []driver.Value) error {
		buf = append(buf, v[0].(int64))
		return nil
	})
	r.spots, r.ended = buf, len(buf) < r.Size
	return err
}

// Slice is an iterator over a sorted slice of postings.
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

// Range returns every possible posting from the position first to the position last, whether a record has it or not.
// Combined with other iterators it limits them. It reads nothing.
func Range(up bool, first, last int64) Iterator {
	s := &bounds{up: up, first: math.MinInt64, last: math.MaxInt64}
	if first != math.MinInt64 {
		s.first = New(first, 0)
	}
	if last != math.MaxInt64 {
		s.last = New(last, 1<<ShapeBits-1)
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

// Compare returns a function that compares two postings in an iterator's order.
func Compare(up bool) func(a, b int64) int {
	if up {
		return cmp.Compare[int64]
	}
	return func(a, b int64) int { return cmp.Compare(b, a) }
}

// Skip returns how many of the postings come before from. It searches in doubling steps, because from is mostly
// among the first.
func Skip(spots []int64, from int64, up bool) int {
	step := 1
	for step < len(spots) && IsBefore(spots[step-1], from, up) {
		step *= 2
	}
	low, high := step/2, min(step, len(spots))
	return low + sort.Search(high-low, func(i int) bool { return !IsBefore(spots[low+i], from, up) })
}
