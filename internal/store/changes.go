// Changes: numbered rows, written as runs and read back one by one.

package store

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/store/sqlite"
)

var (
	insertChanges = &sqlite.Statement{Head: "INSERT INTO change (source, n, count, kind, what, record, version, at, fields) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	selectChanges = &sqlite.Statement{Head: `SELECT c.n, c.count, c.what, c.record, c.version, c.at, k.name, f.names
		FROM change c JOIN kind k ON k.number = c.kind LEFT JOIN fields f ON f.number = c.fields
		WHERE c.source = ?1 AND c.n >= coalesce((SELECT max(n) FROM change WHERE source = ?1 AND n <= ?2), ?2) ORDER BY c.n LIMIT ?3`}
	selectFields = &sqlite.Statement{Head: "SELECT number FROM fields WHERE names = ?"}
	insertFields = &sqlite.Statement{Head: "INSERT INTO fields (names) VALUES (?) RETURNING number"}
)

// putChanges writes the changes of a save. The new records of a page have
// consecutive numbers and versions, so that a run of them is one row.
func (s *saving) putChanges() error {
	if len(s.outcome.changes) == 0 {
		return nil
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
		fields, err := fieldsNumber(s.c, first.Fields)
		if err != nil {
			return err
		}
		args = append(args, s.counters.source, first.N, int64(n), s.kind.Number, int64(first.Type), first.Record, first.Version, s.at, fields)
		i += n
	}
	return s.c.ExecMany(insertChanges, 9, args)
}

// fieldsNumber is the number of a set of field names, 0 for none.
func fieldsNumber(c *sqlite.Conn, names understudy.Names) (number int64, err error) {
	if names == "" {
		return 0, nil
	}
	take := func(r []driver.Value) { number = r[0].(int64) }
	found, err := c.One(selectFields, []driver.Value{string(names)}, take)
	if err == nil && !found {
		_, err = c.One(insertFields, []driver.Value{string(names)}, take)
	}
	return number, err
}

// Changes returns the source's changes with numbers above after, in order, at
// most limit (and at most MaxChanges) of them. A source nothing is known of
// has none.
func (db *DB) Changes(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	number, ok := db.catalog.Source(source)
	limit = min(limit, MaxChanges)
	if !ok || limit <= 0 {
		return nil, sqlite.CheckContext(ctx)
	}
	var changes []understudy.Change
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		err := c.Query(selectChanges, 0, []driver.Value{number, after + 1, int64(limit)}, func(r []driver.Value) error {
			n, count := r[0].(int64), r[1].(int64)
			fields, _ := r[7].(string)
			for i := range count {
				if n+i <= after || len(changes) == limit {
					continue
				}
				changes = append(changes, understudy.Change{N: n + i, Source: source, Kind: r[6].(string), Type: understudy.ChangeType(r[2].(int64)),
					Record: r[3].(int64) + i, Version: r[4].(int64) + i, At: time.Unix(0, r[5].(int64)).UTC(), Fields: understudy.Names(fields)})
			}
			return nil
		})
		if err != nil {
			return err
		}
		blocks := db.opener.Open(c)
		for i := range changes {
			var err error
			if changes[i].ID, err = blocks.ID(changes[i].Record, changes[i].Version); err != nil {
				return err
			}
		}
		return nil
	})
	return changes, sqlite.Failed(false, err, "read changes of %s after %d", source, after)
}

var selectLastChange = &sqlite.Statement{Head: "SELECT change FROM source WHERE number = ?"}

// LastChange is the number of the source's last change; 0 when there is none.
func (db *DB) LastChange(ctx context.Context, source string) (n int64, err error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return 0, err
	}
	defer leave()
	number, ok := db.catalog.Source(source)
	if !ok {
		return 0, sqlite.CheckContext(ctx)
	}
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectLastChange, []driver.Value{number}, func(r []driver.Value) { n = r[0].(int64) })
		return err
	})
	return n, sqlite.Failed(false, err, "read the last change of %s", source)
}

// Edition says which records there are: change is the number of the source's last
// change, silent is another number after records of any source came or went
// without one (retention, a purge). What was made of records while both were the
// same is still right. silent counts since the store was opened.
func (db *DB) Edition(ctx context.Context, source string) (change, silent int64, err error) {
	silent = db.counts.silent.Load() // before: what is committed after it is told by the next call
	change, err = db.LastChange(ctx, source)
	return change, silent, err
}

// Writes is a counter of writes to the store. Whatever was read while it stayed the same is
// still there.
func (db *DB) Writes() int64 { return db.counts.writes.Load() }

// changeSilently is called in a transaction that makes a record come or go without
// a change; afterWrite settles it.
func (n *counts) changeSilently() {
	if n.silent.Load()%2 == 0 {
		n.silent.Add(1)
	}
}

// afterWrite ends the odd counts of a write, whether it was committed or not.
func (n *counts) afterWrite() {
	n.writes.Add(1)
	for _, n := range []*atomic.Int64{&n.epoch, &n.silent} {
		if n.Load()%2 != 0 {
			n.Add(1)
		}
	}
}
