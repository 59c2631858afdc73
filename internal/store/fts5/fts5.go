// Package fts5 stores the index of words in a table of SQLite's extension FTS5. It writes and deletes rows of words
// in columns, finds postings by words, and overwrites what deleted rows have left. The table does not keep its rows.
package fts5

import (
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/db"
	"understudy/internal/store/wordrows"
)

// Table implements wordrows.Table with the tables words and word of an SQLite file.
type Table struct{}

// names are the names of the columns in the table.
var names = [wordrows.Columns]string{"body", "plain", "plain2", "plain3", "phone", "phone2", "name", "url", "other"}

var (
	insertRow = &db.Statement{Head: "INSERT INTO words (rowid, body, plain, plain2, plain3, phone, phone2, name, url, other) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	deleteRow = &db.Statement{Head: "INSERT INTO words (words, rowid, body, plain, plain2, plain3, phone, phone2, name, url, " +
		"other) VALUES ", Tuple: "('delete', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	deleteAll = &db.Statement{Head: "INSERT INTO words (words) VALUES ('delete-all')"}
)

// Update implements wordrows.Table.
func (Table) Update(c db.Conn, writes wordrows.Pending) error {
	args := make([]driver.Value, 0, len(writes)*(1+wordrows.Columns))
	for i := 0; i < len(writes); {
		args = args[:0]
		st, n := insertRow, i
		if writes[i].Delete {
			st = deleteRow
		}
		for ; n < len(writes) && writes[n].Delete == writes[i].Delete; n++ {
			args = append(args, writes[n].Posting)
			for _, text := range writes[n].Row {
				if text == "" {
					args = append(args, nil) // unlike an empty text, nil costs the driver no memory
				} else {
					args = append(args, text)
				}
			}
		}
		if err := db.ExecuteMany(c, st, 1+wordrows.Columns, args); err != nil {
			return err
		}
		i = n
	}
	return nil
}

// Clear implements wordrows.Table.
func (Table) Clear(c db.Conn) error { return c.Execute(deleteAll, 0) }

var selectWord = &db.Statement{Head: "SELECT term FROM word WHERE term >= ? LIMIT 1", Reads: db.Index}

// batch is the number of entries of the index that ListBeginning reads at once.
const batch = 64

var selectWords = &db.Statement{Head: "SELECT term FROM word WHERE term >= ? AND term < ? LIMIT ?", Reads: db.Index}

// ListBeginning implements wordrows.Table. many reports that there are more words than most.
func (Table) ListBeginning(c db.Conn, prefix string, most int) (all []string, many bool, err error) {
	const after, last = "\x01", "\U0010ffff" // characters that sort before and after every character of a word
	from := prefix
	for n := batch; err == nil && n == batch; {
		n = 0
		err = db.VisitRows(c, selectWords, []driver.Value{from, prefix + last, int64(batch)}, func(r []driver.Value) {
			n++
			if word := r[0].(string); len(all) == 0 || word != all[len(all)-1] {
				all = append(all, strings.Clone(word))
			}
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

var selectAll = &db.Statement{Head: "SELECT term, doc, col, offset FROM word"}

// VisitWords implements wordrows.Table.
func (Table) VisitWords(c db.Conn, yield func(wordrows.Word) error) error {
	return c.Query(selectAll, 0, nil, func(r []driver.Value) error {
		column := slices.Index(names[:], r[2].(string))
		return yield(wordrows.Word{Text: r[0].(string), Posting: r[1].(int64), Column: column, At: r[3].(int64)})
	})
}

// Reload implements wordrows.Table. FTS5 keeps the list of the index's segments in memory. Its own check (xIntegrity,
// SQLite 3.53) reports a segment as lost after another connection has merged it. A query by words compares the list
// with the file.
func (Table) Reload(c db.Conn) error {
	return c.QueryOnce("SELECT rowid FROM words WHERE words MATCH '"+matchNone+"' LIMIT 1", nil, func([]driver.Value) error { return nil })
}
