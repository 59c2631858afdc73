// The index of records by their clock: filled anew when the spec names another field
// of parents.

package records

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

var (
	insertParent = &sqlite.Statement{Head: "INSERT INTO parent (id) VALUES (?) ON CONFLICT DO NOTHING"}
	selectParent = &sqlite.Statement{Head: "SELECT number FROM parent WHERE id = ?"}
	InsertClock  = &sqlite.Statement{Head: "INSERT OR IGNORE INTO clock (shape, parent, old, clock, record) VALUES ", Tuple: "(?, ?, ?, ?, ?)"}
	deleteClock  = &sqlite.Statement{Head: "DELETE FROM clock WHERE shape = ? AND parent = ? AND old = ? AND clock = ? AND record = ?"}
)

// ParentNumber is the number of a parent's id: 0 for none, -1 when it was
// never seen.
func ParentNumber(c *sqlite.Conn, id string) (number int64, err error) {
	if id == "" {
		return 0, nil
	}
	number = -1
	_, err = c.One(selectParent, []driver.Value{id}, func(r []driver.Value) { number = r[0].(int64) })
	return number, err
}

// PutParent is ParentNumber for an id that is to get a number.
func PutParent(c *sqlite.Conn, id string) (number int64, err error) {
	if number, err = ParentNumber(c, id); err != nil || number >= 0 {
		return number, err
	}
	if err := c.Exec(insertParent, 0, id); err != nil {
		return 0, err
	}
	return ParentNumber(c, id)
}

// ClockPosting is a record at a clock.
type ClockPosting struct{ Clock, Record int64 }

// ClockScan is the records of a shape with clocks from From to To-1.
type ClockScan struct {
	Shape     int64
	Parent    int64 // 0: under any
	Old       bool  // by clocks they had, and not those they have
	From, To  int64
	Unclocked bool // those without a clock too, whose clock is 0
}

var selectClocks = &sqlite.Statement{Head: `SELECT clock, record FROM clock WHERE shape = ? AND parent = ? AND old = ?
	AND (clock, record) < (?, ?)
	AND clock >= ? AND clock < ? AND (clock <> 0 OR ?) ORDER BY clock DESC, record DESC LIMIT ?`}

// Below is the next ones below a posting, at most limit: the latest clock first, and of
// one clock the record that was found last.
func (s *ClockScan) Below(c *sqlite.Conn, below ClockPosting, limit int) (all []ClockPosting, err error) {
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	args := []driver.Value{s.Shape, s.Parent, flag(s.Old), below.Clock, below.Record, s.From, s.To, flag(s.Unclocked), int64(limit)}
	err = c.Query(selectClocks, 0, args, func(r []driver.Value) error {
		all = append(all, ClockPosting{r[0].(int64), r[1].(int64)})
		return nil
	})
	return all, err
}

// RetireClock makes a record found by the clock it had, not by the one it has.
func RetireClock(c *sqlite.Conn, shape, record int64, e *codec.Entry) error {
	return EachClock(c, e.Parent, func(parent int64) error {
		if err := c.Exec(deleteClock, 0, shape, parent, int64(0), e.Clock, record); err != nil {
			return err
		}
		return c.Exec(InsertClock, 1, shape, parent, int64(1), e.Clock, record)
	})
}

// EachClock calls do for the parents under which a version is found.
func EachClock(c *sqlite.Conn, id string, do func(parent int64) error) error {
	if err := do(0); err != nil || id == "" {
		return err
	}
	parent, err := ParentNumber(c, id)
	if err != nil || parent < 0 {
		return err
	}
	return do(parent)
}

var (
	selectFilled = &sqlite.Statement{Head: "SELECT parent FROM kind WHERE number = ?"}
	updateFilled = &sqlite.Statement{Head: "UPDATE kind SET parent = ? WHERE number = ?"}
	clearClock   = &sqlite.Statement{Head: "DELETE FROM clock WHERE shape IN (SELECT number FROM shape WHERE kind = ?)"}
	selectFill   = &sqlite.Statement{Head: `SELECT number, version, state FROM held WHERE number > ? ORDER BY number LIMIT ?`}
)

// fillSome is how many held rows are looked at in one transaction.
const fillSome = 4096

// FillClocks fills the index for kinds whose field of parents the spec has changed, and
// for those whose filling was broken off. It is part of opening, since what is
// asked of a half-filled index would be answered wrongly.
func (o *Opener) FillClocks(ctx context.Context, c *sqlite.Conn) error {
	kinds := map[int64]string{}
	for _, k := range o.catalog.Kinds() {
		var filled *string
		_, err := c.One(selectFilled, []driver.Value{k.Number}, func(r []driver.Value) {
			if text, ok := r[0].(string); ok {
				filled = &text
			}
		})
		if err != nil {
			return err
		}
		if filled == nil || k.Spec != nil && *filled != k.ParentField() {
			kinds[k.Number] = k.ParentField()
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
	f := &filling{from: o, c: c, shapes: map[int64]bool{}}
	for _, s := range o.catalog.Shapes() {
		if _, ok := kinds[s.Kind.Number]; ok {
			f.shapes[s.Number] = true
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
	from   *Opener
	c      *sqlite.Conn
	shapes map[int64]bool
	args   []driver.Value
}

// some adds the records of some held rows after one.
func (f *filling) some(after int64) (n int, last int64, err error) {
	f.args = f.args[:0]
	last = after
	blocks := f.from.Open(f.c)
	err = f.c.Query(selectFill, 0, []driver.Value{after, int64(fillSome)}, func(r []driver.Value) error {
		n++
		last = r[0].(int64)
		version, state := r[1].(int64), r[2].(int64)
		b, err := blocks.Block(version / codec.PerBlock)
		if err != nil || !f.shapes[b.Shape] {
			return SkipDamaged(err)
		}
		old := int64(0)
		if state&Gone != 0 {
			old = 1
		}
		if err := f.add(blocks, b.Shape, version, old); err != nil {
			return err
		}
		all, err := PeriodsOf(f.c, last, last)
		for _, s := range all {
			if err == nil && s.Version != 0 && s.Version != version {
				err = f.add(blocks, b.Shape, s.Version, 1)
			}
		}
		return err
	})
	if err == nil {
		err = f.c.ExecMany(InsertClock, 5, f.args)
	}
	return n, last, err
}

// add adds a version.
func (f *filling) add(blocks *Blocks, shape, version, old int64) error {
	e, err := blocks.Entry(version)
	if err != nil || e.Pruned() {
		return SkipDamaged(err)
	}
	f.args = append(f.args, shape, int64(0), old, e.Clock, e.Record)
	if e.Parent == "" {
		return nil
	}
	parent, err := PutParent(f.c, e.Parent)
	f.args = append(f.args, shape, parent, old, e.Clock, e.Record)
	return err
}

// SkipDamaged passes over what cannot be read: it cannot be answered either.
func SkipDamaged(err error) error {
	if sqlite.IsDamaged(err) {
		return nil
	}
	return err
}
