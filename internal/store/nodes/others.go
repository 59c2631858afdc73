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
	// Written is called for each kind after writes to it, with its generation and the ids of the written records. If it is not
	// known which records were written, there are no ids.
	Written func(source, kind string, generation int64, ids []string)
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

// maxWritten is of how many of the last writes to each kind the database has the ids of the records.
const maxWritten = 256

var (
	selectGenerations = &db.Statement{Head: "SELECT s.name, k.name, k.number, k.generation FROM kind k JOIN source s ON s.number = k.source"}
	selectWritten     = &db.Statement{Head: "SELECT id FROM written WHERE kind = ? AND generation > ?"}
	deleteWritten     = &db.Statement{Head: "DELETE FROM written WHERE kind = ?"}
	putWritten        = &db.Statement{Head: "INSERT INTO written (kind, place, generation, id) VALUES (?, ?, ?, ?) " +
		"ON CONFLICT (kind, place) DO UPDATE SET generation = excluded.generation, id = excluded.id"}
)

// NoteWrites calls Others.Written for each kind to which there were writes. The caller has the writing connection.
func (t *Table) NoteWrites(c db.Conn) error {
	t.noteWrite()
	o := t.others.Load()
	if o == nil {
		return nil
	}
	type kind struct {
		source, name               string
		number, before, generation int64
	}
	var written []kind
	err := c.Query(selectGenerations, 0, nil, func(r []driver.Value) error {
		k := kind{source: r[0].(string), name: r[1].(string), number: r[2].(int64), generation: r[3].(int64)}
		if k.before = t.generations[k.number]; k.before < k.generation {
			written = append(written, k)
		}
		return nil
	})
	for _, k := range written {
		if err != nil {
			return err
		}
		var ids []string
		err = c.Query(selectWritten, 0, []driver.Value{k.number, k.before}, func(r []driver.Value) error {
			ids = append(ids, string(r[0].([]byte)))
			return nil
		})
		if int64(len(ids)) != k.generation-k.before {
			ids = nil
		}
		o.Written(k.source, k.name, k.generation, ids)
		t.generations[k.number] = k.generation
	}
	return err
}

// ForgetWritten deletes the ids of the last written records of a kind, because records are erased. Other processes then take each
// of these writes for one to any record.
func (t *Table) ForgetWritten(c db.Conn, kind int64) error { return c.Execute(deleteWritten, 0, kind) }

// AddWritten tells other processes which record this one has written. It is called in the transaction that gives the kind a
// generation. Without other processes it does nothing.
func (t *Table) AddWritten(c db.Conn, kind, generation int64, id string) error {
	if t.others.Load() == nil {
		return nil
	}
	t.pool.CallAfterCommit(func() { t.generations[kind] = generation }) // this process knows its own writes
	if id == "" {
		return nil
	}
	return c.Execute(putWritten, 0, kind, generation%maxWritten, generation, []byte(id))
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
