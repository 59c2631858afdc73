// What the predicates of a question ask of the kinds and shapes that are held.

package store

import (
	"database/sql/driver"

	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/terms"
)

// ask says what predicates say of a kind; none: no record of the kind can fulfil
// them.
func (p *seekPlan) ask(k *kindPlan) (none bool) {
	if p.q.Parent == "" && len(p.q.Predicates) == 0 {
		return false
	}
	predicates, never := terms.Join(p.q.Predicates)
	if never {
		return true
	}
	if len(k.shapes) > 1 {
		p.exact = false // it is told in another shape than it may be found in
	}
	for _, s := range k.shapes {
		one, exact, none := k.Terms.Plan(s.Number, p.q.Parent, predicates)
		if none {
			return true
		}
		if p.exact = p.exact && exact; one.Empty() {
			k.asked = nil
			return false
		}
		k.asked = append(k.asked, one)
	}
	return false
}

var (
	placeDown = &sqlite.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at <= ?3 >> 10 ORDER BY at DESC LIMIT ?4"}
	placeUp   = &sqlite.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at >= ?3 >> 10 ORDER BY at ASC LIMIT ?4"}
)

// placeSpots are the spots of all records of a kind, as if all were in a shape.
func placeSpots(c *sqlite.Conn, kind, shape int64, q *query.RecordQuery) postings.Iterator {
	st := placeDown
	if q.Up {
		st = placeUp
	}
	return &postings.Scan{C: c, St: st, Args: []driver.Value{kind, shape}, Up: q.Up, Size: (q.Want + 1) / 2}
}
