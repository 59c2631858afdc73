// This file finds rows in the table.

package fts5

import (
	"database/sql/driver"
	"strings"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
	"understudy/internal/store/wordrows"
)

var (
	selectDown = &db.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?",
		Reads: db.Index}
	selectUp = &db.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? ORDER BY rowid LIMIT ?",
		Reads: db.Index}
)

// Search implements wordrows.Table.
func (t Table) Search(c db.Conn, q *wordrows.Query, up bool) (postings.Iterator, error) {
	match, err := t.buildExpression(c, q)
	if err != nil {
		return nil, err
	}
	st := selectDown
	if up {
		st = selectUp
	}
	return &postings.Scan{C: c, St: st, Args: []driver.Value{match}, Up: up}, nil
}

const (
	matchNone   = `"0"` // an expression that matches nothing, because words begin with a tag of four characters
	maxExpanded = 64    // the maximum number of words with a common prefix that are queried one by one
)

// buildExpression returns a query in the language of FTS5 (sqlite.org/fts5.html#full_text_query_syntax).
// Words contain no quotes.
func (t Table) buildExpression(c db.Conn, q *wordrows.Query) (string, error) {
	var parts []string
	for i := range q.Parts {
		part, err := t.buildExpression(c, &q.Parts[i])
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	for _, phrase := range q.Phrases {
		if !q.Prefix {
			parts = append(parts, `"`+phrase+`"`)
			continue
		}
		last := strings.LastIndexByte(phrase, ' ') + 1
		ends, many, err := t.ListBeginning(c, phrase[last:], maxExpanded)
		switch {
		case err != nil:
			return "", err
		case many:
			parts = append(parts, `"`+phrase+`" *`)
		}
		// For a prefix FTS5 sorts all matching rows before it returns the first. For whole words it reads only
		// as many rows as needed.
		for _, end := range ends {
			parts = append(parts, `"`+phrase[:last]+end+`"`)
		}
	}
	if len(parts) == 0 {
		return matchNone, nil
	}
	joint := [...]string{wordrows.AnyPhrase: " OR ", wordrows.AllParts: " AND ", wordrows.AnyPart: " OR ",
		wordrows.FirstWithoutSecond: " NOT "}[q.Op]
	return "(" + strings.Join(parts, joint) + ")", nil
}
