package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// vacuumSize is the size in bytes from which a cleaned table is vacuumed. Otherwise its deleted rows would slow down the
	// inspection.
	vacuumSize = 512 << 10

	// maxPasses is how often a database is cleaned until nothing is left to clean. Triggers may write when rows are deleted.
	maxPasses = 3
)

// database is one database of a pool, or the template while Prepare fills it. It belongs to one goroutine at a time.
type database struct {
	server    *server
	template  *template
	name, dsn string
	conn      *pgx.Conn // the pool's connection; it stays open, because connecting takes longer than cleaning
}

// query passes the pool's connection to f. It connects again if the connection was lost, because a test may end all
// sessions of its database.
func (db *database) query(ctx context.Context, f func(conn *pgx.Conn) error) error {
	for isRetry := false; ; isRetry = true {
		if db.conn == nil || db.conn.IsClosed() {
			config, err := pgx.ParseConfig(db.dsn)
			if err != nil {
				return err
			}
			config.RuntimeParams["application_name"] = "pgtest"
			if db.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
				return err
			}
		}
		err := f(db.conn)
		if err == nil || isRetry || !db.conn.IsClosed() {
			return err
		}
	}
}

// close closes the pool's connection.
func (db *database) close(ctx context.Context) error {
	if db.conn == nil {
		return nil
	}
	return db.conn.Close(ctx)
}

// drop ends the sessions of the database and removes it.
func (db *database) drop(ctx context.Context) error {
	_ = db.close(ctx) // an error means that the connection was already lost
	return db.server.administer(ctx, fmt.Sprintf(`DROP DATABASE IF EXISTS %s WITH (FORCE)`, db.name))
}

// waitForSessions waits until no other session is open in the database, at most for the grace period. It returns a
// description of the sessions that are still open.
func (db *database) waitForSessions(ctx context.Context) (open []string, err error) {
	pause := time.Millisecond
	for deadline := time.Now().Add(grace); ; pause = min(2*pause, 50*time.Millisecond) {
		err = db.query(ctx, func(conn *pgx.Conn) error {
			if open, err = readSessions(ctx, conn); err != nil {
				return err
			}
			return conn.PgConn().SyncConn(ctx) // on a slow machine pgx may have started a goroutine, which would look like a leak
		})
		if err != nil || len(open) == 0 || time.Now().After(deadline) {
			return open, err
		}
		time.Sleep(pause)
	}
}

// readSessions describes the sessions in the database of conn, without conn.
func readSessions(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, err := conn.Query(ctx, `
		SELECT pid, coalesce(state, ''), coalesce(query, ''), coalesce(extract(epoch FROM now() - CASE state
			WHEN 'active' THEN query_start WHEN 'idle' THEN state_change ELSE coalesce(xact_start, backend_start) END), 0)::float8
		FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type IN ('client backend', 'walsender')
		ORDER BY backend_start`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var pid int
		var state, query string
		var age float64
		if err := row.Scan(&pid, &state, &query, &age); err != nil {
			return "", err
		}
		return describeSession(pid, state, strings.Join(strings.Fields(query), " "), age), nil
	})
}

// describeSession returns what a session does, and for how many seconds it has done so.
func describeSession(pid int, state, query string, age float64) string {
	switch {
	case state == "active":
		return fmt.Sprintf("session %d runs a query for %.1f s: %s", pid, age, query)
	case strings.HasPrefix(state, "idle in transaction"):
		return fmt.Sprintf("session %d has a transaction open for %.1f s; its last query: %s", pid, age, query)
	case query == "":
		return fmt.Sprintf("session %d is open and sent no query", pid)
	}
	return fmt.Sprintf("session %d is idle for %.1f s; its last query: %s", pid, age, query)
}

// difference is what one inspection found.
type difference struct {
	schema    bool
	tables    []int // indexes of tables in the template
	large     []int // indexes of the tables to vacuum
	sequences []int
}

// isNone reports whether the database equals the template.
func (d difference) isNone() bool { return !d.schema && len(d.tables) == 0 && len(d.sequences) == 0 }

// clean makes the database equal to the template again. If it returns an error, the database must be dropped.
func (db *database) clean(ctx context.Context) error {
	for range maxPasses {
		var found difference
		err := db.query(ctx, func(conn *pgx.Conn) (err error) {
			found, err = db.inspect(ctx, conn)
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("inspect it: %w", err)
		case found.schema:
			return errors.New("its schema was changed")
		case found.isNone():
			return nil
		}
		if err := db.reset(ctx, found); err != nil {
			return fmt.Errorf("clean it: %w", err)
		}
		if !db.template.hasTriggers {
			return nil
		}
	}
	return errors.New("it has new rows whenever rows are deleted")
}

// inspect returns how the database differs from the template.
func (db *database) inspect(ctx context.Context, conn *pgx.Conn) (found difference, err error) {
	rows, err := conn.Query(ctx, db.template.inspect)
	if err != nil {
		return found, err
	}
	var sort string
	var index int
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&sort, &index, &size}, func() error {
		switch sort {
		case changedSchema:
			found.schema = true
		case changedSequence:
			found.sequences = append(found.sequences, index)
		case changedTable:
			found.tables = append(found.tables, index)
			if size >= vacuumSize {
				found.large = append(found.large, index)
			}
		}
		return nil
	})
	return found, err
}

// reset deletes the rows of the changed tables, inserts the template's rows again, and resets the sequences.
func (db *database) reset(ctx context.Context, found difference) error {
	conn := db.conn.PgConn()
	// With deferred constraints the order of the tables does not matter. All constraints are checked at the end.
	script := []string{`BEGIN`, `SET CONSTRAINTS ALL DEFERRED`}
	for _, i := range found.tables {
		script = append(script, `DELETE FROM ONLY `+db.template.tables[i].name)
	}
	if _, err := conn.Exec(ctx, strings.Join(script, "; ")).ReadAll(); err != nil {
		return err
	}
	for _, i := range found.tables {
		if table := db.template.tables[i]; table.rows != nil {
			if _, err := conn.CopyFrom(ctx, bytes.NewReader(table.rows), `COPY `+table.name+` FROM STDIN`); err != nil {
				return err
			}
		}
	}
	script = script[:0]
	for _, i := range found.sequences {
		s := db.template.sequences[i]
		script = append(script, fmt.Sprintf(`SELECT setval(%s, %d, %t)`, quote(s.name), s.last, s.isCalled))
	}
	if _, err := conn.Exec(ctx, strings.Join(append(script, `COMMIT`), "; ")).ReadAll(); err != nil {
		return err
	}
	for _, i := range found.large {
		if _, err := conn.Exec(ctx, `VACUUM `+db.template.tables[i].name).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}
