// Package move copies a store from one database to another, of any engine.
//
// The source is read in one writing transaction, so nobody writes to it meanwhile; readers go on. The target gets the rows
// of each table in the order of their key, a portion in each transaction. A later run compares the rows that the target has
// with those of the source, and copies the rest. If a row differs, the source has changed, and the copy begins anew. At the
// end each row of both is compared once more. Until then the target has a small value (mark).
package move

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"understudy/internal/store/db"
)

const (
	mark     = "move"  // the name of the small value that an unfinished copy has
	maxRows  = 512     // how many rows are copied in one transaction
	maxBytes = 1 << 20 // how many bytes of bodies are copied in one transaction
)

var (
	// lock also removes PostgreSQL's limit for a transaction that does nothing, because the indexes of the target take long.
	lock = &db.Statement{Head: "SELECT record FROM counter",
		Standard: "SELECT record, set_config('idle_in_transaction_session_timeout', '0', true) FROM counter"}
	selectMark = &db.Statement{Head: "SELECT value FROM kv WHERE name = '" + mark + "'"}
	putMark    = &db.Statement{Head: "INSERT INTO kv (name, value) VALUES ('" + mark + "', ?) ON CONFLICT DO NOTHING"}
	deleteMark = &db.Statement{Head: "DELETE FROM kv WHERE name = '" + mark + "'"}
	setUnbuilt = &db.Statement{Head: "UPDATE built SET words = 0, terms = 0"}
)

// CheckComplete returns an error if the database is an unfinished copy of another one.
func CheckComplete(c db.Conn) error {
	found, err := db.QueryRow(c, selectMark, nil, func([]driver.Value) {})
	if found {
		return errors.New("this database is the unfinished copy of another one; run understudy store move again, or use another database")
	}
	return err
}

// Options are what Copy needs.
type Options struct {
	Source, Target db.Engine
	// Report is called with the number of rows that were copied or compared, and that of all rows to copy and compare.
	Report func(done, total int64)
	// Notify is called with a sentence for the user if an earlier copy is not continued.
	Notify func(sentence string)
	// Finish is called when all rows are equal, while nobody can write to the source. After it the target is complete.
	Finish func(source db.Conn) error
}

// moving is one run of Copy.
type moving struct {
	o           Options
	ctx         context.Context
	from, to    db.Conn
	done, total int64
}

// Copy copies the source to the target, which is empty or has the beginning of such a copy.
func Copy(ctx context.Context, o Options) error {
	from, err := o.Source.Dial(ctx, true)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := o.Target.Dial(ctx, true)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := errors.Join(o.Source.Prepare(ctx, from), o.Target.Prepare(ctx, to)); err != nil {
		return err
	}
	// A transaction reads this row first. PostgreSQL locks the row, so other writers wait.
	from.SetHooks(db.Hooks{Read: lock, Begin: func(context.Context, db.Conn, []driver.Value) error { return nil }})
	m := &moving{o: o, ctx: ctx, from: from, to: to}
	_, err = from.RunTransaction(ctx, m.run)
	return err
}

// run copies and compares all tables, and finishes the target.
func (m *moving) run() error {
	err := CheckComplete(m.from)
	if err == nil {
		err = m.begin()
	}
	if err == nil {
		err = visitTables(m.copy)
	}
	if errors.As(err, new(unequalError)) {
		m.o.Notify("The source has changed since the copy was interrupted. The copy starts again from the beginning.")
		m.done = 0
		if err = m.clearTarget(); err == nil {
			err = visitTables(m.copy)
		}
	}
	if err == nil {
		err = m.copyNumbers()
	}
	if err == nil {
		err = visitTables(func(t *table) error {
			return m.compare(t, func(row []driver.Value) error { return t.newUnequalError(row) })
		})
	}
	if err == nil {
		err = m.o.Finish(m.from)
	}
	if err == nil {
		err = m.change(func() error { return m.to.Execute(deleteMark, 0) })
	}
	return err
}

func visitTables(work func(t *table) error) error {
	for _, t := range tables {
		if err := work(t); err != nil {
			return err
		}
	}
	return nil
}

// change runs work in a transaction of the target that survives a crash of the machine.
func (m *moving) change(work func() error) error {
	_, err := m.to.RunDurably(func() (bool, error) { return m.to.RunTransaction(m.ctx, work) })
	return err
}

// begin counts the rows of the source. It returns an error if the target is neither empty nor an unfinished copy.
func (m *moving) begin() error {
	found, err := db.QueryRow(m.to, selectMark, nil, func([]driver.Value) {})
	if err != nil {
		return err
	}
	err = visitTables(func(t *table) error {
		_, err := db.QueryRow(m.from, t.count, nil, func(r []driver.Value) { m.total += 2 * r[0].(int64) })
		if err != nil || found || t.name == "counter" || t.name == "made" {
			return err
		}
		rows := int64(0)
		if _, err := db.QueryRow(m.to, t.count, nil, func(r []driver.Value) { rows = r[0].(int64) }); err != nil || rows == 0 {
			return err
		}
		return fmt.Errorf("the target is not empty: table %s has %d rows; name an empty database", t.name, rows)
	})
	if err != nil || found {
		return err
	}
	return m.clearTarget()
}

// clearTarget marks the target as unfinished and deletes its rows.
func (m *moving) clearTarget() error {
	return m.change(func() error {
		err := errors.Join(m.to.Execute(putMark, 0, []byte{}), m.to.Execute(setUnbuilt, 0))
		for _, t := range slices.Backward(tables) {
			err = errors.Join(err, m.to.Execute(t.clear, 0))
		}
		return err
	})
}

// copy copies the rows of a table that the target does not have yet.
func (m *moving) copy(t *table) error {
	var args []driver.Value
	size := 0
	flush := func() error {
		_, err := m.to.RunTransaction(m.ctx, func() error { return db.ExecuteMany(m.to, t.insert, len(t.columns), args) })
		args, size = args[:0], 0
		return err
	}
	err := m.compare(t, func(row []driver.Value) error {
		for _, v := range row {
			if b, ok := v.([]byte); ok {
				size += len(b)
				v = append([]byte{}, b...) // not nil, which would be NULL
			}
			args = append(args, v)
		}
		if len(args) < maxRows*len(t.columns) && size < maxBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// compare reads a table of both databases side by side. It returns an unequalError if a row differs. After the last row of
// the target it calls more with each further row of the source.
func (m *moving) compare(t *table, more func(row []driver.Value) error) error {
	next, stop := iter.Pull2(m.readRows(m.to, t))
	defer stop()
	for row, err := range m.readRows(m.from, t) {
		if err != nil {
			return err
		}
		other, err, ok := next()
		if err == nil && !ok {
			err = more(row)
		} else if err == nil && !bytes.Equal(appendRow(nil, row), appendRow(nil, other)) {
			err = t.newUnequalError(row)
		}
		if err != nil {
			return err
		}
		m.done++
		m.o.Report(m.done, m.total)
	}
	row, err, ok := next()
	if ok && err == nil {
		err = t.newUnequalError(row)
	}
	return err
}

// unequalError names a row.
type unequalError string

func (t *table) newUnequalError(row []driver.Value) error {
	keys := make([]string, len(t.key))
	for i, column := range t.key {
		keys[i] = fmt.Sprintf("%s %v", column, row[i])
		if data, ok := row[i].([]byte); ok {
			keys[i] = fmt.Sprintf("%s %x", column, data)
		}
	}
	return unequalError(fmt.Sprintf("table %s: the row with %s", t.name, strings.Join(keys, ", ")))
}

// Error returns a sentence.
func (e unequalError) Error() string {
	return string(e) + " is not the same in both databases; run the command again, it starts from the beginning"
}

var errStop = errors.New("no more rows are read")

// readRows returns the rows of a table in the order of its key. Engines may order texts differently, so small tables, which have
// texts as keys, are sorted here.
func (m *moving) readRows(c db.Conn, t *table) iter.Seq2[[]driver.Value, error] {
	return func(yield func([]driver.Value, error) bool) {
		var kept [][]driver.Value
		read := func() error {
			return c.Query(t.scan, 0, nil, func(r []driver.Value) error {
				if t.small {
					kept = append(kept, slices.Clone(r))
				} else if !yield(r, nil) {
					return errStop
				}
				return nil
			})
		}
		var err error
		if c == m.to {
			_, err = c.RunReading(m.ctx, read) // the source has a transaction
		} else {
			err = read()
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
		slices.SortFunc(kept, func(a, b []driver.Value) int { return bytes.Compare(appendRow(nil, a), appendRow(nil, b)) })
		for _, r := range kept {
			if err != nil || !yield(r, nil) {
				return
			}
		}
	}
}

// copyNumbers makes the target number rows from where the source is. In SQLite's table, tables are ignored that do not
// continue from a number.
func (m *moving) copyNumbers() error {
	last := map[string]int64{}
	read := func(r []driver.Value) error {
		last[r[0].(string)] = max(last[r[0].(string)], r[1].(int64))
		return nil
	}
	from, err := findNumbers(m.o.Source, m.from)
	if err == nil {
		err = m.from.QueryOnce("SELECT * FROM "+from, nil, read)
	}
	to, terr := findNumbers(m.o.Target, m.to)
	if err = errors.Join(err, terr); err != nil {
		return err
	}
	return m.change(func() error {
		for _, name := range numbered {
			err := m.to.QueryOnce("SELECT '"+name+"', coalesce(max(number), 0) FROM "+name, nil, read)
			if err == nil {
				err = m.to.QueryOnce("DELETE FROM "+to+" WHERE name = ?", []driver.Value{name}, nil)
			}
			if err == nil {
				err = m.to.QueryOnce("INSERT INTO "+to+" VALUES (?, ?)", []driver.Value{name, last[name]}, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// findNumbers returns the table in which a database keeps the last number of each table.
func findNumbers(e db.Engine, c db.Conn) (string, error) {
	all, err := e.ListTables(c)
	if slices.Contains(all, "last_number") {
		return "last_number", err
	}
	return "sqlite_sequence", err
}

// appendRow appends the values of a row. Different rows of a table have different bytes.
func appendRow(b []byte, row []driver.Value) []byte {
	for _, v := range row {
		switch v := v.(type) {
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
		case string:
			b = append(binary.AppendUvarint(append(b, 't'), uint64(len(v))), v...)
		case []byte:
			b = append(binary.AppendUvarint(append(b, 'b'), uint64(len(v))), v...)
		default:
			b = append(b, '0')
		}
	}
	return b
}
