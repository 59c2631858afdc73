// Package fts5 is an index of words in a table of SQLite's extension FTS5: rows of
// words by columns are written and taken out, postings are found by what
// they say, and what rows that are gone have left is replaced.
//
// Words come cut and folded, and tagged by package words with what they are
// asked for by; the tokenizer of the table only separates them at spaces. The table
// does not keep its rows, so that a row that is taken out is given as it was written.
package fts5

import (
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/sqlite"
)

// Columns is how many columns of words the table has. Words of the first cost least.
const Columns = 9

// names are those of the columns, as the table has them.
var names = [Columns]string{"body", "plain", "plain2", "plain3", "phone", "phone2", "name", "url", "other"}

// Row is the words of a posting by column, with a space between two.
type Row [Columns]string

// Empty reports that there is no word.
func (r *Row) Empty() bool { return *r == Row{} }

// Write is one row that is to be written, or taken out as it is.
type Write struct {
	Posting int64
	Out     bool
	Row     Row
}

var (
	insertRow = &sqlite.Statement{Head: "INSERT INTO words (rowid, body, plain, plain2, plain3, phone, phone2, name, url, other) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	deleteRow = &sqlite.Statement{Head: "INSERT INTO words (words, rowid, body, plain, plain2, plain3, phone, phone2, name, url, " +
		"other) VALUES ", Tuple: "('delete', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	deleteAll = &sqlite.Statement{Head: "INSERT INTO words (words) VALUES ('delete-all')"}
)

// Update makes the writes, in the transaction of c.
func Update(c *sqlite.Conn, writes Pending) error {
	args := make([]driver.Value, 0, len(writes)*(1+Columns))
	for i := 0; i < len(writes); {
		args = args[:0]
		st, n := insertRow, i
		if writes[i].Out {
			st = deleteRow
		}
		for ; n < len(writes) && writes[n].Out == writes[i].Out; n++ {
			args = writes[n].appendArgs(args)
		}
		if err := c.ExecMany(st, 1+Columns, args); err != nil {
			return err
		}
		i = n
	}
	return nil
}

func (w *Write) appendArgs(args []driver.Value) []driver.Value {
	args = append(args, w.Posting)
	for _, text := range w.Row {
		if text == "" {
			args = append(args, nil) // costs no memory of the driver
		} else {
			args = append(args, text)
		}
	}
	return args
}

// Clear takes all rows out, in the transaction of c.
func Clear(c *sqlite.Conn) error { return c.Exec(deleteAll, 0) }

var selectWord = &sqlite.Statement{Head: "SELECT term FROM word WHERE term >= ? LIMIT 1", Reads: sqlite.Index}

// Next is the first word in the index that is not before one; "" when there is
// none.
func Next(c *sqlite.Conn, from string) (word string, err error) {
	_, err = c.One(selectWord, []driver.Value{from}, func(r []driver.Value) { word, _ = r[0].(string) })
	return word, err
}

// batch is how many entries of the index Beginning reads at once.
const batch = 64

var selectWords = &sqlite.Statement{Head: "SELECT term FROM word WHERE term >= ? AND term < ? LIMIT ?", Reads: sqlite.Index}

// Beginning returns the words in the index that begin in a way, or many when they are more
// than most.
func Beginning(c *sqlite.Conn, prefix string, most int) (all []string, many bool, err error) {
	const after, last = "\x01", "\U0010ffff" // words have no such characters
	from := prefix
	for n := batch; err == nil && n == batch; {
		n = 0
		err = c.Query(selectWords, 0, []driver.Value{from, prefix + last, int64(batch)}, func(r []driver.Value) error {
			n++
			if word := r[0].(string); len(all) == 0 || word != all[len(all)-1] {
				all = append(all, strings.Clone(word))
			}
			return nil
		})
		if len(all) > most {
			return nil, true, err
		}
		if len(all) > 0 {
			from = all[len(all)-1] + after
		}
	}
	return all, false, err
}

// Word is one word of a row: At counts the words of its column before it.
type Word struct {
	Text    string
	Posting int64
	Column  int
	At      int64
}

// Each calls yield with every word of a write's row, as the table has them.
func (w *Write) Each(yield func(Word)) {
	for c, text := range w.Row {
		at := int64(0)
		for word := range strings.FieldsSeq(text) {
			yield(Word{word, w.Posting, c, at})
			at++
		}
	}
}

var selectAll = &sqlite.Statement{Head: "SELECT term, doc, col, offset FROM word"}

// Each calls yield with every word of the index, and ends with the first error of it.
func Each(c *sqlite.Conn, yield func(Word) error) error {
	return c.Query(selectAll, 0, nil, func(r []driver.Value) error {
		return yield(Word{r[0].(string), r[1].(int64), slices.Index(names[:], r[2].(string)), r[3].(int64)})
	})
}

// Reload makes a connection read the list of the index's segments again. FTS5 keeps
// it in memory, and its own check (xIntegrity, SQLite 3.53) takes segments that
// another connection has merged for lost ones; a question by words compares it
// with the file.
func Reload(c *sqlite.Conn) error {
	return c.Ask("SELECT rowid FROM words WHERE words MATCH '"+matchNone+"' LIMIT 1", func([]driver.Value) error { return nil })
}
