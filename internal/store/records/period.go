// Rows of records: their states, and the times in which each looked the same.

package records

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"time"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

// Slots is how many shapes a kind may have: a record's rows have the numbers from
// slots times its own. It is part of the format.
const Slots = 64

// The bits of a held row's state.
const (
	Final     = 1 << iota // in one of the spec's final states
	Invalid               // a write touched it since
	Gone                  // upstream no longer has it
	Forgotten             // its body was purged; its next observation brings it back
)

// BodyHash names a body among the versions of one record in one shape: the
// first 8 bytes of its SHA-256.
func BodyHash(body []byte) int64 {
	sum := sha256.Sum256(body)
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

// ShapeNumber is the number of a kind's shape in a slot.
func ShapeNumber(c *sqlite.Conn, kind, slot int64) (number int64, err error) {
	found, err := c.One(selectShapeAt, []driver.Value{kind, slot}, func(r []driver.Value) { number = r[0].(int64) })
	if err == nil && !found {
		err = sqlite.Damaged("kind %d has no shape in slot %d", kind, slot)
	}
	return number, err
}

var (
	// InsertMade notes when the blocks from a number on are made.
	InsertMade    = &sqlite.Statement{Head: "INSERT INTO made (block, at) VALUES (?, ?)"}
	selectShapeAt = &sqlite.Statement{Head: "SELECT number FROM shape WHERE kind = ? AND slot = ?"}
	selectMade    = &sqlite.Statement{Head: "SELECT at FROM made WHERE block <= ? ORDER BY block DESC LIMIT 1"}
)

// ShortHash is what is kept of a body's hash in the past.
func ShortHash(hash int64) int64 { return hash & (1<<15 - 1) }

// Never is the since of a version that was never its record's newest, and of
// what is to be as if it had never been.
const Never = -1

// MadeAt is when a version was saved first, in Unix nanoseconds.
func MadeAt(c *sqlite.Conn, version int64) (at int64, err error) {
	found, err := c.One(selectMade, []driver.Value{version / codec.PerBlock}, func(r []driver.Value) { at = r[0].(int64) })
	if err == nil && !found {
		err = sqlite.Damaged("nothing says when version %d was made", version)
	}
	return at, err
}

// Period is a time in which a record looked the same in one shape, or was
// gone (version 0).
type Period struct {
	Held, Number, Version int64
	Since                 int64 // Unix nanoseconds
	Until                 int64 // 0: it lasts
	Seen, State           int64 // of the one that lasts
}

var (
	selectPast = &sqlite.Statement{Head: `SELECT held, number, coalesce(version, number), since, 0, 0 FROM past
		WHERE held BETWEEN ?1 AND ?2 AND since IS NOT -1
		UNION ALL SELECT number, coalesce(stretch, version), CASE WHEN state & 4 THEN 0 ELSE version END, since, seen, state FROM held
		WHERE number BETWEEN ?1 AND ?2 AND since IS NOT -1 ORDER BY 1, 2 DESC`}
)

// PeriodsOf are those of held rows from first to last: row by row, the newest
// first. One that began while the clock was ahead is taken to have begun when
// a later one did.
func PeriodsOf(c *sqlite.Conn, first, last int64) (all []Period, err error) {
	err = c.Query(selectPast, 0, []driver.Value{first, last}, func(r []driver.Value) error {
		one := Period{Held: r[0].(int64), Number: r[1].(int64), Version: r[2].(int64), Seen: r[4].(int64), State: r[5].(int64)}
		if r[3] != nil {
			one.Since = r[3].(int64)
		} else if one.Since, err = MadeAt(c, one.Version); err != nil {
			return err
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

// Time is a time the store keeps; the zero time for 0.
func Time(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}
