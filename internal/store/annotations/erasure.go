// This file erases the annotations of erased records.

package annotations

import (
	"database/sql/driver"

	"understudy/internal/store/db"
)

// Erase deletes the annotations of a record, in a transaction. Memory keeps them until Reload.
func (b *Book) Erase(c db.Conn, record int64) error {
	b.pool.MarkChanged(db.Annotations)
	return c.Execute(deleteRecord, 0, record)
}

// EraseMentions deletes the notes on any record for which mentions returns true, in a transaction. Memory keeps
// them until Reload.
func (b *Book) EraseMentions(c db.Conn, mentions func(text driver.Value) bool) error {
	var all []int64
	err := db.VisitRows(c, selectTexts, nil, func(r []driver.Value) {
		if mentions(r[1]) || mentions(r[2]) {
			all = append(all, r[0].(int64))
		}
	})
	if len(all) > 0 {
		b.pool.MarkChanged(db.Annotations)
	}
	for _, number := range all {
		if err == nil {
			err = c.Execute(deleteNumber, 0, number)
		}
	}
	return err
}
