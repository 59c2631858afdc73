// Package migrations has the schema of the store, one numbered file for each step and engine.
//
// While nodes are upgraded one after the other, older and newer programs use one database. So a step is of one of three sorts:
//   - A file with the line "-- +expand" adds what older programs need not know: tables, and columns that may be null or have a
//     default. If a column replaces another one, a trigger writes both, also for the older programs.
//   - A file with the line "-- +repeat" is one statement that changes up to 1,000 rows. It is run until no row is left.
//   - Any other file removes what only older programs use. It waits until no process lives that does not know it.
package migrations

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"

	"understudy/internal/store/db"
)

// Newest is the last step, and lastUnsorted the last one before the three sorts. Both engines have the same steps.
const (
	Newest       = 15
	lastUnsorted = 9
	SQLite       = "sqlite" // the folders of the engines
	PostgreSQL   = "postgres"
)

// What is run before each step, and before one that removes something. Other statements wait behind a step that waits for a
// lock. So a step waits only shortly, and the engine tries again.
var (
	beforeAll    = map[string]string{PostgreSQL: "SET LOCAL lock_timeout = '30ms';\n"}
	beforeRemove = map[string]string{PostgreSQL: "SELECT require_step(%d);\n", SQLite: "UPDATE counter SET needs = %d;\n"}
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Read returns the migrations of a folder, and the last one without which this program cannot use the database. The database
// runs each file whole, in a transaction. Goose's own reader of SQL takes a buffer of 4 MiB for each line of a file.
func Read(folder string) (steps []*goose.Migration, required int64, err error) {
	names, err := files.ReadDir(folder)
	if err != nil {
		return nil, 0, fmt.Errorf("migrations: %w", err)
	}
	for _, name := range names {
		number, err := goose.NumericComponent(name.Name())
		if err != nil {
			return nil, 0, fmt.Errorf("migrations: %w", err)
		}
		text, err := files.ReadFile(folder + "/" + name.Name())
		if err != nil {
			return nil, 0, fmt.Errorf("migrations: %w", err)
		}
		script, repeats := string(text), strings.Contains(string(text), "\n-- +repeat\n")
		if number <= lastUnsorted || repeats || strings.Contains(script, "\n-- +expand\n") {
			required = number
		} else {
			script = fmt.Sprintf(beforeRemove[folder], number) + script
		}
		script = beforeAll[folder] + script
		run := &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, script)
			return err
		}}
		if repeats {
			run = &goose.GoFunc{RunDB: func(ctx context.Context, pool *sql.DB) error { return runRepeatedly(ctx, pool, script) }}
		}
		steps = append(steps, goose.NewGoMigration(number, run, nil))
	}
	return steps, required, nil
}

// runRepeatedly runs a script, each time in a transaction, until it changes no row.
func runRepeatedly(ctx context.Context, pool *sql.DB, script string) error {
	for {
		result, err := pool.ExecContext(ctx, script)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
	}
}

// IsComplete reports whether a database that has the table of goose has all migrations of this program. It returns an error
// if this program is too old for the database.
func IsComplete(c db.Conn) (is bool, err error) {
	read := func(text string) (n int64) {
		err = c.QueryOnce(text, nil, func(r []driver.Value) error {
			n = r[0].(int64)
			return nil
		})
		return n
	}
	has := read("SELECT coalesce(max(version_id), 0) FROM goose_db_version")
	if has > Newest {
		if needs := read("SELECT needs FROM counter"); err == nil {
			err = CheckNeeds(needs)
		}
	}
	return has >= Newest, err
}

// CheckNeeds returns an error if this program does not know the step that a program must know.
func CheckNeeds(step int64) error {
	if step <= Newest {
		return nil
	}
	return &db.Fault{Reason: fmt.Sprintf("the database was changed by a newer Understudy (a program must know step %d of its schema, "+
		"this one knows %d); it was left as it is, use the newer program or another database", step, Newest)}
}
