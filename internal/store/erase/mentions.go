// This file erases mentions of records in jobs and values. Both contain names and places, and should contain no texts
// of records. This file makes sure that they do not. It also erases notes on other records that contain such a text.

package erase

import (
	"database/sql/driver"

	"understudy/internal/store/db"
)

// longText is the minimum length of a text that is searched for in jobs and values. A shorter text may be an ordinary
// word such as "messages".
const longText = 16

var (
	selectJobTexts  = &db.Statement{Head: "SELECT number, key, payload, mark, error, note FROM job"}
	deleteJobText   = &db.Statement{Head: "DELETE FROM job WHERE number = ?"}
	clearJobText    = &db.Statement{Head: "UPDATE job SET error = '', note = '' WHERE number = ?"}
	selectAllFields = &db.Statement{Head: "SELECT number, names FROM fields"}
	unsetFields     = &db.Statement{Head: "UPDATE change SET fields = 0 WHERE fields = ?"}
	deleteFields    = &db.Statement{Head: "DELETE FROM fields WHERE number = ?"}
	selectAllValues = &db.Statement{Head: "SELECT name, value FROM kv"}
)

// takeMentions removes the batch's texts from jobs, values and notes, in a transaction. It deletes a job or a value
// that is about an erased record. If only the error or the note of a job contains a text, it clears both.
func (b *batch) takeMentions(c db.Conn) error {
	if len(b.matches.numbers) == 0 && len(b.matches.longTexts) == 0 {
		return nil
	}
	var gone, mention []int64
	err := db.VisitRows(c, selectJobTexts, nil, func(r []driver.Value) {
		switch {
		case b.matches.matchColumn(r[1]) || b.matches.matchColumn(r[2]) || b.matches.matchColumn(r[3]):
			gone = append(gone, r[0].(int64))
		case b.matches.matchColumn(r[4]) || b.matches.matchColumn(r[5]):
			mention = append(mention, r[0].(int64))
		}
	})
	var notes []string
	if err == nil {
		err = db.VisitRows(c, selectAllValues, nil, func(r []driver.Value) {
			if b.matches.matchColumn(r[0]) || b.matches.matchColumn(r[1]) {
				notes = append(notes, r[0].(string))
			}
		})
	}
	if err == nil {
		err = b.eraser.written.EraseMentions(c, b.matches.matchColumn)
	}
	if err == nil {
		err = b.eraseNames(c)
	}
	for _, n := range gone {
		if err == nil {
			err = c.Execute(deleteJobText, 0, n)
		}
	}
	for _, n := range mention {
		if err == nil {
			err = c.Execute(clearJobText, 0, n)
		}
	}
	for _, name := range notes {
		if err == nil {
			_, err = b.eraser.values.DeleteValue(c, name)
		}
	}
	return err
}

// matchColumn reports whether a column contains a long text or a number.
func (t *matchers) matchColumn(v driver.Value) bool {
	text, ok := v.(string)
	if b, isBytes := v.([]byte); isBytes {
		text, ok = string(b), true
	}
	return ok && text != "" && t.matchMention(text)
}

// eraseNames removes sets of field names from changes if they contain a number or a long text, because an API might
// name fields after people.
func (b *batch) eraseNames(c db.Conn) error {
	var sets []int64
	err := db.VisitRows(c, selectAllFields, nil, func(r []driver.Value) {
		if b.matches.matchColumn(r[1]) {
			sets = append(sets, r[0].(int64))
		}
	})
	for _, n := range sets {
		if err == nil {
			err = c.Execute(unsetFields, 0, n)
		}
		if err == nil {
			err = c.Execute(deleteFields, 0, n)
		}
	}
	return err
}
