// Package fts5 is an index of words in a table of SQLite's extension FTS5. It writes and deletes rows of words
// in columns, finds postings by words, and overwrites what deleted rows have left.
//
// Package words cuts and folds the words and tags each with its kind and field. The tokenizer of the table only
// separates words at spaces. The table does not keep its rows, so a row to delete must be given as it was
// written.
package fts5

import (
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/db"
)

// Columns is the number of word columns of the table. Words of the first column cost least.
const Columns = 9

// names are the names of the columns in the table.
var names = [Columns]string{"body", "plain", "plain2", "plain3", "phone", "phone2", "name", "url", "other"}

// Row is the words of a posting by column, separated by spaces.
type Row [Columns]string

// IsEmpty reports whether the row has no word.
func (r *Row) IsEmpty() bool { return *r == Row{} }

// Write is one row to write, or to delete if Delete is set.
type Write struct {
	Posting int64
	Delete  bool
	Row     Row
}

var (
	insertRow = &db.Statement{Head: "INSERT INTO words (rowid, body, plain, plain2, plain3, phone, phone2, name, url, other) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	deleteRow = &db.Statement{Head: "INSERT INTO words (words, rowid, body, plain, plain2, plain3, phone, phone2, name, url, " +
		"other) VALUES ", Tuple: "('delete', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	deleteAll = &db.Statement{Head: "INSERT INTO words (words) VALUES ('delete-all')"}
)

// Update executes the writes in the transaction of c.
func Update(c db.Conn, writes Pending) error {
	args := make([]driver.Value, 0, len(writes)*(1+Columns))
	for i := 0; i < len(writes); {
		args = args[:0]
		st, n := insertRow, i
		if writes[i].Delete {
			st = deleteRow
		}
		for ; n < len(writes) && writes[n].Delete == writes[i].Delete; n++ {
			args = writes[n].appendArgs(args)
		}
		if err := c.ExecuteMany(st, 1+Columns, args); err != nil {
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
			args = append(args, nil) // unlike an empty text, nil costs the driver no memory
		} else {
			args = append(args, text)
		}
	}
	return args
}

// Clear deletes all rows in the transaction of c.
func Clear(c db.Conn) error { return c.Execute(deleteAll, 0) }

var selectWord = &db.Statement{Head: "SELECT term FROM word WHERE term >= ? LIMIT 1", Reads: db.Index}

// FindNext returns the first word in the index that is not before from, or "" if there is none.
func FindNext(c db.Conn, from string) (word string, err error) {
	_, err = c.QueryRow(selectWord, []driver.Value{from}, func(r []driver.Value) { word, _ = r[0].(string) })
	return word, err
}

// batch is the number of entries of the index that ListBeginning reads at once.
const batch = 64

var selectWords = &db.Statement{Head: "SELECT term FROM word WHERE term >= ? AND term < ? LIMIT ?", Reads: db.Index}

// ListBeginning returns up to most words in the index that begin with a prefix. many reports that there are more such
// words.
func ListBeginning(c db.Conn, prefix string, most int) (all []string, many bool, err error) {
	const after, last = "\x01", "\U0010ffff" // characters that sort before and after every character of a word
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

// Word is one word of a row. At is the number of words before it in its column.
type Word struct {
	Text    string
	Posting int64
	Column  int
	At      int64
}

// VisitWords calls yield with every word of the row, in the form in which the table stores it.
func (w *Write) VisitWords(yield func(Word)) {
	for c, text := range w.Row {
		at := int64(0)
		for word := range strings.FieldsSeq(text) {
			yield(Word{word, w.Posting, c, at})
			at++
		}
	}
}

var selectAll = &db.Statement{Head: "SELECT term, doc, col, offset FROM word"}

// VisitWords calls yield with every word of the index until yield returns an error.
func VisitWords(c db.Conn, yield func(Word) error) error {
	return c.Query(selectAll, 0, nil, func(r []driver.Value) error {
		return yield(Word{r[0].(string), r[1].(int64), slices.Index(names[:], r[2].(string)), r[3].(int64)})
	})
}

// Reload makes a connection read the list of the index's segments again. FTS5 keeps this list in memory. Its own
// check (xIntegrity, SQLite 3.53) reports a segment as lost after another connection has merged it. A query by words
// compares the list with the file.
func Reload(c db.Conn) error {
	return c.QueryOnce("SELECT rowid FROM words WHERE words MATCH '"+matchNone+"' LIMIT 1", nil, func([]driver.Value) error { return nil })
}
