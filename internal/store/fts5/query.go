// This file finds rows in the table and among the rows that wait to be written.

package fts5

import (
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
)

// Op says how a Query combines its parts.
type Op int

const (
	AnyPhrase          Op = iota // one of the phrases in Phrases is in the row; the query has no parts
	AllParts                     // every part matches; there is at least one part
	AnyPart                      // one of the parts matches; there is at least one part
	FirstWithoutSecond           // the first of two parts matches and the second does not
)

// Query describes rows. Its zero value matches no row.
type Query struct {
	Op      Op
	Phrases []string // phrases, each of which is words separated by a space
	Prefix  bool     // the last word of each phrase matches all words that begin with it
	Parts   []Query
}

var (
	selectDown = &db.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?",
		Reads: db.Index}
	selectUp = &db.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? ORDER BY rowid LIMIT ?",
		Reads: db.Index}
)

// Find returns the postings whose rows match a query, as if the pending rows were written. If up is set, they are in
// ascending order.
func Find(c db.Conn, pending Pending, q *Query, up bool) (postings.Iterator, error) {
	match, err := q.buildExpression(c)
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
		if !w.Delete && q.Match(&w.Row) {
			found.Spots = append(found.Spots, w.Posting)
		}
	}
	if !up {
		slices.Reverse(touched.Spots)
		slices.Reverse(found.Spots)
	}
	return postings.Unite(up, postings.Exclude(up, written, touched), found), nil
}

const (
	matchNone   = `"0"` // an expression that matches nothing, because words begin with a tag of four characters
	maxExpanded = 64    // the maximum number of words with a common prefix that are queried one by one
)

// buildExpression returns the query in the language of FTS5 (sqlite.org/fts5.html#full_text_query_syntax).
// Words contain no quotes.
func (q *Query) buildExpression(c db.Conn) (string, error) {
	var parts []string
	for i := range q.Parts {
		part, err := q.Parts[i].buildExpression(c)
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
		ends, many, err := ListBeginning(c, phrase[last:], maxExpanded)
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
	joint := [...]string{AnyPhrase: " OR ", AllParts: " AND ", AnyPart: " OR ", FirstWithoutSecond: " NOT "}[q.Op]
	return "(" + strings.Join(parts, joint) + ")", nil
}

// Match reports whether Find would find a row.
func (q *Query) Match(row *Row) bool {
	return q.match(" " + strings.Join(row[:], "  ") + " ") // columns are joined by two spaces, so that no phrase spans two of them
}

// match reports whether the query matches a text in which each word is surrounded by spaces.
func (q *Query) match(text string) bool {
	switch q.Op {
	case AllParts:
		return !slices.ContainsFunc(q.Parts, func(part Query) bool { return !part.match(text) })
	case AnyPart:
		return slices.ContainsFunc(q.Parts, func(part Query) bool { return part.match(text) })
	case FirstWithoutSecond:
		return q.Parts[0].match(text) && !q.Parts[1].match(text)
	}
	end := " "
	if q.Prefix {
		end = ""
	}
	return slices.ContainsFunc(q.Phrases, func(phrase string) bool { return strings.Contains(text, " "+phrase+end) })
}
