package postgres

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/db"
)

// constraint is one constraint of the schema.
type constraint struct {
	name, table, sort string // the sort is that of pg_constraint: u for what is unique, f for a reference, c for a check
	columns           []string
}

// readConstraints lists the constraints and the unique indexes of the schema.
func readConstraints(t *testing.T, c db.Conn) (all []constraint) {
	t.Helper()
	const text = `
		SELECT i.relname AS name, t.relname, 'u' AS sort, x.indkey::int2[] AS keys, t.oid FROM pg_index x
			JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
			WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace
		UNION ALL SELECT c.conname, t.relname, c.contype::text, c.conkey, t.oid FROM pg_constraint c
			JOIN pg_class t ON t.oid = c.conrelid WHERE c.contype IN ('f', 'c') AND t.relnamespace = 'public'::regnamespace`
	err := c.QueryOnce("SELECT name::text, relname::text, sort::text, (SELECT string_agg(attname, ' ') FROM pg_attribute "+
		"WHERE attrelid = a.oid AND attnum = ANY (a.keys)) FROM ("+text+") a WHERE relname NOT LIKE 'goose%' ORDER BY 1", nil,
		func(r []driver.Value) error {
			all = append(all, constraint{r[0].(string), r[1].(string), r[2].(string), strings.Fields(r[3].(string))})
			return nil
		})
	checktest.MustNoError(t, err, "read the constraints")
	return all
}

// readColumns returns the types of the columns of each table.
func readColumns(t *testing.T, c db.Conn) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	err := c.QueryOnce("SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns "+
		"WHERE table_schema = 'public' AND is_generated = 'NEVER'", nil, func(r []driver.Value) error {
		table := r[0].(string)
		if all[table] == nil {
			all[table] = map[string]string{}
		}
		all[table][r[1].(string)] = r[2].(string)
		return nil
	})
	checktest.MustNoError(t, err, "read the columns")
	return all
}

// insertion returns a statement that inserts a row. number says what value a column has.
func insertion(table string, columns map[string]string, number func(column string) int) string {
	names := slices.Sorted(maps.Keys(columns))
	values := make([]string, len(names))
	for i, name := range names {
		switch n := number(name); {
		case table == "annotation" && name == "text":
			values[i] = "''" // an index has only rows without a text
		case columns[name] == "text":
			values[i] = fmt.Sprintf("'text %d'", n)
		case columns[name] == "bytea":
			values[i] = fmt.Sprintf("'bytes %d'", n)
		case columns[name] == "tsvector":
			values[i] = "''"
		default:
			values[i] = fmt.Sprint(n)
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(names, ", "), strings.Join(values, ", "))
}

func TestEachConstraintIsAConflictWithItsName(t *testing.T) {
	t.Parallel()
	c := dial(t, stores.Database(t))
	columns := readColumns(t, c)
	constraints := readConstraints(t, c)
	checktest.MustTrue(t, len(constraints) > 30, "the schema has only %d constraints", len(constraints))
	for _, one := range constraints {
		first := func(string) int { return 1 }
		var script []string
		for _, parent := range []string{"source", "kind", "shape"} { // rows refer to these
			if parent == one.table {
				break
			}
			script = append(script, insertion(parent, columns[parent], first))
		}
		switch one.sort {
		case "u":
			script = append(script, insertion(one.table, columns[one.table], first), insertion(one.table, columns[one.table], func(name string) int {
				if slices.Contains(one.columns, name) {
					return 1
				}
				return 2
			}))
		default:
			script = append(script, insertion(one.table, columns[one.table], func(name string) int {
				if slices.Contains(one.columns, name) {
					return 99
				}
				return 1
			}))
		}
		broken, err := c.RunTransaction(t.Context(), func() error {
			for i, text := range script {
				err := c.QueryOnce(text, nil, func([]driver.Value) error { return nil })
				if err != nil && i < len(script)-1 {
					t.Errorf("%s: %s: %v", one.name, text, err)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		checktest.MustTrue(t, !broken, "%s: the connection is broken", one.name)
		var e *db.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %q is not refused: %v", one.name, script, err)
			continue
		}
		checktest.Equal(t, e.Class, db.Conflict, "%s: class of %v", one.name, err)
		checktest.Equal(t, e.Constraint, one.name, "constraint of %v", err)
		checktest.Contains(t, fmt.Sprintf("%#v", e), fmt.Sprintf("Constraint:%q", one.name), "the error with its fields, as logs may have it")
		var answer *pgconn.PgError
		checktest.MustTrue(t, errors.As(err, &answer), "%v is no error of the driver", err)
		checktest.Equal(t, answer.TableName, one.table, "table of %#v", answer)
		told := db.WrapError(false, err, "set a value")
		checktest.Equal(t, understudy.Status(told), http.StatusConflict, "status of %v", told)
		for _, part := range []string{"INSERT", "VALUES", "$1", "text 1", "bytes"} {
			checktest.Lacks(t, told.Error(), part, "what a caller is told")
		}
	}
}

func TestEachClassHasItsStatus(t *testing.T) {
	for class, want := range map[db.Class]int{
		db.Conflict: http.StatusConflict,
		db.Aborted:  http.StatusServiceUnavailable,
		db.Away:     http.StatusServiceUnavailable, db.Locked: http.StatusServiceUnavailable, db.Full: http.StatusServiceUnavailable,
		db.Failed: http.StatusInternalServerError, db.Damaged: http.StatusInternalServerError,
	} {
		for _, saving := range []bool{true, false} {
			err := db.WrapError(saving, &db.Error{Class: class, Reason: "reason", Err: errors.New("cause")}, "save page x")
			checktest.Equal(t, understudy.Status(err), want, "status of class %d, saving %t", class, saving)
		}
	}
	err := db.WrapError(false, fmt.Errorf("x: %w", understudy.ErrNotFound), "read page x")
	checktest.Equal(t, understudy.Status(err), http.StatusNotFound, "status of what is not stored")
}
