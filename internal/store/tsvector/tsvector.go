// Package tsvector stores the index of words in a table of PostgreSQL, one row for each posting: the line of the row
// (wordrows.Row) and its lexemes, which are its different words.
//
// An inverted index of the lexemes (GIN) finds rows by words. It knows no order of words, so a phrase is then looked for
// in the line. What is found is exactly what wordrows.Query.Match says.
package tsvector

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/db"
	"understudy/internal/store/wordrows"
)

// Table implements wordrows.Table with the table words of a PostgreSQL database.
type Table struct{}

// lexemesOfLine is the lexemes of a line. A TSVECTOR takes 1 MiB of lexemes, and array_to_tsvector makes a broken one of
// more (PostgreSQL 15). So a longer line has the lexeme tooLong alone, and its words are looked for in the line.
const lexemesOfLine = "array_to_tsvector(CASE WHEN octet_length(line) > 1000000 THEN ARRAY['" + tooLong + "'] " +
	"ELSE array_remove(string_to_array(line, ' '), '') END)"

// tooLong is the lexeme of lines that are too long. It is no word, because words have only letters, digits and
// characters beyond ASCII.
const tooLong = "!"

var (
	insertRows = &db.Statement{Head: "INSERT INTO words (posting, line, lexemes) SELECT posting, line, " + lexemesOfLine +
		" FROM (VALUES ", Tuple: "(?::bigint, ?::text)", Tail: ") AS new (posting, line) " +
		"ON CONFLICT (posting) DO UPDATE SET line = excluded.line, lexemes = excluded.lexemes"}
	deleteRows = &db.Statement{Head: "DELETE FROM words WHERE posting IN (", Tuple: "?", Tail: ")"}
	// deleteAll is no TRUNCATE, because transactions that began before must still find the rows.
	deleteAll = &db.Statement{Head: "DELETE FROM words"}
)

// Update implements wordrows.Table. It replaces a row that is to be deleted and written again.
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
	if err := c.ExecuteMany(deleteRows, 1, gone); err != nil {
		return err
	}
	return c.ExecuteMany(insertRows, 2, rows)
}

// Clear implements wordrows.Table.
func (Table) Clear(c db.Conn) error { return c.Execute(deleteAll, 0) }

// ListBeginning implements wordrows.Table. PostgreSQL has no list of the words of an index, so the answer is that there
// may be many. Searches then look in every field.
func (Table) ListBeginning(db.Conn, string, int) (all []string, many bool, err error) {
	return nil, true, nil
}

var selectAll = &db.Statement{Head: "SELECT posting, line, lexemes = " + lexemesOfLine + " FROM words", Whole: true}

// VisitWords implements wordrows.Table. For a row whose lexemes are not those of its line it also yields an empty word,
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

// Reload implements wordrows.Table. A connection remembers nothing of the table, so there is nothing to do.
func (Table) Reload(db.Conn) error { return nil }

// Sanitize implements wordrows.Table. No statement overwrites single rows in PostgreSQL's files, so there is nothing to do
// here. Deleted rows are there until VACUUM has freed their space and others were written to it. The index of lexemes
// keeps a word of deleted rows alone until REINDEX or VACUUM FULL writes the index anew: VACUUM only empties its list of
// rows (PostgreSQL 15, ginvacuum.c).
func (Table) Sanitize(context.Context, *db.Pool) error { return nil }
