// Package order decides the positions of records in the lists of their kinds. The rows of a list page get
// descending positions, from top to bottom. If there is no room between records, they move further apart.
//
// A key is a position with the number of the record's kind in its low bits, so no two records of a store have
// the same key. A position contains the second of the record's time when the record was first seen. Records
// without a time are far below all records that have one.
package order

import (
	"database/sql/driver"
	"math"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/db"
	"understudy/internal/store/postings"
	"understudy/spec"
)

const (
	// positionStep is the distance between new positions of the same second or without a second. It leaves room for other
	// records between them.
	positionStep = 1 << 12

	// timeless is the position of the first record that has no time. There is room for 10^7 more records above and below
	// it.
	timeless = -1 << 52

	// Nowhere stands for no position, and NoSecond for no time.
	Nowhere  = math.MinInt64
	NoSecond = math.MinInt64
)

// Position is the position of a record in its list, and whether a page has shown the record there.
type Position struct {
	At    int64 // the position, or Nowhere if the record has none yet
	Shown bool
}

// ReadPosition converts the column held.place.
func ReadPosition(v driver.Value) Position {
	place, ok := v.(int64)
	if !ok {
		return Position{At: Nowhere}
	}
	return Position{place >> 1, place&1 != 0}
}

// Value returns the value for the column held.place.
func (s Position) Value() driver.Value {
	if s.At == Nowhere {
		return nil
	}
	if s.Shown {
		return s.At<<1 | 1
	}
	return s.At << 1
}

var selectPositions = &db.Statement{Head: "SELECT (SELECT place FROM held WHERE number BETWEEN n.record * 64 " +
	"AND n.record * 64 + 63 AND place IS NOT NULL LIMIT 1) FROM names n WHERE n.kind = ? AND n.id IN (", Tuple: "?", Tail: ")"}

// ExpectPosition announces that the open transaction will call FindPosition.
func ExpectPosition(c db.Conn, kind int64, id []byte) error {
	return c.Expect(selectPositions, 1, kind, id)
}

// FindPosition returns the position of a record by its stored id. It returns Nowhere if the record was never saved.
func FindPosition(c db.Conn, kind int64, id []byte) (Position, error) {
	at := Position{At: Nowhere}
	err := VisitPositions(c, kind, []driver.Value{id}, func(found Position) { at = found })
	return at, err
}

// VisitPositions calls each with the positions of records, which are given by their stored ids. The order is undefined.
func VisitPositions(c db.Conn, kind int64, ids []driver.Value, each func(Position)) error {
	return VisitPlaces(c, selectPositions, []driver.Value{kind}, ids, each)
}

// VisitPlaces calls each with the positions that a statement returns for tuples of one value, which follow the arguments before. The
// order is undefined.
func VisitPlaces(c db.Conn, st *db.Statement, before, values []driver.Value, each func(Position)) error {
	for part := range slices.Chunk(values, db.MaxTuples) {
		err := c.Query(st, len(part), slices.Concat(before, part), func(r []driver.Value) error {
			each(ReadPosition(r[0]))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// KeyOf returns the order key of a record, from its position and the number of its kind.
func KeyOf(position, kind int64) query.OrderKey {
	return query.OrderKey(position<<postings.ShapeBits | kind)
}

// NaturalSecond returns the second for a record that no page has shown: the second of its clock or, without a
// clock, of its kind's order field.
func NaturalSecond(kind *spec.Kind, clock int64, body []byte) int64 {
	if clock == 0 && kind != nil && kind.Order != "" {
		clock = query.UnixIn(kind, kind.Order, body)
	}
	if clock == 0 || clock < postings.MinSecond || clock > postings.MaxSecond {
		return NoSecond
	}
	return clock
}

// Follows says where in its list a page begins: after the record with ID, before it if Up is set, or at the top. If
// After is set without ID, the page begins after an unknown record.
type Follows struct {
	ID    string
	Up    bool
	After bool
}

// ReadFollows finds out from the token in a page's key where in its list the page begins.
func ReadFollows(sp *spec.Spec, key understudy.Key) (f Follows) {
	raw := key.Query()
	if sp == nil || raw == "" {
		return f
	}
	params, err := understudy.ParseQuery(raw)
	if err != nil {
		return f
	}
	if f = readFollows(&sp.Paging, params); f.ID != "" {
		return f
	}
	for _, p := range sp.Pagings {
		if other := readFollows(p, params); other.ID != "" {
			return other
		} else if other.After {
			f = other
		}
	}
	return f
}

// readFollows does the work of ReadFollows for one way of paging.
func readFollows(p *spec.Paging, params understudy.Query) (f Follows) {
	form := p.TokenForm(nil)
	for _, name := range p.Tokens {
		token, ok := params.Get(name)
		if !ok || token == "" {
			continue
		}
		f.After = true
		if name == p.Back && !form.OwnForm {
			f.ID, f.Up = token, true
			return f
		}
		if name != p.TokenParam() || form.OwnForm {
			continue // the token does not reveal where the page begins
		}
		if id, back, ok := form.ID(token); ok {
			f.ID, f.Up = id, back
			return f
		}
	}
	return f
}
