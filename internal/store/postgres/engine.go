// This file is the engine: one database, its connections and its schema.

// Package postgres is the engine for a PostgreSQL database. It opens connections and words PostgreSQL's errors so that a
// person can act on them.
package postgres

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"understudy/internal/store/db"
	"understudy/internal/store/migrations"
	"understudy/kit/retry"
)

const (
	// connectWait is how long a new connection may take, unless the DSN says otherwise.
	connectWait = 5 * time.Second
	// cancelWait is how long the server may take to cancel a statement before the connection is closed.
	cancelWait = 2 * time.Second
	// migrateRetry is how long a process waits before it looks again whether another one has migrated the database.
	migrateRetry = 200 * time.Millisecond
)

// Engine is one PostgreSQL database. It implements db.Engine.
type Engine struct {
	config *pgx.ConnConfig
	// prepare is true if the server keeps prepared statements from one transaction to the next. PgBouncer before 1.21 does
	// not keep them in transaction mode.
	prepare bool
}

// NewEngine returns the engine of the database that a DSN names. The DSN is a URL, or key words as in libpq. NewEngine
// reads pgx's setting default_query_exec_mode: any value except cache_statement means that no statement stays prepared, as
// PgBouncer's transaction mode requires.
func NewEngine(dsn string) (*Engine, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: the DSN is not one of PostgreSQL: %w", err) // pgx leaves the password out
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectWait)
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "understudy")
	e := &Engine{config: config, prepare: config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement}
	if e.prepare {
		// PgBouncer before 1.21 exits if a client sends a cancel request and does not wait for the answer. This handler does so when the
		// statement has ended meanwhile. Without the handler pgx closes the connection of the statement, and waits (see Conn.Close).
		config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelWait}
		}
	}
	return e, nil
}

// IsPooled reports whether a pooler such as PgBouncer is before the server, although the engine prepares statements.
func (e *Engine) IsPooled(c db.Conn) (is bool, err error) {
	err = c.QueryOnce("SELECT CAST(pg_backend_pid() AS BIGINT)", nil, func(r []driver.Value) error {
		is = e.prepare && r[0].(int64) != int64(c.(*Conn).raw.PID()) // a pooler makes up the number of the session
		return nil
	})
	return is, err
}

// Name implements db.Engine. It contains no password.
func (e *Engine) Name() string {
	return fmt.Sprintf("PostgreSQL database %s at %s", e.config.Database, e.config.Host)
}

// IsDistant implements db.Engine.
func (e *Engine) IsDistant() bool { return true }

// CanLockRows implements db.Engine.
func (e *Engine) CanLockRows() bool { return true }

// Dial implements db.Engine.
func (e *Engine) Dial(ctx context.Context, _ bool) (db.Conn, error) {
	c := &Conn{config: &e.config.Config, prepares: e.prepare, texts: map[variant]string{}, ahead: map[string]rows{}}
	if err := c.open(ctx); err != nil {
		return nil, wrapError(err)
	}
	return c, nil
}

// Prepare implements db.Engine. The table of goose contains the migrations that the database has.
func (e *Engine) Prepare(ctx context.Context, writer db.Conn) error {
	tables, err := e.ListTables(writer)
	if err != nil {
		return err
	}
	switch {
	case slices.Contains(tables, "goose_db_version") && slices.Contains(tables, "counter"):
		if is, err := migrations.IsComplete(writer); is || err != nil {
			return err
		}
	case slices.Contains(tables, "goose_lock"): // another process is migrating the database, or was interrupted
	case len(tables) > 0:
		return errors.New("this database has tables of another program; it was left as it is, use another database or another schema")
	}
	return wrapError(e.migrate(ctx))
}

// migrate runs the missing migrations, each in a transaction. Only one process at a time migrates. A migration that removes
// something is postponed while an older process lives.
func (e *Engine) migrate(ctx context.Context) error {
	steps, required, err := migrations.Read(migrations.PostgreSQL)
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(migrateRetry, uint64(maxWait/migrateRetry)))
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*e.config)
	defer pool.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, nil, goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()), goose.WithGoMigrations(steps...), goose.WithLocker(locker))
	if err != nil {
		return err
	}
	var refused *pgconn.PgError
	var at *goose.PartialError
	for tries := maxWait / migrateRetry; tries > 0; tries-- {
		_, err = provider.Up(ctx) // 55P03: a step did not get its lock
		if !errors.As(err, &refused) || refused.Code != "55P03" || retry.Wait(ctx, migrateRetry) != nil {
			break
		}
	}
	if !errors.As(err, &refused) || refused.Code != "US001" || !errors.As(err, &at) { // of require_step
		return err
	}
	err = errors.New(refused.Message)
	if at.Failed.Source.Version > required {
		err = &db.Error{Class: db.Postponed, Reason: refused.Message, Err: err}
	}
	return err
}

// Close implements db.Engine.
func (e *Engine) Close() error { return nil }

// Limit implements db.Engine. The server limits the space; the store does not.
func (e *Engine) Limit() int64 { return 0 }

// CountUsed implements db.Engine.
func (e *Engine) CountUsed(db.Conn) (int64, error) { return 0, nil }

// OpenReserve implements db.Engine.
func (e *Engine) OpenReserve(db.Conn, bool) error { return nil }

// EndWrite implements db.Engine.
func (e *Engine) EndWrite(writer db.Conn, err error) (explained error, broken bool) {
	return err, writer.(*Conn).raw.IsClosed()
}

// MeasureSpace implements db.Engine. The free space inside the tables is not known without reading the tables.
func (e *Engine) MeasureSpace(c db.Conn) (s db.Space, err error) {
	err = c.QueryOnce("SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c "+
		"WHERE c.relnamespace = CAST(current_schema() AS regnamespace) AND c.relkind = 'r'", nil, func(r []driver.Value) error {
		s.File = r[0].(int64)
		return nil
	})
	return s, err
}

// CheckFile implements db.Engine. PostgreSQL checks its pages itself when it reads them, if the cluster has checksums.
func (e *Engine) CheckFile(db.Conn, func(problem string)) error { return nil }

// ListTables implements db.Engine.
func (e *Engine) ListTables(c db.Conn) (names []string, err error) {
	err = c.QueryOnce("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename", nil,
		func(r []driver.Value) error {
			names = append(names, r[0].(string))
			return nil
		})
	return names, err
}

// Copy implements db.Engine. Only pg_dump copies such a database.
func (e *Engine) Copy(context.Context, string) error { return errors.ErrUnsupported }

// Shrink implements db.Engine. It makes the space of deleted rows available for new rows, and gives free pages at the end of
// tables back to the disk.
func (e *Engine) Shrink(ctx context.Context, p *db.Pool) error {
	_, err := e.Sanitize(ctx, p)
	return err
}

// Sanitize implements db.Engine. It makes the space of deleted rows available for new rows. The bytes of deleted rows stay
// until new rows overwrite them. In the log they stay until the log is reused, and they also stay in standbys and backups.
func (e *Engine) Sanitize(ctx context.Context, p *db.Pool) (overwritten int64, err error) {
	return 0, p.Write(ctx, func(c db.Conn) (bool, error) {
		tables, err := e.ListTables(c)
		if err != nil {
			return false, err
		}
		return false, c.QueryOnce("VACUUM "+strings.Join(tables, ", "), nil, func([]driver.Value) error { return nil })
	})
}
