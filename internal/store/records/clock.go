// This file finds records by clock in an index. It fills the index again when the spec names another parent field.

package records

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

var (
	insertParent = &db.Statement{Head: "INSERT INTO parent (id) VALUES (?) ON CONFLICT DO NOTHING"}
	selectParent = &db.Statement{Head: "SELECT number FROM parent WHERE id = ?"}
	InsertClock  = &db.Statement{Head: "INSERT INTO clock (shape, parent, old, clock, record) VALUES ", Tuple: "(?, ?, ?, ?, ?)",
		Tail: " ON CONFLICT DO NOTHING"}
	deleteClock = &db.Statement{Head: "DELETE FROM clock WHERE shape = ? AND parent = ? AND old = ? AND clock = ? AND record = ?"}
)

// FindParent returns the number of a parent's id. It returns 0 for an empty id and -1 for an id that was never seen.
func FindParent(c db.Conn, id string) (number int64, err error) {
	if id == "" {
		return 0, nil
	}
	number = -1
	_, err = db.QueryRow(c, selectParent, []driver.Value{id}, func(r []driver.Value) { number = r[0].(int64) })
	return number, err
}

// PutParent returns the number of a parent's id and assigns one if needed.
func PutParent(c db.Conn, id string) (number int64, err error) {
	if number, err = FindParent(c, id); err != nil || number >= 0 {
		return number, err
	}
	if err := c.Execute(insertParent, 0, id); err != nil {
		return 0, err
	}
	return FindParent(c, id)
}

// ClockPosting is a record with a clock.
type ClockPosting struct{ Clock, Record int64 }

// ClockScan selects the records of a shape with clocks from From up to, but not including, To.
type ClockScan struct {
	Shape     int64
	Parent    int64 // the number of the parent; 0 means under any parent
	Old       bool  // search the earlier clocks of records instead of their current clocks
	From, To  int64
	Unclocked bool // include records without a clock, as if their clock were 0
}

var selectClocks = &db.Statement{Head: `SELECT clock, record FROM clock WHERE shape = ? AND parent = ? AND old = ?
	AND (clock, record) < (?, ?)
	AND clock >= ? AND clock < ? AND (clock <> 0 OR ? <> 0) ORDER BY clock DESC, record DESC LIMIT ?`}

// ReadBelow returns at most limit postings below the given one, in descending order of clock and record number.
func (s *ClockScan) ReadBelow(c db.Conn, below ClockPosting, limit int) (all []ClockPosting, err error) {
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	args := []driver.Value{s.Shape, s.Parent, flag(s.Old), below.Clock, below.Record, s.From, s.To, flag(s.Unclocked), int64(limit)}
	err = db.VisitRows(c, selectClocks, args, func(r []driver.Value) { all = append(all, ClockPosting{r[0].(int64), r[1].(int64)}) })
	return all, err
}

// MoveClock moves a record in the index from its current clock to its earlier clocks.
func MoveClock(c db.Conn, shape, record int64, e *codec.Entry) error {
	return VisitClockParents(c, e.Parent, func(parent int64) error {
		if err := c.Execute(deleteClock, 0, shape, parent, int64(0), e.Clock, record); err != nil {
			return err
		}
		return c.Execute(InsertClock, 1, shape, parent, int64(1), e.Clock, record)
	})
}

// VisitClockParents calls do with each parent number under which a version is indexed: 0, and its parent if it has one.
func VisitClockParents(c db.Conn, id string, do func(parent int64) error) error {
	if err := do(0); err != nil || id == "" {
		return err
	}
	parent, err := FindParent(c, id)
	if err != nil || parent < 0 {
		return err
	}
	return do(parent)
}

var (
	selectFilled = &db.Statement{Head: "SELECT parent FROM kind WHERE number = ?"}
	updateFilled = &db.Statement{Head: "UPDATE kind SET parent = ? WHERE number = ?"}
	clearClock   = &db.Statement{Head: "DELETE FROM clock WHERE shape IN (SELECT number FROM shape WHERE kind = ?)"}
	selectFill   = &db.Statement{Head: `SELECT number, version, state FROM held WHERE number > ? ORDER BY number LIMIT ?`}
)

// fillBatch is the number of held rows read in one transaction.
const fillBatch = 4096

// FillClocks fills the index for kinds whose parent field the spec has changed, and for kinds whose filling was
// interrupted. It runs while the store opens, because a half-filled index would give wrong results.
func (o *Opener) FillClocks(ctx context.Context, c db.Conn) error {
	kinds := map[int64]string{}
	for _, k := range o.catalog.Kinds() {
		var filled *string
		_, err := db.QueryRow(c, selectFilled, []driver.Value{k.Number}, func(r []driver.Value) {
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
		_, err := c.RunTransaction(ctx, func() error {
			// A NULL in the column parent says that the index of the kind is not complete.
			if err := c.Execute(updateFilled, 0, nil, number); err != nil {
				return err
			}
			return c.Execute(clearClock, 0, number)
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
	for n := fillBatch; n == fillBatch; {
		_, err := c.RunTransaction(ctx, func() (err error) {
			n, last, err = f.addSome(last)
			return err
		})
		if err != nil {
			return err
		}
	}
	for number, field := range kinds {
		if err := c.Execute(updateFilled, 0, field, number); err != nil {
			return err
		}
	}
	return nil
}

// filling is the state of filling the index.
type filling struct {
	from   *Opener
	c      db.Conn
	shapes map[int64]bool
	args   []driver.Value
}

// addSome indexes the records of up to fillBatch held rows after the given row number.
func (f *filling) addSome(after int64) (n int, last int64, err error) {
	f.args = f.args[:0]
	last = after
	blocks := f.from.Open(f.c)
	err = f.c.Query(selectFill, 0, []driver.Value{after, int64(fillBatch)}, func(r []driver.Value) error {
		n++
		last = r[0].(int64)
		version, state := r[1].(int64), r[2].(int64)
		b, err := blocks.ReadBlock(version / codec.PerBlock)
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
		all, err := ReadPeriods(f.c, last, last)
		for _, s := range all {
			if err == nil && s.Version != 0 && s.Version != version {
				err = f.add(blocks, b.Shape, s.Version, 1)
			}
		}
		return err
	})
	if err == nil {
		err = db.ExecuteMany(f.c, InsertClock, 5, f.args)
	}
	return n, last, err
}

// add adds one version to the index.
func (f *filling) add(blocks *Blocks, shape, version, old int64) error {
	e, err := blocks.ReadEntry(version)
	if err != nil || e.IsPruned() {
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

// SkipDamaged returns nil for an error about damaged data, which no read can return either. It returns other
// errors unchanged.
func SkipDamaged(err error) error {
	if db.IsDamaged(err) {
		return nil
	}
	return err
}
