// Package order decides where records stand in the lists of their kinds: the rows of a
// list page get positions that fall from top to bottom, and records move further apart
// where there is no room.
//
// A key is a position with the number of the record's kind in its low bits, so that
// no two records of a store have the same. The second of a position is that of the
// record's time when it was first seen. Records without any time stand far below all
// that have one.
package order

import (
	"database/sql/driver"
	"math"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
	"understudy/spec"
)

const (
	// apartFrom is how far apart records are placed that have the same second,
	// or none: others can be placed between them.
	apartFrom = 1 << 12

	// timeless is the position of the first record without a time: 10^7 more
	// have room above it and below it.
	timeless = -1 << 52

	// Nowhere is no position, NoSecond no second.
	Nowhere  = math.MinInt64
	NoSecond = math.MinInt64
)

// Position is where a record stands and whether a page has shown it there.
type Position struct {
	At    int64 // Nowhere: it has none yet
	Shown bool
}

// ReadPosition reads held.place.
func ReadPosition(v driver.Value) Position {
	place, ok := v.(int64)
	if !ok {
		return Position{At: Nowhere}
	}
	return Position{place >> 1, place&1 != 0}
}

// Value is what held.place says.
func (s Position) Value() driver.Value {
	if s.At == Nowhere {
		return nil
	}
	if s.Shown {
		return s.At<<1 | 1
	}
	return s.At << 1
}

var selectPosition = &sqlite.Statement{Head: "SELECT (SELECT place FROM held WHERE number BETWEEN n.record * 64 " +
	"AND n.record * 64 + 63 AND place IS NOT NULL LIMIT 1) FROM names n WHERE n.kind = ? AND n.id = ?"}

// PositionOf is where the record of an id, as it is stored, stands; Nowhere when it was never
// seen.
func PositionOf(c *sqlite.Conn, kind int64, id []byte) (Position, error) {
	at := Position{At: Nowhere}
	_, err := c.One(selectPosition, []driver.Value{kind, id}, func(r []driver.Value) { at = ReadPosition(r[0]) })
	return at, err
}

// KeyOf is the key of a record of a kind that stands at a position.
func KeyOf(position, kind int64) query.OrderKey {
	return query.OrderKey(position<<postings.ShapeBits | kind)
}

// NaturalSecond is the second of a record's place while no page has shown one:
// that of its clock or, while it has none, of its kind's order.
func NaturalSecond(kind *spec.Kind, clock int64, body []byte) int64 {
	if clock == 0 && kind != nil && kind.Order != "" {
		clock = query.UnixIn(kind, kind.Order, body)
	}
	if clock == 0 || clock < postings.LeastSecond || clock > postings.MostSecond {
		return NoSecond
	}
	return clock
}

// Follows says where in its list a page begins: after a record (above it, when
// up), or at the top. after without id: after one that is not known.
type Follows struct {
	ID    string
	Up    bool
	After bool
}

// FollowedBy reads the token of a page's key.
func FollowedBy(sp *spec.Spec, key understudy.Key) (f Follows) {
	raw := key.Query()
	if sp == nil || raw == "" {
		return f
	}
	params, err := understudy.ParseQuery(raw)
	if err != nil {
		return f
	}
	if f = followedBy(&sp.Paging, params); f.ID != "" {
		return f
	}
	for _, p := range sp.Pagings {
		if other := followedBy(p, params); other.ID != "" {
			return other
		} else if other.After {
			f = other
		}
	}
	return f
}

func followedBy(p *spec.Paging, params understudy.Query) (f Follows) {
	form := p.TokenForm(nil)
	for _, name := range p.Tokens {
		token, ok := params.Get(name)
		if !ok || token == "" {
			continue
		}
		f.After = true
		if name == p.Back && !form.Own {
			f.ID, f.Up = token, true
			return f
		}
		if name != p.TokenParam() || form.Own {
			continue // it is not known where it leads
		}
		if id, back, ok := form.ID(token); ok {
			f.ID, f.Up = id, back
			return f
		}
	}
	return f
}
