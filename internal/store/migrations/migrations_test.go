// The schemas of both engines have the same tables and columns, and older programs are refused.

package migrations_test

import (
	"database/sql"
	"maps"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/migrations"
	"understudy/internal/store/nodes"
	"understudy/internal/store/storetest"
)

// The columns of all tables, but for the index of words and for what only one engine needs.
const (
	sqliteColumns = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' " +
		"AND t.name <> 'word' AND t.name NOT LIKE 'words%' AND t.name <> 'sqlite_sequence' AND t.name NOT LIKE 'goose%'"
	postgresColumns = "SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN pg_tables t ON " +
		"t.schemaname = c.table_schema AND t.tablename = c.table_name WHERE t.schemaname = current_schema() " +
		"AND t.tablename NOT IN ('words', 'last_number') AND t.tablename NOT LIKE 'goose%'"
)

// readColumns returns the columns of each table, sorted and joined.
func readColumns(t *testing.T, db *sql.DB, text string) map[string]string {
	t.Helper()
	rows, err := db.Query(text)
	checktest.MustNoError(t, err, "read the columns")
	all := map[string][]string{}
	for rows.Next() {
		var table, column string
		checktest.MustNoError(t, rows.Scan(&table, &column), "read a column")
		all[table] = append(all[table], column)
	}
	checktest.MustNoError(t, rows.Err(), "read the columns")
	joined := map[string]string{}
	for table, columns := range all {
		joined[table] = strings.Join(slices.Sorted(slices.Values(columns)), " ")
	}
	return joined
}

func TestBothEnginesHaveTheSameColumns(t *testing.T) {
	other, err := sql.Open("pgx", storetest.Database(t))
	checktest.MustNoError(t, err, "open")
	t.Cleanup(func() { _ = other.Close() })
	inPostgres := readColumns(t, other, postgresColumns)
	inSQLite := readColumns(t, storetest.SQL(t, storetest.File(t)), sqliteColumns)
	checktest.True(t, len(inSQLite) > 20, "there are only %d tables", len(inSQLite))
	tables := func(m map[string]string) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }
	checktest.Equal(t, tables(inPostgres), tables(inSQLite), "tables")
	for table, columns := range inSQLite {
		checktest.Equal(t, inPostgres[table], columns, "columns of %s", table)
	}
}

// TestStepWaitsForOlderProcess: a step that removes something is refused while a process lives that does not know it. Afterwards such
// programs are refused. Until then they start.
func TestStepWaitsForOlderProcess(t *testing.T) {
	dsn := storetest.Database(t)
	open := func() (*store.DB, error) {
		return store.Open(t.Context(), store.Options{Path: dsn, Specs: storetest.Specs(t)})
	}
	one, err := open()
	checktest.MustNoError(t, err, "open")
	t.Cleanup(func() { checktest.NoError(t, one.Close(), "close") })
	renew := func() error {
		_, err := one.Nodes.Renew(t.Context(), nodes.Node{ID: "one", Version: "1.0"})
		return err
	}
	checktest.MustNoError(t, renew(), "renew")
	other, err := sql.Open("pgx", dsn)
	checktest.MustNoError(t, err, "open the database")
	t.Cleanup(func() { _ = other.Close() })
	execute := func(text string, args ...any) error {
		_, err := other.Exec(text, args...)
		return err
	}
	const next, newer = migrations.Newest + 1, "newer Understudy"
	checktest.MustNoError(t, execute("INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)", next), "expand")
	err = execute("SELECT require_step($1)", next)
	const refusal = "the process one (version 1.0) is older and uses what step"
	checktest.True(t, err != nil && strings.Contains(err.Error(), refusal), "the step is refused with %v", err)
	two, err := open()
	checktest.MustNoError(t, err, "open when there is a step that older programs need not know")
	checktest.NoError(t, two.Close(), "close")
	checktest.MustNoError(t, renew(), "renew then")
	checktest.MustNoError(t, execute("UPDATE node SET alive = 0"), "end the lease")
	checktest.MustNoError(t, execute("SELECT require_step($1)", next), "remove when the older process has no lease")
	err = renew()
	checktest.True(t, err != nil && strings.Contains(err.Error(), newer), "the older process renews its lease: %v", err)
	_, err = open()
	checktest.True(t, err != nil && strings.Contains(err.Error(), newer), "an older program opens the database: %v", err)
}
