// The pool over a real file: turns, broken connections, ends and errors.

package db_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/db"
	"understudy/internal/store/sqlite"
)

var selectOne = &db.Statement{Head: "SELECT 1", Reads: db.Index}

// newPool returns a pool of one reader over an empty file, the connection to start it with, and the number of writes it has
// ended.
func newPool(t *testing.T) (p *db.Pool, writer db.Conn, writes *int) {
	t.Helper()
	writes = new(int)
	p = db.NewPool(sqlite.NewEngine(filepath.Join(t.TempDir(), "a.db"), 0, 1<<20), 1, time.Now, func() { *writes++ })
	writer, err := p.Engine.Dial(t.Context(), true)
	checktest.MustNoError(t, err, "dial")
	checktest.MustNoError(t, p.Engine.Prepare(t.Context(), writer), "prepare")
	t.Cleanup(func() { checktest.NoError(t, p.Close(), "close") })
	return p, writer, writes
}

// startPool returns a pool that is started, and the number of writes it has ended.
func startPool(t *testing.T) (p *db.Pool, writes *int) {
	t.Helper()
	p, writer, writes := newPool(t)
	checktest.MustNoError(t, p.Start(t.Context(), writer, func() error { return nil }), "start")
	return p, writes
}

func TestBrokenConnectionsAreReplaced(t *testing.T) {
	p, writes := startPool(t)
	var last db.Conn
	for _, broken := range []bool{false, true, false} {
		var c db.Conn
		err := p.Write(t.Context(), func(conn db.Conn) (bool, error) { c = conn; return broken, nil })
		checktest.MustNoError(t, err, "write")
		last = c
	}
	checktest.Equal(t, *writes, 3, "writes that have ended")
	err := p.Write(t.Context(), func(c db.Conn) (bool, error) {
		checktest.True(t, c == last, "a connection in order was replaced")
		return false, c.Execute(selectOne, 0)
	})
	checktest.NoError(t, err, "write on the new connection")
	for _, broken := range []bool{true, false} {
		checktest.NoError(t, p.UseReader(t.Context(), func(db.Conn) (bool, error) { return broken, nil }), "read")
	}
}

func TestPanicOfAWriteIsDamage(t *testing.T) {
	p, _ := startPool(t)
	err := p.Write(t.Context(), func(db.Conn) (bool, error) { return len([]byte(nil)[1:]) > 0, nil })
	checktest.True(t, db.IsDamaged(err), "the error is %v", err)
	checktest.True(t, p.IsDamaged(), "the pool has not noted the damage")
	checktest.NoError(t, p.Change(t.Context(), func(c db.Conn) error { return c.Execute(selectOne, 0) }), "the next write")
}

// TestPanicOfALoadIsDamage: a stored value of another type ends the start with an error, not the process.
func TestPanicOfALoadIsDamage(t *testing.T) {
	p, writer, _ := newPool(t)
	err := p.Start(t.Context(), writer, func() error {
		var one driver.Value
		_, err := db.QueryRow(writer, selectOne, nil, func(r []driver.Value) { one = r[0] })
		return errors.Join(err, errors.New(one.(string)))
	})
	checktest.True(t, db.IsDamaged(err), "the error is %v", err)
}

func TestReadsAreCountedByPart(t *testing.T) {
	p, _ := startPool(t)
	err := p.Read(t.Context(), func(c db.Conn) error {
		for range 3 {
			if err := c.Query(selectOne, 0, nil, func([]driver.Value) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	checktest.NoError(t, err, "read")
	checktest.Equal(t, p.Reads(), db.Reads{db.Index: 3}, "reads")
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	p, _ := startPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := p.Write(t.Context(), func(db.Conn) (bool, error) {
		cancel()
		return false, p.Write(ctx, func(db.Conn) (bool, error) { t.Error("two writers at once"); return false, nil })
	})
	checktest.True(t, errors.Is(err, context.Canceled), "the second writer ends with %v", err)
	err = p.Read(ctx, func(db.Conn) error { return nil })
	checktest.True(t, errors.Is(err, context.Canceled), "a read with a context that is over ends with %v", err)
}

func TestRefusedCallsSayThatItIsClosed(t *testing.T) {
	p, _ := startPool(t)
	err := p.Read(t.Context(), func(db.Conn) error {
		checktest.True(t, !p.RefuseCalls(), "calls were refused before")
		return p.Read(t.Context(), func(db.Conn) error { t.Error("a call after it runs"); return nil })
	})
	checktest.True(t, errors.Is(err, understudy.ErrClosed), "a call after it: %v", err)
	p.WaitForCalls()
	checktest.True(t, p.RefuseCalls(), "it forgot that calls are refused")
}

func TestErrorsKeepTheirCauseAndClass(t *testing.T) {
	cause := errors.New("bad bytes")
	err := db.WrapError(true, db.NewDamageError("block 7: %w", cause), "save page %s", "x")
	checktest.Equal(t, db.ClassOf(err), db.Damaged, "class")
	for _, target := range []error{cause, understudy.ErrNotStored, understudy.ErrDamaged} {
		checktest.True(t, errors.Is(err, target), "%v is not %v", err, target)
	}
	checktest.Equal(t, db.ClassOf(fmt.Errorf("other: %w", cause)), db.NoClass, "class of an error of ours")
	checktest.True(t, db.WrapError(true, nil, "save") == nil, "no error became one")
}

// TestNumbersThatGoBackMeanAnotherDatabase: if the database lacks changes that are in memory, no transaction runs any more.
func TestNumbersThatGoBackMeanAnotherDatabase(t *testing.T) {
	p, _ := startPool(t)
	back := &db.Statement{Head: "UPDATE counter SET position = position - 1"}
	other, err := p.Engine.Dial(t.Context(), true)
	checktest.MustNoError(t, err, "dial")
	_, err = other.RunTransaction(t.Context(), func() error { return other.Execute(back, 0) })
	checktest.MustNoError(t, errors.Join(err, other.Close()), "the transaction of another process")
	err = p.Change(t.Context(), func(c db.Conn) error { return c.Execute(selectOne, 0) })
	checktest.True(t, errors.Is(err, understudy.ErrReplaced), "the next transaction returns %v", err)
	checktest.Equal(t, db.ClassOf(err), db.Away, "the class of the error")
}

func TestTheFunctionThatWritesForLongIsNamed(t *testing.T) {
	now := time.Unix(1, 0)
	p := db.NewPool(sqlite.NewEngine(filepath.Join(t.TempDir(), "a.db"), 0, 1<<20), 1, time.Now, func() {})
	p.SetWall(func() time.Time { return now })
	writer, err := p.Engine.Dial(t.Context(), true)
	checktest.MustNoError(t, err, "dial")
	checktest.MustNoError(t, p.Engine.Prepare(t.Context(), writer), "prepare")
	checktest.MustNoError(t, p.Start(t.Context(), writer, func() error { return nil }), "start")
	defer p.Close()
	err = p.Change(t.Context(), func(db.Conn) error {
		checktest.True(t, p.ReadWriting() == nil, "a write that has just begun is named")
		now = now.Add(time.Second)
		w := p.ReadWriting()
		checktest.True(t, w != nil, "a write of a second is not named")
		checktest.Equal(t, w.What, "store/db_test.TestTheFunctionThatWritesForLongIsNamed", "the function that writes")
		checktest.Equal(t, w.Since, time.Unix(1, 0), "the beginning of the write")
		return nil
	})
	checktest.NoError(t, err, "write")
	checktest.True(t, p.ReadWriting() == nil, "a write that has ended is named")
}
