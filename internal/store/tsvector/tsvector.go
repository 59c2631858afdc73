// Package tsvector stores the index of words in a PostgreSQL table. The table has one row for each posting: the line of
// the row (wordrows.Row) and its lexemes, which are the different words of the line.
//
// An inverted index of the lexemes (GIN) finds rows by words. It does not know the order of words, so phrases are searched
// in the line. The rows found are exactly those that wordrows.Query.Match accepts.
package tsvector

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/db"
	"understudy/internal/store/wordrows"
)

// Table implements wordrows.Table with the table words of a PostgreSQL database.
type Table struct{}

// lexemesOfLine is an expression for the lexemes of a line. A TSVECTOR holds at most 1 MiB of lexemes, and
// array_to_tsvector returns a damaged TSVECTOR if there are more (PostgreSQL 15). So a longer line has only the lexeme
// tooLong, and its words are searched in the line.
const lexemesOfLine = "array_to_tsvector(CASE WHEN octet_length(line) > 1000000 THEN ARRAY['" + tooLong + "'] " +
	"ELSE array_remove(string_to_array(line, ' '), '') END)"

// tooLong is the lexeme of lines that are too long. It cannot be a word, because words have only letters, digits and
// characters beyond ASCII.
const tooLong = "!"

var (
	insertRows = &db.Statement{Head: "INSERT INTO words (posting, line, lexemes) SELECT posting, line, " + lexemesOfLine +
		" FROM (VALUES ", Tuple: "(?::bigint, ?::text)", Tail: ") AS new (posting, line) " +
		"ON CONFLICT (posting) DO UPDATE SET line = excluded.line, lexemes = excluded.lexemes"}
	deleteRows = &db.Statement{Head: "DELETE FROM words WHERE posting IN (", Tuple: "?", Tail: ")"}
	// deleteAll is not a TRUNCATE, because transactions that began earlier must still find the rows.
	deleteAll = &db.Statement{Head: "DELETE FROM words"}
)

// Update implements wordrows.Table. A row that is deleted and written again is replaced.
func (Table) Update(c db.Conn, writes wordrows.Pending) error {
	var gone, rows []driver.Value
	for i := range writes {
		w := &writes[i]
		switch {
		case !w.Delete:
			rows = append(rows, w.Posting, w.Row.Line())
		case i+1 == len(writes) || writes[i+1].Posting != w.Posting:
			gone = append(gone, w.Posting)
		}
	}
	if err := db.ExecuteMany(c, deleteRows, 1, gone); err != nil {
		return err
	}
	return db.ExecuteMany(c, insertRows, 2, rows)
}

// Clear implements wordrows.Table.
func (Table) Clear(c db.Conn) error { return c.Execute(deleteAll, 0) }

// ListBeginning implements wordrows.Table. PostgreSQL has no list of the words of an index, so the answer is always that
// there may be many. Searches then search every field.
func (Table) ListBeginning(db.Conn, string, int) (all []string, many bool, err error) {
	return nil, true, nil
}

var selectAll = &db.Statement{Head: "SELECT posting, line, lexemes = " + lexemesOfLine + " FROM words", Whole: true}

// VisitWords implements wordrows.Table. If the lexemes of a row do not belong to its line, it also yields an empty word,
// which no row has.
func (Table) VisitWords(c db.Conn, yield func(wordrows.Word) error) error {
	return c.Query(selectAll, 0, nil, func(r []driver.Value) error {
		w := wordrows.Write{Posting: r[0].(int64)}
		var ok bool
		if w.Row, ok = wordrows.ReadLine(r[1].(string)); !ok || r[2].(int64) == 0 {
			if err := yield(wordrows.Word{Posting: w.Posting}); err != nil {
				return err
			}
		}
		var err error
		w.VisitWords(func(word wordrows.Word) {
			if err == nil {
				err = yield(word)
			}
		})
		return err
	})
}

// Reload implements wordrows.Table. It does nothing, because a connection caches nothing of the table.
func (Table) Reload(db.Conn) error { return nil }

// Sanitize implements wordrows.Table. It does nothing, because no statement overwrites single rows in PostgreSQL's files.
// Deleted rows stay in the files until VACUUM has freed their space and other rows were written there. The index of
// lexemes keeps a word that only deleted rows had, until REINDEX or VACUUM FULL rebuilds the index. VACUUM only empties
// the word's list of rows (PostgreSQL 15, ginvacuum.c).
func (Table) Sanitize(context.Context, *db.Pool) error { return nil }
