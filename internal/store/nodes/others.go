// This file notifies this process of the writes of other processes, and makes calls wait for other processes.

package nodes

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/db"
)

// Others has functions that are called after another process has changed something that callers keep in memory. They must
// return at once. They must not use the store, and must not wait for a lock that a user of the store may hold.
type Others struct {
	// Written is called after a write to any kind, with the generation of each kind.
	Written func(source, kind string, generation int64)
	// Deleted is called after pages were deleted that must not be shown any more, and after records were deleted without a change.
	Deleted func()
}

// SetOthers sets the functions that are called for the writes of other processes. It calls Others.Written for earlier writes.
func (t *Table) SetOthers(ctx context.Context, o Others) error {
	t.others.Store(&o)
	return db.WrapError(false, t.pool.Read(ctx, t.NoteWrites), "read the writes of other processes")
}

// SetBarrier sets a function that waits until other processes have seen a change. Each call whose change they must have
// seen returns only after barrier has returned. barrier gets the number of the change, as in Node.Seen.
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
