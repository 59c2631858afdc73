// Package wordrows describes the rows of the index of words, the queries over them, and the table that a database
// has for them.
//
// Package words cuts and folds the words and tags each with its kind and field. A row is the words of a record in one
// shape. A table only separates the words of a row at spaces. It need not keep the rows, so a row to delete must be
// given as it was written.
package wordrows

import (
	"context"
	"strings"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
)

// Columns is the number of columns of a row. Words of the first column cost least.
const Columns = 9

// Row is the words of a posting by column, separated by spaces.
type Row [Columns]string

// IsEmpty reports whether the row has no word.
func (r *Row) IsEmpty() bool { return *r == Row{} }

// Line returns the row as one text, in which each word is surrounded by spaces. Two spaces separate the columns, so
// that no phrase spans two of them.
func (r *Row) Line() string { return " " + strings.Join(r[:], "  ") + " " }

// ReadLine returns the row that Line has returned as one text. ok is false for another text.
func ReadLine(line string) (row Row, ok bool) {
	columns := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, " "), " "), "  ")
	return row, copy(row[:], columns) == len(columns) && len(columns) == Columns
}

// Write is one row to write, or to delete if Delete is set.
type Write struct {
	Posting int64
	Delete  bool
	Row     Row
}

// Word is one word of a row. At is the number of words before it in its column.
type Word struct {
	Text    string
	Posting int64
	Column  int
	At      int64
}

// VisitWords calls yield with every word of the row, in the form in which a table stores it.
func (w *Write) VisitWords(yield func(Word)) {
	for c, text := range w.Row {
		at := int64(0)
		for word := range strings.FieldsSeq(text) {
			yield(Word{word, w.Posting, c, at})
			at++
		}
	}
}

// Table is how one make of database stores the rows. It has no state of its own and is safe for concurrent use.
type Table interface {
	// Update executes the writes in the transaction of c.
	Update(c db.Conn, writes Pending) error
	// Clear deletes all rows in the transaction of c.
	Clear(c db.Conn) error
	// Search returns the postings of the written rows that match a query. If up is set, they are in ascending order.
	Search(c db.Conn, q *Query, up bool) (postings.Iterator, error)
	// ListBeginning returns up to most words of the written rows that begin with a prefix. many reports that there may
	// be more such words; then the list may be empty.
	ListBeginning(c db.Conn, prefix string, most int) (all []string, many bool, err error)
	// VisitWords calls yield with every word of the written rows until yield returns an error.
	VisitWords(c db.Conn, yield func(Word) error) error
	// Reload makes a connection forget what it remembers of the table, before the engine checks its files.
	Reload(c db.Conn) error
	// Sanitize overwrites what deleted rows have left in the table, in short transactions.
	Sanitize(ctx context.Context, pool *db.Pool) error
}

// Snapshot is the index of words as one transaction sees it.
type Snapshot struct {
	C       db.Conn
	Table   Table
	Pending Pending // the rows that wait to be written
}
