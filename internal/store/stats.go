// This file measures the store: how much it holds, how much disk it takes, and which sessions wait for which.

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy/internal/store/db"
	"understudy/internal/store/locks"
	"understudy/internal/store/migrations"
	"understudy/internal/store/names"
	"understudy/internal/store/nodes"
	"understudy/internal/store/postgres"
	"understudy/internal/store/sqlite"
)

var (
	selectTotals = &db.Statement{Head: `SELECT (SELECT count(*) FROM page), (SELECT coalesce(sum(change), 0) FROM source),
		(SELECT coalesce(sum(records), 0) FROM kind)`}
	selectKindTotals = &db.Statement{Head: `SELECT s.name, k.name, k.records, k.changes, k.generation,
		coalesce(sum(b.blocks), 0), coalesce(sum(b.versions), 0), coalesce(sum(b.packed), 0), coalesce(sum(b.unpacked), 0)
		FROM kind k JOIN source s ON s.number = k.source LEFT JOIN shape h ON h.kind = k.number
		LEFT JOIN (SELECT shape, count(*) AS blocks, sum(count) AS versions, sum(length(body)) AS packed, sum(size) AS unpacked
		FROM block GROUP BY shape) b ON b.shape = h.number
		GROUP BY k.number, s.name ORDER BY s.name, k.name`}
	selectTableSizes = &db.Statement{Head: `SELECT coalesce(m.tbl_name, d.name), sum(d.pgsize) FROM dbstat d
		LEFT JOIN sqlite_schema m ON m.name = d.name WHERE d.aggregate = TRUE GROUP BY 1 ORDER BY 2 DESC, 1`,
		Standard: `SELECT CAST(relname AS TEXT), CAST(pg_total_relation_size(oid) AS BIGINT) FROM pg_class
		WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r' ORDER BY 2 DESC, 1`}
)

// ReadStats measures the store. It reads the rows of all blocks and pages but no body, and visits all pages of an SQLite file, which takes
// a few seconds per gigabyte. PerRecord is the sum of File and WAL divided by Records, or 0 without records.
func (d *DB) ReadStats(ctx context.Context) (Stats, error) {
	var st Stats
	err := d.pool.Read(ctx, func(c db.Conn) (err error) {
		if _, err := db.QueryRow(c, selectTotals, nil, func(r []driver.Value) {
			st.Pages, st.Changes, st.Records = r[0].(int64), r[1].(int64), r[2].(int64)
		}); err != nil {
			return err
		}
		if err := c.Query(selectKindTotals, 0, nil, func(r []driver.Value) error {
			k := KindStats{Source: r[0].(string), State: KindState{Kind: r[1].(string), Records: r[2].(int64), Changes: r[3].(int64),
				Generation: r[4].(int64)},
				Versions: r[6].(int64), Packed: r[7].(int64), Unpacked: r[8].(int64)}
			st.Blocks += r[5].(int64)
			st.Versions += k.Versions
			st.Packed += k.Packed
			st.Unpacked += k.Unpacked
			st.Kinds = append(st.Kinds, k)
			return nil
		}); err != nil {
			return err
		}
		err = c.Query(selectTableSizes, 0, nil, func(r []driver.Value) error {
			st.Tables = append(st.Tables, TableSize{r[0].(string), r[1].(int64)})
			return nil
		})
		if err != nil {
			return err
		}
		st.Space, err = measureSpace(d, c)
		return err
	})
	if err != nil {
		return Stats{}, db.WrapError(false, err, "measure %s", d.pool.Engine.Name())
	}
	if st.Records > 0 {
		st.PerRecord = float64(st.Space.File+st.Space.WAL) / float64(st.Records)
	}
	return st, nil
}

var selectEvicted = &db.Statement{Head: "SELECT evicted_pages, evicted_versions, evicted_at FROM counter"}

// MeasureSpace returns what the store takes on disk and what it evicted. It takes well under a millisecond.
func (d *DB) MeasureSpace(ctx context.Context) (s Space, err error) {
	err = d.pool.Read(ctx, func(c db.Conn) error { s, err = measureSpace(d, c); return err })
	return s, db.WrapError(false, err, "measure %s", d.pool.Engine.Name())
}

// measureSpace reads the sizes of the files, the counters of the evictor and the free pages.
func measureSpace(d *DB, c db.Conn) (Space, error) {
	reads := d.pool.Reads()
	s := Space{Limit: d.o.Limit, Damaged: d.pool.IsDamaged(), Writing: d.pool.ReadWriting(),
		Read: Reads{Rows: reads[db.Rows], Index: reads[db.Index], Blocks: reads[db.Blocks]}}
	_, err := db.QueryRow(c, selectEvicted, nil, func(r []driver.Value) {
		s.EvictedPages, s.EvictedVersions, s.EvictedAt = r[0].(int64), r[1].(int64), db.Time(r[2].(int64))
	})
	if err != nil {
		return s, err
	}
	space, err := d.pool.Engine.MeasureSpace(c)
	s.File, s.WAL, s.Free = space.File, space.Log, space.Free
	return s, err
}

// ReadLocks returns which sessions of a PostgreSQL database wait for which, or which process writes to an SQLite file. path is
// as in Options. Call it in a process that has not opened the file (see locks.FindWriter).
func ReadLocks(ctx context.Context, path string) (*locks.Report, error) {
	if !IsPostgreSQL(path) {
		pid, err := locks.FindWriter(path)
		r := locks.NewReport(path, nil)
		if pid != 0 {
			r.Sessions = append(r.Sessions, locks.Session{PID: pid, State: "writes"})
		}
		return r, err
	}
	engine, err := postgres.NewEngine(path)
	if err != nil {
		return nil, err
	}
	sessions, err := engine.ListSessions(ctx)
	return locks.NewReport(engine.Name(), sessions), StartError(path, err)
}

// CopySuffix follows the name of the file in the name of the copy that Shrink makes. A server deletes a copy that a crash has left.
const CopySuffix = sqlite.CopySuffix

// FindShorterIDs returns how many bytes the ids of each kind take, and how many after Shrink. It reads all ids.
func FindShorterIDs(ctx context.Context, d *DB) (all []names.Form, err error) {
	err = d.pool.Read(ctx, func(c db.Conn) error { all, err = names.FindForms(c); return err })
	return all, db.WrapError(false, err, "read the ids in %s", d.pool.Engine.Name())
}

// Schema is the number of the newest step of the schema that this program knows.
const Schema = migrations.Newest

// The queries for problems return whether the problem is a fault, what it is, and what mends it. Our transactions set their own
// idle_in_transaction_session_timeout.
const (
	postgresProblems = `SELECT CAST(1 AS BIGINT), 'it is a replica, which takes no writes', 'the address of the primary in store.dsn'
		WHERE pg_is_in_recovery()
		UNION ALL SELECT 1, 'its transactions are read only', 'ALTER ROLE … SET default_transaction_read_only = off'
		WHERE NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'on'
		UNION ALL SELECT 0, 'it ends statements after ' || current_setting('statement_timeout') || ', and building an index may take longer',
		'ALTER ROLE … SET statement_timeout = 0' FROM pg_settings
		WHERE name = 'statement_timeout' AND CAST(setting AS BIGINT) BETWEEN 1 AND 599999
		UNION ALL SELECT 0, 'fsync is off, so a crash of its machine can damage the database', 'fsync = on in postgresql.conf'
		WHERE current_setting('fsync') = 'off'
		UNION ALL SELECT 0, 'fewer than 16 more connections fit', 'a larger max_connections in postgresql.conf, or PgBouncer'
		WHERE CAST(current_setting('max_connections') AS BIGINT) - 16 < (SELECT count(*) FROM pg_stat_activity)`
	sqliteProblems = `SELECT 0, 'its journal mode is ' || journal_mode || ', so reads wait for writes', 'a restart of the server'
		FROM pragma_journal_mode WHERE journal_mode <> 'wal' AND (SELECT count(*) FROM sqlite_schema) > 0
		UNION ALL SELECT 1, 'it is a database of another program', 'another folder in the setting data'
		FROM pragma_application_id WHERE application_id <> 0x556e7374 AND (SELECT count(*) FROM sqlite_schema) > 0`
	postgresAbout = "SELECT 'PostgreSQL ' || current_setting('server_version'), CAST(1000 * extract(epoch FROM clock_timestamp()) AS BIGINT)"
)

// CheckSettings opens the database that a path names, as in Options, and changes nothing. It calls report for each of its settings that
// keep the store from working well. at is the time of a database on another machine.
func CheckSettings(ctx context.Context, path string, report func(isFault bool, text, mend string)) (about string, at time.Time,
	err error) {
	about = "SQLite"
	problems := sqliteProblems
	var engine db.Engine
	if IsPostgreSQL(path) {
		problems = postgresProblems
		engine, err = postgres.NewEngine(path)
	} else if path, err = filepath.Abs(path); err == nil {
		engine = sqlite.NewEngine(path, 0, 0)
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", at, err
	}
	c, err := engine.Dial(ctx, false)
	if err != nil {
		return "", at, StartError(path, err)
	}
	defer c.Close()
	if engine.IsDistant() {
		err = c.QueryOnce(postgresAbout, nil, func(r []driver.Value) error {
			about, at = r[0].(string), time.UnixMilli(r[1].(int64))
			return nil
		})
	}
	if err == nil {
		err = c.QueryOnce(problems, nil, func(r []driver.Value) error {
			report(r[0].(int64) == 1, r[1].(string), r[2].(string))
			return nil
		})
	}
	if p, ok := engine.(*postgres.Engine); ok && err == nil {
		var pooled bool
		if pooled, err = p.IsPooled(c); pooled {
			report(false, "a pooler is before it, which may forget prepared statements from one transaction to the next",
				"default_query_exec_mode=exec in the URL of store.dsn")
		}
	}
	tables, terr := engine.ListTables(c)
	if err = errors.Join(err, terr); err == nil && slices.Contains(tables, "goose_db_version") {
		_, err = migrations.IsComplete(c)
	}
	return about, at, StartError(path, err)
}

// Copy writes a copy of an SQLite file to a new file. Readers and writers go on, and erasures wait.
func Copy(ctx context.Context, d *DB, path string) error {
	err := d.Eraser.Exclude(ctx, func() error { return d.pool.Engine.Copy(ctx, path) })
	return db.WrapError(false, err, "copy %s", d.pool.Engine.Name())
}

// Shrink stores ids in their shortest forms, and gives free space back to the disk. Readers go on, and writers wait. It returns the space
// before and after.
func (d *DB) Shrink(ctx context.Context) (before, after Space, err error) {
	if before, err = d.MeasureSpace(ctx); err != nil {
		return before, after, err
	}
	var long int64
	err = d.Eraser.Exclude(ctx, func() (err error) {
		if long, err = shortenIDs(ctx, d); err != nil {
			return err
		}
		return d.pool.Engine.Shrink(ctx, d.pool)
	})
	if err != nil {
		return before, after, db.WrapError(true, err, "shrink %s", d.pool.Engine.Name())
	}
	after, err = d.MeasureSpace(ctx)
	after.LongIDs = long
	return before, after, err
}

// shortenIDs stores ids in their shortest forms, in one transaction. No reader may see the former tables together with the new forms. So
// the readers of this process wait for the commit, and nothing is changed if another process uses the database too. Then long is how many
// bytes would be saved.
func shortenIDs(ctx context.Context, d *DB) (long int64, err error) {
	err = d.pool.Release(ctx, func(c db.Conn) (bool, error) {
		reopen := func() {}
		defer func() { reopen() }()
		return c.RunTransaction(ctx, func() error {
			long = 0
			forms, err := names.FindForms(c)
			for _, one := range forms {
				long += one.Saves
			}
			if err != nil || long == 0 {
				return err
			}
			if running, err := nodes.CountRunning(c); err != nil || running > 1 {
				return err
			}
			long = 0
			if err = names.Rewrite(c, forms); err == nil {
				reopen, err = d.pool.CloseReaders(ctx)
			}
			if err == nil {
				err = names.Replace(c)
			}
			if err == nil {
				err = d.catalog.LoadAfterCommit(c)
			}
			return err
		})
	})
	return long, err
}
