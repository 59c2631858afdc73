// Mentions in jobs and values: those hold names and places, and no texts of records.
// Erasing makes sure of it. What people wrote on other records may mention anybody.

package erase

import (
	"database/sql/driver"

	"understudy/internal/store/annotations"
	"understudy/internal/store/kv"
	"understudy/internal/store/sqlite"
)

// longText is how long a text must be to be looked for in jobs and values,
// where a word like "messages" is no person's.
const longText = 16

var (
	selectJobTexts  = &sqlite.Statement{Head: "SELECT number, key, payload, mark, error, note FROM job"}
	deleteJobText   = &sqlite.Statement{Head: "DELETE FROM job WHERE number = ?"}
	clearJobText    = &sqlite.Statement{Head: "UPDATE job SET error = '', note = '' WHERE number = ?"}
	selectAllFields = &sqlite.Statement{Head: "SELECT number, names FROM fields"}
	unsetFields     = &sqlite.Statement{Head: "UPDATE change SET fields = 0 WHERE fields = ?"}
	deleteFields    = &sqlite.Statement{Head: "DELETE FROM fields WHERE number = ?"}
	selectAllValues = &sqlite.Statement{Head: "SELECT name, value FROM kv"}
)

// takeMentions takes the batch's texts out of jobs and values, in a transaction. A job
// or a value that is about them goes whole; of one that only mentions them the
// mention goes.
func (b *batch) takeMentions(c *sqlite.Conn) error {
	if !b.matches.any() {
		return nil
	}
	var gone, mention []int64
	err := c.Query(selectJobTexts, 0, nil, func(r []driver.Value) error {
		switch {
		case b.matches.inValue(r[1]) || b.matches.inValue(r[2]) || b.matches.inValue(r[3]):
			gone = append(gone, r[0].(int64))
		case b.matches.inValue(r[4]) || b.matches.inValue(r[5]):
			mention = append(mention, r[0].(int64))
		}
		return nil
	})
	var notes []string
	if err == nil {
		err = c.Query(selectAllValues, 0, nil, func(r []driver.Value) error {
			if b.matches.inValue(r[0]) || b.matches.inValue(r[1]) {
				notes = append(notes, r[0].(string))
			}
			return nil
		})
	}
	if err == nil {
		err = annotations.EraseMentions(c, b.matches.inValue)
	}
	if err == nil {
		err = b.names(c)
	}
	for _, n := range gone {
		if err == nil {
			err = c.Exec(deleteJobText, 0, n)
		}
	}
	for _, n := range mention {
		if err == nil {
			err = c.Exec(clearJobText, 0, n)
		}
	}
	for _, name := range notes {
		if err == nil {
			_, err = kv.Delete(c, name)
		}
	}
	return err
}

// any reports whether there is anything to look for in jobs and values.
func (t *matchers) any() bool { return len(t.numbers) > 0 || len(t.long) > 0 }

// inValue reports whether a column holds a long text or a number.
func (t *matchers) inValue(v driver.Value) bool {
	text, ok := v.(string)
	if b, isBytes := v.([]byte); isBytes {
		text, ok = string(b), true
	}
	return ok && text != "" && t.mentioned(text)
}

// names takes sets of field names out of changes that hold a number or a long
// text: an API that names fields by people would do that.
func (b *batch) names(c *sqlite.Conn) error {
	var sets []int64
	err := c.Query(selectAllFields, 0, nil, func(r []driver.Value) error {
		if b.matches.inValue(r[1]) {
			sets = append(sets, r[0].(int64))
		}
		return nil
	})
	for _, n := range sets {
		if err == nil {
			err = c.Exec(unsetFields, 0, n)
		}
		if err == nil {
			err = c.Exec(deleteFields, 0, n)
		}
	}
	return err
}
