// Package names keeps the number of every id in three tables that ids move
// through, so that a page of new records writes few leaves of the database.
//
// Ids are random: fifty new ones in one large tree are fifty leaves. New ids go
// into a small table and move on in the order of the tree, as in a log-structured
// merge tree (O'Neil et al., 1996). Each id is in one of the tables; the view
// names reads all.
package names

import (
	"database/sql/driver"
	"fmt"
	"strings"

	"understudy/internal/store/sqlite"
)

const (
	// recentIDs is how many new ids are collected before they move on together.
	recentIDs = int64(1000)
	// middleIDs is how many ids name_middle keeps. Ids leave it in the order of
	// the tree, recentIDs at once, so that they share leaves of the largest table.
	middleIDs = 16 * recentIDs
)

var (
	insert          = &sqlite.Statement{Head: "INSERT INTO name_recent (kind, id, record) VALUES ", Tuple: "(?, ?, ?)"}
	moveRecent      = &sqlite.Statement{Head: "INSERT INTO name_middle SELECT * FROM name_recent ORDER BY kind, id"}
	deleteRecent    = &sqlite.Statement{Head: "DELETE FROM name_recent"}
	countMiddle     = &sqlite.Statement{Head: "SELECT count(*) FROM name_middle"}
	selectMiddleEnd = &sqlite.Statement{Head: "SELECT kind, id FROM name_middle WHERE (kind, id) > (?, ?) ORDER BY kind, id " +
		"LIMIT 1 OFFSET ?"}
	moveMiddle   = &sqlite.Statement{Head: "INSERT INTO name SELECT * FROM name_middle WHERE (kind, id) > (?, ?) AND (kind, id) <= (?, ?)"}
	deleteMiddle = &sqlite.Statement{Head: "DELETE FROM name_middle WHERE (kind, id) > (?, ?) AND (kind, id) <= (?, ?)"}
	selectRecord = &sqlite.Statement{Head: "SELECT record FROM names WHERE kind = ? AND id = ?"}

	updateErasedName = [...]*sqlite.Statement{
		{Head: "UPDATE name SET erased = ? WHERE kind = ? AND id = ? AND erased <> ? RETURNING 1"},
		{Head: "UPDATE name_middle SET erased = ? WHERE kind = ? AND id = ? AND erased <> ? RETURNING 1"},
		{Head: "UPDATE name_recent SET erased = ? WHERE kind = ? AND id = ? AND erased <> ? RETURNING 1"},
	}
)

// Table writes ids and moves them on. One transaction at a time uses it. The zero
// value is ready.
type Table struct {
	// The last id that left name_middle. It is kept in memory alone: after a start
	// or a rollback another part of the tree is next, which costs nothing.
	kind int64
	id   []byte
}

// Put writes new ids, three arguments each: kind, stored id and record. last is
// the highest record number given. Ids move on whenever it passes a multiple of
// recentIDs.
func (t *Table) Put(c *sqlite.Conn, args []driver.Value, last int64) error {
	if err := c.ExecMany(insert, 3, args); err != nil {
		return err
	}
	if first := last - int64(len(args)/3); first/recentIDs == last/recentIDs {
		return nil
	}
	for _, st := range []*sqlite.Statement{moveRecent, deleteRecent} {
		if err := c.Exec(st, 0); err != nil {
			return err
		}
	}
	return t.thin(c)
}

// thin moves ids out of name_middle while it has more than middleIDs.
func (t *Table) thin(c *sqlite.Conn) error {
	var count int64
	if _, err := c.One(countMiddle, nil, func(r []driver.Value) { count = r[0].(int64) }); err != nil {
		return err
	}
	for ; count > middleIDs; count -= recentIDs {
		if err := t.move(c); err != nil {
			return err
		}
	}
	return nil
}

// move moves the next ids from name_middle to name. At the end of the tree it
// begins again.
func (t *Table) move(c *sqlite.Conn) error {
	for range 2 {
		var kind int64
		var id []byte
		found, err := c.One(selectMiddleEnd, []driver.Value{t.kind, t.id, recentIDs - 1}, func(r []driver.Value) {
			kind, id = r[0].(int64), r[1].([]byte)
		})
		if err != nil {
			return err
		}
		if !found { // fewer are left before the end
			t.kind, t.id = 0, []byte{}
			continue
		}
		for _, st := range []*sqlite.Statement{moveMiddle, deleteMiddle} {
			if err := c.Exec(st, 0, t.kind, t.id, kind, id); err != nil {
				return err
			}
		}
		t.kind, t.id = kind, id
		return nil
	}
	return nil
}

// Record is the number of the record of that id, 0 when it was never
// seen. id is in its stored form.
func Record(c *sqlite.Conn, kind int64, id []byte) (number int64, err error) {
	_, err = c.One(selectRecord, []driver.Value{kind, id}, func(r []driver.Value) { number = r[0].(int64) })
	return number, err
}

// MarkErased sets the mark of an id and reports whether it had another one.
func MarkErased(c *sqlite.Conn, kind int64, id []byte, mark int64) (changed bool, err error) {
	for _, st := range updateErasedName {
		changed, err = c.One(st, []driver.Value{mark, kind, id, mark}, func([]driver.Value) {})
		if changed || err != nil {
			return changed, err
		}
	}
	return false, nil
}

// orNext returns the statement that finds the first id at or after one, and goes on with the
// first of all behind the last. It looks into each table twice, wherever the id is.
func orNext() *sqlite.Statement {
	const present = "EXISTS (SELECT 1 FROM held WHERE number BETWEEN n.record * 64 AND n.record * 64 + 63 AND state & ?3 = 0)"
	var parts []string
	for _, table := range []string{"name_recent", "name_middle", "name"} {
		for turn, from := range []string{"n.id >= ?2", "n.id < ?2"} {
			parts = append(parts, fmt.Sprintf("SELECT * FROM (SELECT %d AS turn, n.id, n.record FROM %s n WHERE n.kind = ?1 AND %s AND %s "+
				"ORDER BY n.id LIMIT 1)", turn, table, from, present))
		}
	}
	return &sqlite.Statement{Head: "SELECT record FROM (" + strings.Join(parts, " UNION ALL ") + ") ORDER BY turn, id LIMIT 1"}
}

var selectOrNext = orNext()

// RecordOrNext returns the number of the record whose id, as it is stored, is the given one, unless
// its state has one of the bits without. If there is none, it returns that of the next id
// instead: both take the same reads, and the record tells which it is. It returns 0 if the
// kind has no record.
func RecordOrNext(c *sqlite.Conn, kind int64, id []byte, without int64) (record int64, err error) {
	_, err = c.One(selectOrNext, []driver.Value{kind, id, without}, func(r []driver.Value) { record = r[0].(int64) })
	return record, err
}
