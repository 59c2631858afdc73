// Package wordrows describes the rows of the index of words, the queries over them, and the table in which a database stores them.
//
// Package words splits and folds texts into words, and tags each word with its kind and field. A row contains the words of a record in
// one shape. A table only splits the words of a row at spaces. It need not keep the row itself, so the caller must pass a row to delete
// exactly as it was written.
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

// Line returns the row as one text, in which each word has a space on both sides. The columns are separated by two spaces,
// so that no phrase matches across two columns.
func (r *Row) Line() string { return " " + strings.Join(r[:], "  ") + " " }

// ReadLine converts a text returned by Line back to a row. ok is false for any other text.
func ReadLine(line string) (row Row, ok bool) {
	columns := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, " "), " "), "  ")
	return row, copy(row[:], columns) == len(columns) && len(columns) == Columns
}

// Write is a row to write, or a row to delete if Delete is set.
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

// VisitWords calls yield with every word of the row and its position, as a table stores them.
func (w *Write) VisitWords(yield func(Word)) {
	for c, text := range w.Row {
		at := int64(0)
		for word := range strings.FieldsSeq(text) {
			yield(Word{word, w.Posting, c, at})
			at++
		}
	}
}

// Table stores the rows in one kind of database. It has no state of its own and is safe for concurrent use.
type Table interface {
	// Update executes the writes in the transaction of c.
	Update(c db.Conn, writes Pending) error
	// Clear deletes all rows in the transaction of c.
	Clear(c db.Conn) error
	// Search returns the postings of the written rows that match a query. If up is set, the postings are in ascending order.
	Search(c db.Conn, q *Query, up bool) (postings.Iterator, error)
	// ListBeginning returns up to most words of the written rows that begin with a prefix. If many is true, there may be
	// more such words, and the list may be empty.
	ListBeginning(c db.Conn, prefix string, most int) (all []string, many bool, err error)
	// VisitWords calls yield with every word of the written rows until yield returns an error.
	VisitWords(c db.Conn, yield func(Word) error) error
	// Reload makes a connection drop its cached state of the table, before the engine checks the files.
	Reload(c db.Conn) error
	// Sanitize overwrites the remains of deleted rows in the table, in short transactions.
	Sanitize(ctx context.Context, pool *db.Pool) error
}

// Snapshot is the index of words as one transaction sees it.
type Snapshot struct {
	C       db.Conn
	Table   Table
	Pending Pending // the rows that are not written yet
}
