// Queries: which rows are looked for, in the table and among those that wait to be written.

package fts5

import (
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// Op says how a Query joins its parts.
type Op int

const (
	AnyPhrase          Op = iota // one of Phrases stands in the row; there are no parts
	AllParts                     // at least one
	AnyPart                      // at least one
	FirstWithoutSecond           // two
)

// Query describes rows. Its zero value matches none.
type Query struct {
	Op      Op
	Phrases []string // words with a space between two
	Prefix  bool     // the last word of each phrase may be longer
	Parts   []Query
}

var (
	selectDown = &sqlite.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?",
		Reads: sqlite.Index}
	selectUp = &sqlite.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? ORDER BY rowid LIMIT ?",
		Reads: sqlite.Index}
)

// Find returns the postings whose rows match a query once the pending writes are made; up from the least.
func Find(c *sqlite.Conn, pending Pending, q *Query, up bool) (postings.Iterator, error) {
	match, err := q.expression(c)
	if err != nil {
		return nil, err
	}
	st := selectDown
	if up {
		st = selectUp
	}
	written := &postings.Scan{C: c, St: st, Args: []driver.Value{match}, Up: up}
	if len(pending) == 0 {
		return written, nil
	}
	touched, found := &postings.Slice{Up: up}, &postings.Slice{Up: up}
	for i := range pending {
		w := &pending[i]
		touched.Spots = append(touched.Spots, w.Posting)
		if !w.Out && q.Matches(&w.Row) {
			found.Spots = append(found.Spots, w.Posting)
		}
	}
	if !up {
		slices.Reverse(touched.Spots)
		slices.Reverse(found.Spots)
	}
	return postings.Or(up, postings.Without(up, written, touched), found), nil
}

const (
	matchNone   = `"0"` // words begin with a tag of four characters
	maxExpanded = 64    // words with one beginning that are looked for one by one
)

// expression returns the query in the language of FTS5
// (sqlite.org/fts5.html#full_text_query_syntax). Words have no quotes.
func (q *Query) expression(c *sqlite.Conn) (string, error) {
	var parts []string
	for i := range q.Parts {
		part, err := q.Parts[i].expression(c)
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
		ends, many, err := Beginning(c, phrase[last:], maxExpanded)
		switch {
		case err != nil:
			return "", err
		case many:
			parts = append(parts, `"`+phrase+`" *`)
		}
		// FTS5 sorts all rows that have a word with a beginning before it returns the first of
		// them; it reads rows of whole words only as far as they are needed.
		for _, end := range ends {
			parts = append(parts, `"`+phrase[:last]+end+`"`)
		}
	}
	if len(parts) == 0 {
		return matchNone, nil
	}
	joint := [...]string{AnyPhrase: " OR ", AllParts: " AND ", AnyPart: " OR ", FirstWithoutSecond: " NOT "}[q.Op]
	return "(" + strings.Join(parts, joint) + ")", nil
}

// Matches reports whether Find finds a row.
func (q *Query) Matches(row *Row) bool {
	return q.matches(" " + strings.Join(row[:], "  ") + " ") // no phrase has two spaces
}

// matches reports whether the query matches a text in which each word is between spaces.
func (q *Query) matches(text string) bool {
	switch q.Op {
	case AllParts:
		return !slices.ContainsFunc(q.Parts, func(part Query) bool { return !part.matches(text) })
	case AnyPart:
		return slices.ContainsFunc(q.Parts, func(part Query) bool { return part.matches(text) })
	case FirstWithoutSecond:
		return q.Parts[0].matches(text) && !q.Parts[1].matches(text)
	}
	end := " "
	if q.Prefix {
		end = ""
	}
	return slices.ContainsFunc(q.Phrases, func(phrase string) bool { return strings.Contains(text, " "+phrase+end) })
}
