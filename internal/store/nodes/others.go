// This file calls functions for what other processes have written, and waits for them.

package nodes

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/db"
)

// Others are called when another process has changed what callers keep in memory. They must return at once, and neither use
// the store nor wait for a lock that a user of the store may hold.
type Others struct {
	// Written is called with the generation of each kind after there was a write to any of them.
	Written func(source, kind string, generation int64)
	// Deleted is called after pages were deleted that must not be shown any more, or records without a change.
	Deleted func()
}

// SetOthers sets what is called for the writes of other processes, and calls Others.Written for what they have written
// before.
func (t *Table) SetOthers(ctx context.Context, o Others) error {
	leave, err := t.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	t.others.Store(&o)
	return db.WrapError(false, t.pool.Read(ctx, t.NoteWrites), "read the writes of other processes")
}

// SetBarrier makes each call whose changes other processes must have seen wait until barrier returns. barrier gets the
// number of the change, in the sense of Node.Seen.
func (t *Table) SetBarrier(barrier func(position int64)) { t.pool.SetBarrier(barrier) }

var selectGenerations = &db.Statement{Head: "SELECT s.name, k.name, k.generation FROM kind k JOIN source s ON s.number = k.source"}

// NoteWrites calls Others.Written for each kind.
func (t *Table) NoteWrites(c db.Conn) error {
	t.noteWrite()
	o := t.others.Load()
	if o == nil {
		return nil
	}
	return c.Query(selectGenerations, 0, nil, func(r []driver.Value) error {
		o.Written(r[0].(string), r[1].(string), r[2].(int64))
		return nil
	})
}

// NoteDeletions calls Others.Deleted.
func (t *Table) NoteDeletions() {
	t.noteWrite()
	if o := t.others.Load(); o != nil {
		o.Deleted()
	}
}

// NoteSaves notes that other processes have saved pages.
func (t *Table) NoteSaves() { t.noteWrite() }
