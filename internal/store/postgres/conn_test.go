package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy/internal/checktest"
	"understudy/internal/store/db"
	"understudy/internal/store/pgtest"
)

// thingTables are databases with a table of things.
var thingTables = pgtest.Pool{Prepare: func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, `CREATE TABLE thing (number BIGINT PRIMARY KEY, text TEXT COLLATE "C", bytes BYTEA, small INTEGER)`)
	return errors.Join(err, c.Close(ctx))
}}

var (
	insertThing = &db.Statement{Head: "INSERT INTO thing (number, text) VALUES ", Tuple: "(?, ?)"}
	updateThing = &db.Statement{Head: "UPDATE thing SET text = ? WHERE number = ? RETURNING number"}
	selectText  = &db.Statement{Head: "SELECT text FROM thing WHERE number = ?"}
	selectOther = &db.Statement{Head: "SELECT number FROM thing WHERE text = ?"}
	selectAll   = &db.Statement{Head: "SELECT number FROM thing ORDER BY number", Whole: true}
	countThings = &db.Statement{Head: "SELECT count(*) FROM thing"}
	divide      = &db.Statement{Head: "SELECT 1 / CAST(? AS BIGINT)"}
	pause       = &db.Statement{Head: "SELECT 1 FROM pg_sleep(?)"}
)

// dialThings opens a connection to a new database with an empty table of things, and returns the DSN too.
func dialThings(t *testing.T) (*Conn, string) {
	t.Helper()
	dsn := thingTables.Database(t)
	return dial(t, dsn), dsn
}

// dial opens a connection that is closed when the test ends.
func dial(t *testing.T, dsn string) *Conn {
	t.Helper()
	e, err := NewEngine(dsn)
	checktest.MustNoError(t, err, "NewEngine")
	c, err := e.Dial(t.Context(), true)
	checktest.MustNoError(t, err, "Dial")
	t.Cleanup(func() { _ = c.Close() }) // an error says that the test has ended the connection
	return c.(*Conn)
}

// connectOutside opens a session of another program.
func connectOutside(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	checktest.MustNoError(t, err, "connect another program")
	t.Cleanup(func() { checktest.NoError(t, c.Close(context.Background()), "close the other program's session") })
	return c
}

// runOutside runs a statement in another program's session.
func runOutside(t *testing.T, c *pgx.Conn, text string, args ...any) {
	t.Helper()
	_, err := c.Exec(t.Context(), text, args...)
	checktest.MustNoError(t, err, "%s", text)
}

// transact runs work in a writing transaction, which must be committed.
func transact(t *testing.T, c *Conn, work func() error) {
	t.Helper()
	broken, err := c.RunTransaction(t.Context(), work)
	checktest.MustNoError(t, err, "the transaction")
	checktest.MustTrue(t, !broken, "the connection is broken after a commit")
}

// addThings inserts things with numbers from 0.
func addThings(t *testing.T, c *Conn, n int) {
	t.Helper()
	var args []driver.Value
	for i := range n {
		args = append(args, int64(i), "thing")
	}
	transact(t, c, func() error { return db.ExecuteMany(c, insertThing, 2, args) })
}

// readText returns the text of a thing.
func readText(t *testing.T, c *Conn, number int64) (text string) {
	t.Helper()
	found, err := db.QueryRow(c, selectText, []driver.Value{number}, func(r []driver.Value) { text = r[0].(string) })
	checktest.MustNoError(t, err, "read thing %d", number)
	checktest.MustTrue(t, found, "thing %d is missing", number)
	return text
}

// checkUsable fails the test unless a transaction can be run that finds n things.
func checkUsable(t *testing.T, c *Conn, n int64) {
	t.Helper()
	transact(t, c, func() error {
		_, err := db.QueryRow(c, countThings, nil, func(r []driver.Value) { checktest.Equal(t, r[0].(int64), n, "number of things") })
		return err
	})
}

func TestAQueryMayRunInsideAnother(t *testing.T) {
	t.Parallel()
	const things = 2*portion + 3
	c, _ := dialThings(t)
	addThings(t, c, things)
	var numbers []int64
	inner := 0
	transact(t, c, func() error {
		return c.Query(selectAll, 0, nil, func(r []driver.Value) error {
			number := r[0].(int64)
			numbers = append(numbers, number)
			if err := c.Execute(insertThing, 1, things+number, "new"); err != nil {
				return err
			}
			if number%100 > 0 {
				return nil
			}
			return c.Query(selectAll, 0, nil, func([]driver.Value) error {
				inner++
				return nil
			})
		})
	})
	checktest.Equal(t, len(numbers), things, "rows of the whole table")
	checktest.True(t, slices.IsSorted(numbers), "the rows are not in order")
	want := 0 // the inner queries see what was inserted before them
	for n := 0; n < things; n += 100 {
		want += things + n + 1
	}
	checktest.Equal(t, inner, want, "rows of the inner queries")
	checkUsable(t, c, 2*things)
}

func TestAQueryOfAWholeTableMayBeEndedEarly(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	addThings(t, c, 2*portion)
	enough := errors.New("enough")
	transact(t, c, func() error {
		for range 3 {
			err := c.Query(selectAll, 0, nil, func([]driver.Value) error { return enough })
			checktest.True(t, errors.Is(err, enough), "the query returns %v, not the callback's error", err)
		}
		return nil
	})
	checkUsable(t, c, 2*portion)
}

func TestExpectedRowsAreTakenOnce(t *testing.T) {
	t.Parallel()
	c, dsn := dialThings(t)
	addThings(t, c, 3)
	other := connectOutside(t, dsn)
	transact(t, c, func() error {
		for number := range int64(2) {
			if err := c.Expect(selectText, 0, number); err != nil {
				return err
			}
		}
		checktest.Equal(t, readText(t, c, 0), "thing", "text of the first expected query")
		runOutside(t, other, "UPDATE thing SET text = 'changed'")
		checktest.Equal(t, readText(t, c, 2), "changed", "text for arguments that were not expected")
		checktest.Equal(t, readText(t, c, 1), "thing", "text of the second expected query, which was read with the first")
		checktest.Equal(t, readText(t, c, 1), "changed", "text of the same query again")
		return nil
	})
	transact(t, c, func() error {
		if err := c.Expect(selectText, 0, int64(0)); err != nil {
			return err
		}
		return c.Execute(insertThing, 1, int64(3), "new") // the expected rows are never read
	})
	runOutside(t, other, "UPDATE thing SET text = 'again'")
	transact(t, c, func() error {
		checktest.Equal(t, readText(t, c, 0), "again", "text in the next transaction")
		return nil
	})
}

func TestExpectedRowsAreNotTakenForOtherArguments(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	transact(t, c, func() error { return c.Execute(insertThing, 2, int64(1), "1", int64(2), nil) })
	count := func(st *db.Statement, args ...driver.Value) (n int) {
		err := c.Query(st, 0, args, func([]driver.Value) error {
			n++
			return nil
		})
		checktest.MustNoError(t, err, "query")
		return n
	}
	transact(t, c, func() error {
		if err := c.Expect(selectOther, 0, "1"); err != nil {
			return err
		}
		checktest.Equal(t, count(selectOther, nil), 0, "rows for NULL")
		checktest.Equal(t, count(selectOther, ""), 0, "rows for an empty text")
		checktest.Equal(t, count(selectOther, "1 "), 0, "rows for a longer text")
		checktest.Equal(t, count(selectText, int64(3)), 0, "rows of another statement")
		checktest.Equal(t, count(selectOther, "1"), 1, "rows for the expected text")
		return nil
	})
}

func TestAnErrorOfAnExpectedQueryEndsTheTransaction(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	addThings(t, c, 1)
	for _, next := range []func() error{
		func() error { return c.Query(countThings, 0, nil, func([]driver.Value) error { return nil }) },
		func() error {
			return c.Query(divide, 0, []driver.Value{int64(0)}, func([]driver.Value) error { return nil })
		},
		func() error { return nil }, // then the commit reports it
	} {
		broken, err := c.RunTransaction(t.Context(), func() error {
			if err := c.Execute(insertThing, 1, int64(1), "new"); err != nil {
				return err
			}
			if err := c.Expect(divide, 0, int64(0)); err != nil {
				return err
			}
			return next()
		})
		checktest.True(t, err != nil, "an expected query that fails is not reported")
		checktest.Equal(t, db.ClassOf(err), db.Failed, "class of %v", err)
		checktest.True(t, !broken, "the connection is broken")
		checkUsable(t, c, 1)
	}
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	st := &db.Statement{Head: "INSERT INTO thing (number, text, bytes, small) VALUES (?, ?, ?, ?) RETURNING number, text, bytes, small"}
	for _, row := range [][]driver.Value{
		{int64(0), "", []byte{}, int64(0)},
		{int64(1), nil, nil, nil},
		{int64(math.MaxInt64), "a\x00b", []byte{0}, int64(math.MaxInt32)},
		{int64(math.MinInt64), "\xff\xfe\xc3", []byte("\xff\xfe"), int64(math.MinInt32)},
		{int64(math.MaxInt32) + 1, "before" + mark + "after", []byte(mark), int64(-1)},
		{int64(math.MinInt32) - 1, mark + "00" + mark, []byte("\\x00"), int64(1)},
		{int64(2), "naïve 東京 'quoted' \\ $1 ?", []byte("'"), int64(2)},
	} {
		var got []driver.Value
		transact(t, c, func() error {
			return c.Query(st, 0, row, func(r []driver.Value) error {
				got = slices.Clone(r)
				return nil
			})
		})
		checktest.MustEqual(t, len(got), len(row), "columns")
		for i := range row {
			checkValue(t, got[i], row[i])
		}
		if text, ok := row[1].(string); ok && text != "" {
			checktest.Equal(t, readText(t, c, row[0].(int64)), text, "text when read again")
			found, err := db.QueryRow(c, selectOther, []driver.Value{text}, func(r []driver.Value) { checkValue(t, r[0], row[0]) })
			checktest.NoError(t, err, "find %q", text)
			checktest.True(t, found, "%q is not found", text)
		}
	}
}

// checkValue fails the test unless a value has the type and content of want. A nil is no empty slice.
func checkValue(t *testing.T, got, want driver.Value) {
	t.Helper()
	g, isBytes := got.([]byte)
	w, areWanted := want.([]byte)
	if isBytes && areWanted {
		checktest.Equal(t, string(g), string(w), "bytes")
		checktest.True(t, g != nil, "empty bytes became nil")
		return
	}
	checktest.True(t, !isBytes && !areWanted && got == want, "%#v came back as %#v", want, got)
}

func TestSumsAreNumbers(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	sum := func(values ...int64) (total driver.Value, err error) {
		var terms []string
		var args []driver.Value
		for _, v := range values {
			terms, args = append(terms, "(CAST(? AS BIGINT))"), append(args, v)
		}
		err = c.QueryOnce("SELECT sum(n) FROM (VALUES "+strings.Join(terms, ", ")+") AS v (n)", args, func(r []driver.Value) error {
			total = r[0]
			return nil
		})
		return total, err
	}
	for _, values := range [][]int64{{0}, {7, -7}, {10_000, 90_000}, {1_000_000_000_000, 0}, {math.MaxInt64}, {math.MinInt64},
		{math.MaxInt64 - 1, 1}, {-12345678901234, 4}} {
		want := int64(0)
		for _, v := range values {
			want += v
		}
		got, err := sum(values...)
		checktest.NoError(t, err, "sum of %d", values)
		checkValue(t, got, want)
	}
	got, err := sum(math.MaxInt64, 1)
	checktest.True(t, err != nil, "a sum beyond 64 bits is %v", got)
}

func TestAFailedStatementUndoesTheTransaction(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	addThings(t, c, 1)
	var ends []bool
	c.SetHooks(db.Hooks{End: func(committed bool) { ends = append(ends, committed) }})
	stop := errors.New("stop")
	for name, work := range map[string]func() error{
		"the statement is the last": func() error { return c.Execute(insertThing, 1, int64(0), "again") },
		"a query follows": func() error {
			if err := c.Execute(insertThing, 1, int64(0), "again"); err != nil {
				return err
			}
			return c.Query(countThings, 0, nil, func([]driver.Value) error { return nil })
		},
		"the work goes on": func() error {
			_ = c.Query(divide, 0, []driver.Value{int64(0)}, func([]driver.Value) error { return nil })
			return c.Execute(insertThing, 1, int64(6), "after")
		},
		"the work ends it itself": func() error { return stop },
		"a value is read as another type": func() error {
			return c.Query(countThings, 0, nil, func(r []driver.Value) error { _ = r[0].(string); return nil })
		},
	} {
		ends = nil
		broken, err := c.RunTransaction(t.Context(), func() error {
			if err := c.Execute(insertThing, 1, int64(5), "before"); err != nil {
				return err
			}
			return work()
		})
		checktest.True(t, err != nil, "%s: no error", name)
		checktest.True(t, !broken, "%s: the connection is broken", name)
		checktest.True(t, slices.Equal(ends, []bool{false}), "%s: the hook of the end is called with %v", name, ends)
		checkUsable(t, c, 1)
	}
	_, err := c.RunTransaction(t.Context(), func() error { return c.Execute(insertThing, 1, int64(0), "again") })
	var conflict *db.Error
	checktest.MustTrue(t, errors.As(err, &conflict), "%v is no db.Error", err)
	checktest.Equal(t, conflict.Class, db.Conflict, "class")
	checktest.Equal(t, conflict.Constraint, "thing_pkey", "constraint")
}

func TestManyWaitingStatementsAreSentInOrder(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	transact(t, c, func() error {
		for i := range int64(2*maxQueued + 1) {
			if err := c.Execute(insertThing, 1, i, "thing"); err != nil {
				return err
			}
		}
		large := strings.Repeat("x", maxBytes)
		if err := c.Execute(insertThing, 1, int64(2*maxQueued+1), large); err != nil {
			return err
		}
		checktest.Equal(t, len(readText(t, c, 2*maxQueued+1)), maxBytes, "bytes of a large text")
		return nil
	})
	checkUsable(t, c, 2*maxQueued+2)
}

func TestACancelledContextEndsItsStatement(t *testing.T) {
	t.Parallel()
	c, _ := dialThings(t)
	addThings(t, c, 1)
	work := func() error {
		if err := c.Execute(insertThing, 1, int64(1), "new"); err != nil {
			return err
		}
		return c.Query(pause, 0, []driver.Value{int64(600)}, func([]driver.Value) error { return nil })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	broken, err := c.RunTransaction(ctx, work)
	checktest.True(t, errors.Is(err, context.DeadlineExceeded), "the error is %v", err)
	checktest.MustTrue(t, !broken, "the connection is broken, although the server cancelled the statement")
	checkUsable(t, c, 1)

	broken, err = c.RunTransaction(t.Context(), func() error { return c.LimitTime(t.Context(), 50*time.Millisecond, work) })
	var fault *db.Fault
	checktest.True(t, errors.As(err, &fault), "the error of a time limit is %v", err)
	checktest.MustTrue(t, !broken, "the connection is broken after a time limit")
	checkUsable(t, c, 1)
}

// TestPlansDoNotDependOnStatistics: the server compiles no statement, and reads no whole table if there is an index. pgtest's usual
// server does not compile statements either.
func TestPlansDoNotDependOnStatistics(t *testing.T) {
	t.Parallel()
	c := dial(t, pgtest.Server(t, "jit=on"))
	show := &db.Statement{Head: "SELECT current_setting('jit') || current_setting('enable_hashjoin')"}
	for _, run := range []func(context.Context, func() error) (bool, error){c.RunTransaction, c.RunReading} {
		_, err := run(t.Context(), func() error {
			_, err := db.QueryRow(c, show, nil, func(r []driver.Value) { checktest.Equal(t, r[0].(string), "offoff", "settings") })
			return err
		})
		checktest.NoError(t, err, "transaction")
	}
}
