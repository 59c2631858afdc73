// The index of records by their clock: kept right by every save, and filled
// anew when the spec names another field of parents.

package store

import (
	"context"
	"database/sql/driver"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
	"understudy/kit/jsonspan"
)

var (
	insertParent = &sqlite.Statement{Head: "INSERT INTO parent (id) VALUES (?) ON CONFLICT DO NOTHING"}
	selectParent = &sqlite.Statement{Head: "SELECT number FROM parent WHERE id = ?"}
	insertClock  = &sqlite.Statement{Head: "INSERT OR IGNORE INTO clock (shape, parent, old, clock, record) VALUES ", Tuple: "(?, ?, ?, ?, ?)"}
	deleteClock  = &sqlite.Statement{Head: "DELETE FROM clock WHERE shape = ? AND parent = ? AND old = ? AND clock = ? AND record = ?"}
)

// parentNumber is the number of a parent's id: 0 for none, -1 when it was
// never seen.
func parentNumber(c *sqlite.Conn, id string) (number int64, err error) {
	if id == "" {
		return 0, nil
	}
	number = -1
	_, err = c.One(selectParent, []driver.Value{id}, func(r []driver.Value) { number = r[0].(int64) })
	return number, err
}

// putParent is parentNumber for an id that is to get a number.
func putParent(c *sqlite.Conn, id string) (number int64, err error) {
	if number, err = parentNumber(c, id); err != nil || number >= 0 {
		return number, err
	}
	if err := c.Exec(insertParent, 0, id); err != nil {
		return 0, err
	}
	return parentNumber(c, id)
}

// reclock makes a record found by the clock and the parent of row r, in place
// of those of the version before, if that was found.
func (s *saving) reclock(record int64, before *codec.Entry, r *understudy.Row) error {
	if before != nil {
		if before.Clock == r.Clock && before.Parent == r.Parent {
			return nil
		}
		if err := retireClock(s.c, s.shape.number, record, before); err != nil {
			return err
		}
	}
	s.clocks = append(s.clocks, s.shape.number, int64(0), int64(0), r.Clock, record)
	if r.Parent == "" {
		return nil
	}
	parent, err := putParent(s.c, r.Parent)
	s.clocks = append(s.clocks, s.shape.number, parent, int64(0), r.Clock, record)
	return err
}

// retireClock makes a record found by the clock it had, not by the one it has.
func retireClock(c *sqlite.Conn, shape, record int64, e *codec.Entry) error {
	return eachClock(c, e.Parent, func(parent int64) error {
		if err := c.Exec(deleteClock, 0, shape, parent, int64(0), e.Clock, record); err != nil {
			return err
		}
		return c.Exec(insertClock, 1, shape, parent, int64(1), e.Clock, record)
	})
}

// eachClock calls do for the parents under which a version is found.
func eachClock(c *sqlite.Conn, id string, do func(parent int64) error) error {
	if err := do(0); err != nil || id == "" {
		return err
	}
	parent, err := parentNumber(c, id)
	if err != nil || parent < 0 {
		return err
	}
	return do(parent)
}

// parentField is the field that the parents of a kind's records are taken from.
func (k *kindRow) parentField() string {
	if k == nil || k.spec == nil {
		return ""
	}
	return k.spec.Parent
}

// parentOf is what a body says its parent is, "" when there is no field for it.
func parentOf(field string, body []byte) string {
	if field == "" {
		return ""
	}
	doc, err := jsonspan.Document(body)
	if err != nil {
		return ""
	}
	switch v, ok := jsonspan.Find(body, doc, field); {
	case ok && v.Kind == jsonspan.String:
		return jsonspan.Text(body, v)
	case ok && v.Kind == jsonspan.Number:
		return string(v.Of(body))
	}
	return ""
}

var (
	selectFilled = &sqlite.Statement{Head: "SELECT parent FROM kind WHERE number = ?"}
	updateFilled = &sqlite.Statement{Head: "UPDATE kind SET parent = ? WHERE number = ?"}
	clearClock   = &sqlite.Statement{Head: "DELETE FROM clock WHERE shape IN (SELECT number FROM shape WHERE kind = ?)"}
	selectFill   = &sqlite.Statement{Head: `SELECT number, version, state FROM held WHERE number > ? ORDER BY number LIMIT ?`}
)

// fillSome is how many held rows are looked at in one transaction.
const fillSome = 4096

// fill fills the index for kinds whose field of parents the spec has changed, and
// for those whose filling was broken off. It is part of opening, since what is
// asked of a half-filled index would be answered wrongly.
func (db opening) fill(ctx context.Context, c *sqlite.Conn) error {
	kinds := map[int64]string{}
	for _, k := range db.catalog.kinds {
		var filled *string
		_, err := c.One(selectFilled, []driver.Value{k.number}, func(r []driver.Value) {
			if text, ok := r[0].(string); ok {
				filled = &text
			}
		})
		if err != nil {
			return err
		}
		if filled == nil || k.spec != nil && *filled != k.parentField() {
			kinds[k.number] = k.parentField()
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	for number := range kinds {
		_, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
			if err := c.Exec(updateFilled, 0, nil, number); err != nil {
				return err // it is empty now, whatever it was filled with
			}
			return c.Exec(clearClock, 0, number)
		})
		if err != nil {
			return err
		}
	}
	f := &filling{db: db.DB, c: c, shapes: map[int64]bool{}}
	for _, s := range db.catalog.shapes {
		if _, ok := kinds[s.kind.number]; ok {
			f.shapes[s.number] = true
		}
	}
	last := int64(-1)
	for n := fillSome; n == fillSome; {
		_, err := c.Transaction(ctx, sqlite.BeginWrite, func() (err error) {
			n, last, err = f.some(last)
			return err
		})
		if err != nil {
			return err
		}
	}
	for number, field := range kinds {
		if err := c.Exec(updateFilled, 0, field, number); err != nil {
			return err
		}
	}
	return nil
}

// filling is the index being filled.
type filling struct {
	db     *DB
	c      *sqlite.Conn
	shapes map[int64]bool
	args   []driver.Value
}

// some adds the records of some held rows after one.
func (f *filling) some(after int64) (n int, last int64, err error) {
	f.args = f.args[:0]
	last = after
	blocks := f.db.blocks(f.c)
	err = f.c.Query(selectFill, 0, []driver.Value{after, int64(fillSome)}, func(r []driver.Value) error {
		n++
		last = r[0].(int64)
		version, state := r[1].(int64), r[2].(int64)
		b, err := blocks.block(version / codec.PerBlock)
		if err != nil || !f.shapes[b.shape] {
			return skipDamaged(err)
		}
		old := int64(0)
		if state&stateGone != 0 {
			old = 1
		}
		if err := f.add(blocks, b.shape, version, old); err != nil {
			return err
		}
		all, err := stretchesOf(f.c, last, last)
		for _, s := range all {
			if err == nil && s.version != 0 && s.version != version {
				err = f.add(blocks, b.shape, s.version, 1)
			}
		}
		return err
	})
	if err == nil {
		err = f.c.ExecMany(insertClock, 5, f.args)
	}
	return n, last, err
}

// add adds a version.
func (f *filling) add(blocks *opened, shape, version, old int64) error {
	e, err := blocks.entry(version)
	if err != nil || e.Pruned() {
		return skipDamaged(err)
	}
	f.args = append(f.args, shape, int64(0), old, e.Clock, e.Record)
	if e.Parent == "" {
		return nil
	}
	parent, err := putParent(f.c, e.Parent)
	f.args = append(f.args, shape, parent, old, e.Clock, e.Record)
	return err
}

// skipDamaged passes over what cannot be read: it cannot be answered either.
func skipDamaged(err error) error {
	if sqlite.IsDamaged(err) {
		return nil
	}
	return err
}
