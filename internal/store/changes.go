// This file writes and reads changes. A run of similar changes is one row of the table.

package store

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/store/db"
)

var (
	insertChanges = &db.Statement{Head: "INSERT INTO change (source, n, count, kind, what, record, version, at, fields) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	selectChanges = &db.Statement{Head: `SELECT c.n, c.count, c.what, c.record, c.version, c.at, k.name, f.names
		FROM change c JOIN kind k ON k.number = c.kind LEFT JOIN fields f ON f.number = c.fields
		WHERE c.source = ?1 AND c.n >= coalesce((SELECT max(n) FROM change WHERE source = ?1 AND n <= ?2), ?2) ORDER BY c.n LIMIT ?3`}
	selectFields = &db.Statement{Head: "SELECT number FROM fields WHERE names = ?"}
	insertFields = &db.Statement{Head: "INSERT INTO fields (names) VALUES (?) RETURNING number"}
)

// putChanges writes the changes of a save. The new records of a page have consecutive record and version
// numbers, so one row holds a run of them.
func (s *saving) putChanges() error {
	if len(s.outcome.changes) == 0 {
		return nil
	}
	fields, err := putFieldNames(s.c, s.outcome.changes)
	if err != nil {
		return err
	}
	var args []driver.Value
	for i := 0; i < len(s.outcome.changes); {
		first, n := &s.outcome.changes[i], 1
		for i+n < len(s.outcome.changes) {
			next := &s.outcome.changes[i+n]
			if next.Type != first.Type || next.Fields != first.Fields || next.Record != first.Record+int64(n) ||
				next.Version != first.Version+int64(n) {
				break
			}
			n++
		}
		args = append(args, s.counters.source, first.N, int64(n), s.kind.Number, int64(first.Type), first.Record, first.Version, s.at,
			fields[first.Fields])
		i += n
	}
	return db.ExecuteMany(s.c, insertChanges, 9, args)
}

// putFieldNames returns the numbers under which the sets of field names of the changes are stored. It inserts the sets
// that are new. The empty set has the number 0.
func putFieldNames(c db.Conn, changes []understudy.Change) (numbers map[understudy.Names]int64, err error) {
	numbers = map[understudy.Names]int64{}
	for i := range changes {
		names := changes[i].Fields
		if _, known := numbers[names]; known || names == "" {
			continue
		}
		numbers[names] = 0
		if err := c.Expect(selectFields, 0, string(names)); err != nil {
			return nil, err
		}
	}
	for names := range numbers {
		take := func(r []driver.Value) { numbers[names] = r[0].(int64) }
		found, err := db.QueryRow(c, selectFields, []driver.Value{string(names)}, take)
		if err == nil && !found {
			_, err = db.QueryRow(c, insertFields, []driver.Value{string(names)}, take)
		}
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// ReadChanges returns the changes of a source with numbers above after, in ascending order. It returns at most
// limit changes and at most MaxChanges. A source that is not in the store has no changes.
func (d *DB) ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error) {
	limit = min(limit, MaxChanges)
	var changes []understudy.Change
	err := d.pool.Read(ctx, func(c db.Conn) error {
		number, ok := d.catalog.Source(source)
		if !ok || limit <= 0 {
			return nil
		}
		err := db.VisitRows(c, selectChanges, []driver.Value{number, after + 1, int64(limit)}, func(r []driver.Value) {
			n, count := r[0].(int64), r[1].(int64)
			fields, _ := r[7].(string)
			for i := range count {
				if n+i <= after || len(changes) == limit {
					continue
				}
				changes = append(changes, understudy.Change{N: n + i, Source: source, Kind: r[6].(string), Type: understudy.ChangeType(r[2].(int64)),
					Record: r[3].(int64) + i, Version: r[4].(int64) + i, At: time.Unix(0, r[5].(int64)).UTC(), Fields: understudy.Names(fields)})
			}
		})
		if err != nil {
			return err
		}
		blocks := d.opener.Open(c)
		for i := range changes {
			var err error
			if changes[i].ID, err = blocks.FindID(changes[i].Record, changes[i].Version); err != nil {
				return err
			}
		}
		return nil
	})
	return changes, db.WrapError(false, err, "read changes of %s after %d", source, after)
}

var selectLastChange = &db.Statement{Head: "SELECT change FROM source WHERE number = ?"}

// ReadLastChange returns the number of the source's last change, or 0 if the source has none.
func (d *DB) ReadLastChange(ctx context.Context, source string) (n int64, err error) {
	err = d.pool.Read(ctx, func(c db.Conn) error {
		number, _ := d.catalog.Source(source)
		_, err := db.QueryRow(c, selectLastChange, []driver.Value{number}, func(r []driver.Value) { n = r[0].(int64) })
		return err
	})
	return n, db.WrapError(false, err, "read the last change of %s", source)
}

// ReadEdition returns two numbers that identify the current set of records. change is the number of the source's last
// change. silent grows whenever records of any source appear or disappear without a change, by retention or a purge. A
// result computed from records is valid while both numbers stay the same. silent starts anew when the store is opened.
func (d *DB) ReadEdition(ctx context.Context, source string) (change, silent int64, err error) {
	for range 3 { // the transaction may notice what another process has changed
		silent = d.counts.silent.Load() // read before the change number, so that the next call notices a commit that happens in between
		change, err = d.ReadLastChange(ctx, source)
		if err != nil || silent == d.counts.silent.Load() {
			break
		}
	}
	return change, silent, err
}

// Writes returns the number of writes to the store. While the number stays the same, what a caller has read is still
// current.
func (d *DB) Writes() int64 { return d.counts.writes.Load() }

// changeSilently makes the silent counter odd. Call it in a transaction that adds or removes a record without a
// change. settleWrite makes the counter even again.
func (n *counts) changeSilently() {
	n.pool.MarkChanged(db.Silent)
	if n.silent.Load()%2 == 0 {
		n.silent.Add(1)
	}
}

// noteMoves does the same for the epoch. Call it in a transaction that moves records to make room.
func (n *counts) noteMoves() {
	n.pool.MarkChanged(db.Moves)
	if n.epoch.Load()%2 == 0 {
		n.epoch.Add(1)
	}
}

// settleWrite counts a write and makes odd counters even. It runs after the write, whether that was committed or not.
func (n *counts) settleWrite() {
	n.writes.Add(1)
	for _, n := range []*atomic.Int64{&n.epoch, &n.silent} {
		if n.Load()%2 != 0 {
			n.Add(1)
		}
	}
}
