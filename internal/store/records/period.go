// This file is about the rows of table held: the states of records, and the periods in which they looked the same.

package records

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"fmt"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

// Slots is the maximum number of shapes of a kind. The rows of a record have numbers from its own number times
// Slots. It is part of the file format.
const Slots = 64

// The bits of the column state of table held, which has one row for each record and shape.
const (
	Final     = 1 << iota // the record is in one of the spec's final states
	Invalid               // a write touched the record after it was last seen
	Gone                  // the upstream no longer has the record
	Forgotten             // the body was purged; the next observation stores it again
)

// BodyHash returns the first 8 bytes of a body's SHA-256. It identifies a body among the versions of one record
// in one shape.
func BodyHash(body []byte) int64 {
	sum := sha256.Sum256(body)
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

// FindShapeNumber returns the number of the shape in a slot of a kind.
func FindShapeNumber(c db.Conn, kind, slot int64) (number int64, err error) {
	found, err := db.QueryRow(c, selectShapeAt, []driver.Value{kind, slot}, func(r []driver.Value) { number = r[0].(int64) })
	if err == nil && !found {
		err = db.NewDamageError("kind %d has no shape in slot %d", kind, slot)
	}
	return number, err
}

var (
	// InsertCreation stores when the blocks from a number on were created.
	InsertCreation = &db.Statement{Head: "INSERT INTO made (block, at) VALUES (?, ?)"}
	selectShapeAt  = &db.Statement{Head: "SELECT number FROM shape WHERE kind = ? AND slot = ?"}
	selectMade     = &db.Statement{Head: "SELECT at FROM made WHERE block <= ? ORDER BY block DESC LIMIT 1"}
)

// ShortHash returns the 15 bits of a body's hash that the table past stores.
func ShortHash(hash int64) int64 { return hash & (1<<15 - 1) }

// NeverNewest is the value of the column since for a version that was never its record's newest, and for a period that the
// history must not show.
const NeverNewest = -1

// ReadCreation returns when a version was first saved, in Unix nanoseconds.
func ReadCreation(c db.Conn, version int64) (at int64, err error) {
	found, err := db.QueryRow(c, selectMade, []driver.Value{version / codec.PerBlock}, func(r []driver.Value) { at = r[0].(int64) })
	if err == nil && !found {
		err = newCreationError(version)
	}
	return at, err
}

func newCreationError(version int64) error {
	return db.NewDamageError("the time of version %d is missing", version)
}

// Period is a time in which a record looked the same in one shape, or was deleted (Version 0).
type Period struct {
	Held, Number, Version int64
	Since                 int64 // when the period began, in Unix nanoseconds
	Until                 int64 // when the period ended, in Unix nanoseconds, or 0 for the current period
	Seen, State           int64 // when the record was last seen, and its state bits; both only of the current period
}

var selectPast = &db.Statement{Head: fmt.Sprintf(`SELECT held, number, coalesce(version, number),
	coalesce(since, (SELECT at FROM made WHERE block <= coalesce(version, number) / %[1]d ORDER BY block DESC LIMIT 1)), 0, 0 FROM past
	WHERE held BETWEEN ?1 AND ?2 AND since IS DISTINCT FROM -1
	UNION ALL SELECT number, coalesce(stretch, version), CASE WHEN state & 4 <> 0 THEN 0 ELSE version END,
	coalesce(since, (SELECT at FROM made WHERE block <= version / %[1]d ORDER BY block DESC LIMIT 1)), seen, state FROM held
	WHERE number BETWEEN ?1 AND ?2 AND since IS DISTINCT FROM -1 ORDER BY 1, 2 DESC`, codec.PerBlock)}

// ExpectPeriods announces a call of ReadPeriods in the open transaction.
func ExpectPeriods(c db.Conn, first, last int64) error { return c.Expect(selectPast, 0, first, last) }

// ReadPeriods returns the periods of the held rows from first to last. They are sorted by row, newest period
// first. A period that began while the clock was ahead gets the start of the next period.
func ReadPeriods(c db.Conn, first, last int64) (all []Period, err error) {
	err = c.Query(selectPast, 0, []driver.Value{first, last}, func(r []driver.Value) error {
		one := Period{Held: r[0].(int64), Number: r[1].(int64), Version: r[2].(int64), Seen: r[4].(int64), State: r[5].(int64)}
		var ok bool
		if one.Since, ok = r[3].(int64); !ok {
			return newCreationError(one.Version)
		}
		if n := len(all); n > 0 && all[n-1].Held == one.Held {
			one.Until = all[n-1].Since
			one.Since = min(one.Since, one.Until)
		}
		all = append(all, one)
		return nil
	})
	return all, err
}
