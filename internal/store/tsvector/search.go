// This file finds rows in the order of their postings.
//
// PostgreSQL cannot read an inverted index in the order of postings. So there are two ways to find the first rows that
// match. The first way reads the rows in order and checks each row, which is fast for common words. The second way lets
// the index find all rows that match, and sorts them, which is fast for few rows. PostgreSQL does not know which way is
// faster, because it cannot know how many rows have a word in one of 200 fields, or two words together. So a search first
// reads a limited number of rows in order. If too few of them match, it lets the index find the rest.

package tsvector

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
	"understudy/internal/store/wordrows"
)

const (
	readFirst   = 64      // how many postings are first read in order, about a page
	readMax     = 4096    // the maximum number of postings that are read in order
	rowsForEach = 64      // how many rows are checked for each of these postings
	readFound   = 1 << 17 // the maximum number of postings from the index that are read at once, 1 MiB
)

// settings prevent PostgreSQL from choosing slower plans, in addition to those of each transaction: starting more processes,
// sorting rows that an index has in order, and forgetting which rows of a page were found.
var settings = [][2]string{{"max_parallel_workers_per_gather", "0"}, {"enable_sort", "off"}, {"work_mem", "64MB"}}

// changeSettings and restoreSettings run before and after each search, because the other statements of the transaction
// need the normal settings. A setting with a dot in its name is a variable.
var (
	changeSettings = &db.Statement{Head: setAll("set_config('understudy.%[1]s', current_setting('%[1]s'), true), " +
		"set_config('%[1]s', '%[2]s', true)")}
	restoreSettings = &db.Statement{Head: setAll("set_config('%[1]s', current_setting('understudy.%[1]s'), true)")}
)

// setAll returns a statement that applies format to the name and the value of each setting.
func setAll(format string) string {
	all := make([]string, len(settings))
	for i, s := range settings {
		all[i] = fmt.Sprintf(format, s[0], s[1])
	}
	return "SELECT " + strings.Join(all, ", ")
}

// The statements end with their parameters: the posting to begin at, the maximum number of postings, and for inOrder the number of rows.
// The first three placeholders are a condition, a comparison and an order. OFFSET 0 and "+ 0" make PostgreSQL use the index of lexemes.
const (
	inOrder = "SELECT string_agg(int8send(posting), '') FROM (SELECT posting FROM (SELECT posting, line, lexemes FROM words " +
		"WHERE posting %[2]s ?%[4]d ORDER BY posting %[3]s LIMIT ?%[6]d) AS near WHERE %[1]s ORDER BY posting %[3]s LIMIT ?%[5]d) AS first"
	byIndex = "SELECT string_agg(int8send(posting), '') FROM (SELECT posting FROM (SELECT posting FROM words " +
		"WHERE %[1]s AND posting + 0 %[2]s ?%[4]d OFFSET 0) AS found ORDER BY posting %[3]s LIMIT ?%[5]d) AS first"
)

// Search implements wordrows.Table.
func (Table) Search(c db.Conn, q *wordrows.Query, up bool) (postings.Iterator, error) {
	if q = simplify(q); q == nil {
		return &postings.Slice{Up: up}, nil
	}
	return &search{c: c, query: q, up: up, most: readFound, list: postings.Slice{Up: up}}, nil
}

// search is an iterator over the postings of the rows that match a query.
type search struct {
	c     db.Conn
	query *wordrows.Query
	up    bool
	most  int // the maximum number of postings from the index that are read at once

	near, all *statement
	size      int            // how many postings the last read in order returned
	next      int64          // the position after the last posting that was read
	list      postings.Slice // postings that were read but not returned yet
	ended     bool           // whether no row after those in list matches
}

// statement is the SQL text for one query, with all parameters but the last ones.
type statement struct {
	text string
	args []driver.Value
}

// Advance implements postings.Iterator.
func (s *search) Advance(from int64) (int64, bool, error) {
	for {
		spot, ok, err := s.list.Advance(from)
		if ok || err != nil || s.ended {
			return spot, ok, err
		}
		if err := s.read(from); err != nil {
			return 0, false, err
		}
	}
}

func (s *search) read(from int64) error {
	if s.all == nil {
		if enough, err := s.readInOrder(from); enough || err != nil {
			return err
		}
		s.all = s.newStatement(byIndex, true)
	}
	err := s.run(s.all, from, int64(s.most))
	s.ended = len(s.list.Spots) < s.most
	return err
}

// readInOrder reads the next postings if a limited number of rows contains them. If the search has advanced to distant
// postings, it reads only a few at a time.
func (s *search) readInOrder(from int64) (enough bool, err error) {
	if s.near == nil {
		s.near = s.newStatement(inOrder, false)
	}
	if s.size > 0 && from == s.next {
		s.size = min(4*s.size, readMax)
	} else {
		s.size = readFirst
	}
	rows := s.size * rowsForEach
	err = s.run(s.near, from, int64(s.size), int64(rows))
	if n := len(s.list.Spots); err == nil && n < s.size && n >= s.size/4 {
		err = s.run(s.near, from, int64(s.size), int64(2*rows*s.size/n)) // this number is probably enough
	}
	return len(s.list.Spots) == s.size, err
}

func (s *search) newStatement(format string, indexed bool) *statement {
	b := &condition{}
	if b.text = b.match(s.query, indexed, true); hasWord(s.query) { // if indexed is not set, the condition is fast to compute for one row
		b.text += " AND (NOT lexemes @@ '''" + tooLong + "''' OR " + b.matchLine(s.query) + ")"
	}
	compare, order, n := "<=", "DESC", len(b.args)
	if s.up {
		compare, order = ">=", "ASC"
	}
	return &statement{fmt.Sprintf(format, b.text, compare, order, n+1, n+2, n+3), b.args}
}

// run executes a statement with its last parameters, and puts the postings it finds into the list.
func (s *search) run(st *statement, last ...driver.Value) error {
	s.list.Spots = nil
	if err := s.c.Execute(changeSettings, 0); err != nil {
		return err
	}
	err := s.c.QueryOnce(st.text, append(slices.Clip(st.args), last...), func(r []driver.Value) error {
		found, _ := r[0].([]byte)
		s.list.Spots = make([]int64, 0, len(found)/8)
		for ; len(found) >= 8; found = found[8:] {
			s.list.Spots = append(s.list.Spots, int64(binary.BigEndian.Uint64(found)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(s.list.Spots); n > 0 {
		s.next, _ = postings.Next(s.list.Spots[n-1], s.up)
	}
	return s.c.Execute(restoreSettings, 0)
}
