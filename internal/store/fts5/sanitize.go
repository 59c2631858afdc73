// This file removes what the index of words keeps of deleted words.
//
// A page of the index is found by a separator text between the last word before the page and its first word.
// The separator stays when that word is deleted. It is then replaced by the beginning of a word that still
// exists.

package fts5

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/db"
)

// minRevealing is how many characters of a word reveal something: the tag of four characters and four letters.
const minRevealing = 4 + 4

var (
	selectSeparators = &db.Statement{Head: "SELECT segid, CAST(term AS BLOB), pgno FROM words_idx WHERE length(term) > ? " +
		"ORDER BY segid, term"}
	updateSeparator  = &db.Statement{Head: "UPDATE words_idx SET term = ? WHERE segid = ? AND pgno = ?"}
	deleteSeparator  = &db.Statement{Head: "DELETE FROM words_idx WHERE segid = ? AND pgno = ?"}
	selectSeparator  = &db.Statement{Head: "SELECT pgno FROM words_idx WHERE segid = ? AND term = ?"}
	selectStructure  = &db.Statement{Head: "SELECT block FROM words_data WHERE id = 10"}
	deleteSegment    = &db.Statement{Head: "DELETE FROM words_data WHERE id BETWEEN ? AND ?"}
	deleteSeparators = &db.Statement{Head: "DELETE FROM words_idx WHERE segid = ?"}
)

// segmentShift is the position of a segment's number in the ids of its pages (fts5_index.c: FTS5_SEGMENT_ROWID).
const segmentShift = 37

// separator is the text by which a page of the index is found. Its first byte is not a part of the word.
type separator struct {
	segment, page int64
	text          string
}

// Sanitize implements wordrows.Table.
func (Table) Sanitize(ctx context.Context, pool *db.Pool) error {
	if err := pool.ReleaseChange(ctx, dropMerged); err != nil {
		return err
	}
	for {
		var stale []separator
		err := pool.Read(ctx, func(c db.Conn) (err error) {
			stale, err = listStale(c)
			return err
		})
		if err != nil || len(stale) == 0 {
			return err
		}
		slices.Reverse(stale)
		err = pool.ReleaseChange(ctx, func(c db.Conn) error {
			for i := range stale {
				if err := replaceSeparator(c, &stale[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// dropMerged deletes the segments that a merge has read completely, as FTS5 does at the end of the merge.
func dropMerged(c db.Conn) error {
	var structure []byte
	if _, err := db.QueryRow(c, selectStructure, nil, func(r []driver.Value) { structure = slices.Clone(r[0].([]byte)) }); err != nil {
		return err
	}
	for _, segment := range mergedSegments(structure) {
		if err := c.Execute(deleteSegment, 0, segment<<segmentShift, (segment+1)<<segmentShift-1); err != nil {
			return err
		}
		if err := c.Execute(deleteSeparators, 0, segment); err != nil {
			return err
		}
	}
	return nil
}

// mergedSegments returns the segments of an index that have no page left to read. The structure is a cookie of
// four bytes and the numbers of levels, segments and writes. Then for each level it has the number of segments
// being merged, the number of segments, and the number, first and last page of each (fts5_index.c:
// fts5StructureDecode). For any other structure the result is empty.
func mergedSegments(structure []byte) (merged []int64) {
	rest := structure[min(4, len(structure)):]
	next := func() (n int64) {
		for i, b := range rest {
			if n = n<<7 | int64(b&0x7f); b < 0x80 {
				rest = rest[i+1:]
				return n
			}
			if i == 7 {
				break
			}
		}
		rest = nil
		return 0
	}
	levels := next()
	next()
	next()
	for ; levels > 0 && len(rest) > 0; levels-- {
		next()
		for n := next(); n > 0 && len(rest) >= 3; n-- {
			if segment, first, last := next(), next(), next(); segment > 0 && first == 0 && last == 0 {
				merged = append(merged, segment)
			}
		}
	}
	return merged
}

// replaceSeparator replaces a separator, unless a word begins with it again or the pages of the index have changed.
func replaceSeparator(c db.Conn, s *separator) error {
	is, err := findSeparator(c, s.segment, s.text)
	if err != nil || is != s.page {
		return err
	}
	stands, with, err := checkWord(c, s.text)
	if err != nil || stands {
		return err
	}
	other := s.page
	if with != "" {
		if other, err = findSeparator(c, s.segment, with); err != nil {
			return err
		}
	}
	if other != 0 {
		// Words after the separator begin in a later page, or there are none. So this page has no words.
		return c.Execute(deleteSeparator, 0, s.segment, s.page)
	}
	return c.Execute(updateSeparator, 0, []byte(with), s.segment, s.page)
}

// findSeparator returns the page of the index that has a separator, or 0 if no page has it.
func findSeparator(c db.Conn, segment int64, text string) (page int64, err error) {
	_, err = db.QueryRow(c, selectSeparator, []driver.Value{segment, []byte(text)}, func(r []driver.Value) { page = r[0].(int64) })
	return page, err
}

// listStale returns the separators with which no word begins any more.
func listStale(c db.Conn) (stale []separator, err error) {
	var all []separator
	err = db.VisitRows(c, selectSeparators, []driver.Value{int64(minRevealing)}, func(r []driver.Value) {
		all = append(all, separator{segment: r[0].(int64), text: string(r[1].([]byte)), page: r[2].(int64)})
	})
	for _, s := range all {
		if err != nil {
			return nil, err
		}
		var stands bool
		if stands, _, err = checkWord(c, s.text); err == nil && !stands {
			stale = append(stale, s)
		}
	}
	return stale, err
}

// checkWord reports whether a word in the index begins with a separator. If not, with is a replacement, or ""
// if no word comes after it. The replacement must come after the words of the page before, as the separator
// does, and before those of its own page. None of these comes before the next existing word.
func checkWord(c db.Conn, text string) (stands bool, with string, err error) {
	mark, word := text[:1], text[1:]
	next := "" // the first word in the index that is not before word
	_, err = db.QueryRow(c, selectWord, []driver.Value{word}, func(r []driver.Value) { next, _ = r[0].(string) })
	if err != nil || strings.HasPrefix(next, word) {
		return true, "", err
	}
	if next == "" {
		return false, "", nil
	}
	n := 0
	for n < len(next) && n < len(word) && next[n] == word[n] {
		n++
	}
	return false, mark + next[:min(n+1, len(next))], nil
}
