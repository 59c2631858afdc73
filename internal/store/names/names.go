// Package names stores the record number of every id. Ids move through three tables, so that saving a page of new
// records writes few leaf pages of the database.
//
// Ids are random, so fifty new ids in one large tree would change fifty leaf pages. New ids go into a small table. From
// there they move on in the order of the tree, as in a log-structured merge tree (O'Neil et al., 1996). Each id is in
// exactly one of the tables. The view names reads all three.
//
// In PostgreSQL new ids go into the largest table at once. There, moving leaves dead rows, which take more space and time than the leaf
// pages.
package names

import (
	"database/sql/driver"
	"fmt"
	"strings"

	"understudy/internal/store/db"
)

const (
	// recentIDs is the number of new ids that are collected before they move together to name_middle.
	recentIDs = int64(1000)
	// middleIDs is the number of ids that name_middle keeps. Ids leave it in the order of the tree, recentIDs at a time,
	// so that many of them go to the same leaf page of the largest table.
	middleIDs = 16 * recentIDs
)

var (
	insert = &db.Statement{Head: "INSERT INTO name_recent (kind, id, record) VALUES ", Tuple: "(?, ?, ?)",
		Standard: "INSERT INTO name (kind, id, record) VALUES {}"}
	moveRecent      = &db.Statement{Head: "INSERT INTO name_middle SELECT * FROM name_recent ORDER BY kind, id"}
	deleteRecent    = &db.Statement{Head: "DELETE FROM name_recent"}
	countMiddle     = &db.Statement{Head: "SELECT count(*) FROM name_middle"}
	selectMiddleEnd = &db.Statement{Head: "SELECT kind, id FROM name_middle WHERE (kind, id) > (?, ?) ORDER BY kind, id " +
		"LIMIT 1 OFFSET ?"}
	moveMiddle   = &db.Statement{Head: "INSERT INTO name SELECT * FROM name_middle WHERE (kind, id) > (?, ?) AND (kind, id) <= (?, ?)"}
	deleteMiddle = &db.Statement{Head: "DELETE FROM name_middle WHERE (kind, id) > (?, ?) AND (kind, id) <= (?, ?)"}
	selectRecord = &db.Statement{Head: "SELECT record FROM names WHERE kind = ? AND id = ?"}

	updateErasedName = [...]*db.Statement{
		{Head: "UPDATE name SET erased = ? WHERE kind = ? AND id = ? AND erased <> ? RETURNING 1"},
		{Head: "UPDATE name_middle SET erased = ? WHERE kind = ? AND id = ? AND erased <> ? RETURNING 1"},
		{Head: "UPDATE name_recent SET erased = ? WHERE kind = ? AND id = ? AND erased <> ? RETURNING 1"},
	}
)

// Table writes ids and moves them to the next table. Only one transaction at a time may use it. The zero value is
// ready.
type Table struct {
	// kind and id identify the last id that left name_middle. They are kept only in memory. After a start or a
	// rollback the move continues elsewhere in the tree, which costs nothing.
	kind int64
	id   []byte
}

// Put writes new ids. args has three values for each: kind, stored id and record number. last is the highest record
// number in use. Whenever last passes a multiple of recentIDs, Put moves ids to the next table.
func (t *Table) Put(c db.Conn, args []driver.Value, last int64) error {
	if err := db.ExecuteMany(c, insert, 3, args); err != nil {
		return err
	}
	if first := last - int64(len(args)/3); first/recentIDs == last/recentIDs {
		return nil
	}
	for _, st := range []*db.Statement{moveRecent, deleteRecent} {
		if err := c.Execute(st, 0); err != nil {
			return err
		}
	}
	return t.shrinkMiddle(c)
}

// shrinkMiddle moves ids out of name_middle while it has more than middleIDs.
func (t *Table) shrinkMiddle(c db.Conn) error {
	var count int64
	if _, err := db.QueryRow(c, countMiddle, nil, func(r []driver.Value) { count = r[0].(int64) }); err != nil {
		return err
	}
	for ; count > middleIDs; count -= recentIDs {
		if err := t.moveNext(c); err != nil {
			return err
		}
	}
	return nil
}

// moveNext moves the next ids from name_middle to name. At the end of the tree it starts again at the beginning.
func (t *Table) moveNext(c db.Conn) error {
	for range 2 {
		var kind int64
		var id []byte
		found, err := db.QueryRow(c, selectMiddleEnd, []driver.Value{t.kind, t.id, recentIDs - 1}, func(r []driver.Value) {
			kind, id = r[0].(int64), r[1].([]byte)
		})
		if err != nil {
			return err
		}
		if !found { // fewer than recentIDs ids are left before the end of the tree
			t.kind, t.id = 0, []byte{}
			continue
		}
		for _, st := range []*db.Statement{moveMiddle, deleteMiddle} {
			if err := c.Execute(st, 0, t.kind, t.id, kind, id); err != nil {
				return err
			}
		}
		t.kind, t.id = kind, id
		return nil
	}
	return nil
}

// ExpectRecord announces that the open transaction will find a record.
func ExpectRecord(c db.Conn, kind int64, id []byte) error { return c.Expect(selectRecord, 0, kind, id) }

// FindRecord returns the number of the record with a stored id, or 0 if the id was never seen.
func FindRecord(c db.Conn, kind int64, id []byte) (number int64, err error) {
	_, err = db.QueryRow(c, selectRecord, []driver.Value{kind, id}, func(r []driver.Value) { number = r[0].(int64) })
	return number, err
}

// The marks of erased ids.
const (
	Erased = 1
	Aged   = 2
)

// MarkErased sets the mark of an id and reports whether the id had another mark before.
func MarkErased(c db.Conn, kind int64, id []byte, mark int64) (changed bool, err error) {
	for _, st := range updateErasedName {
		changed, err = db.QueryRow(c, st, []driver.Value{mark, kind, id, mark}, func([]driver.Value) {})
		if changed || err != nil {
			return changed, err
		}
	}
	return false, nil
}

// newOrNextStatement returns the statement for FindRecordOrNext. It finds the first id at or after the given
// id, and starts again at the first id after the last. It looks into each table twice, wherever the id is.
func newOrNextStatement() *db.Statement {
	const present = "EXISTS (SELECT 1 FROM held WHERE number BETWEEN n.record * 64 AND n.record * 64 + 63 AND state & ?3 = 0)"
	var parts []string
	for _, table := range []string{"name_recent", "name_middle", "name"} {
		for turn, from := range []string{"n.id >= ?2", "n.id < ?2"} {
			parts = append(parts, fmt.Sprintf("SELECT * FROM (SELECT %d AS turn, n.id, n.record FROM %s n WHERE n.kind = ?1 AND %s AND %s "+
				"ORDER BY n.id LIMIT 1) %s%d", turn, table, from, present, table, turn))
		}
	}
	return &db.Statement{Head: "SELECT record FROM (" + strings.Join(parts, " UNION ALL ") + ") first ORDER BY turn, id LIMIT 1"}
}

var selectOrNext = newOrNextStatement()

// FindRecordOrNext returns the number of the record with a stored id, unless its state has one of the bits in without.
// If there is no such record, it returns the record with the next id, so the caller must compare the ids. Both cases
// take the same reads. It returns 0 if the kind has no record.
func FindRecordOrNext(c db.Conn, kind int64, id []byte, without int64) (record int64, err error) {
	_, err = db.QueryRow(c, selectOrNext, []driver.Value{kind, id, without}, func(r []driver.Value) { record = r[0].(int64) })
	return record, err
}
