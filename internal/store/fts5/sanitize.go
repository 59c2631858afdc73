// What the index of words keeps of words that are in it no more.
//
// A page of the index is found by text that stands between the last word before
// it and its first one, and stays when that word is taken out. What is left of it
// there is replaced by the beginning of a word that is still there.

package fts5

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/sqlite"
)

// leastTelling is how long a piece of a word must be to tell something: four
// letters after its tag of four.
const leastTelling = 4 + 4

var (
	selectSeparators = &sqlite.Statement{Head: "SELECT segid, CAST(term AS BLOB), pgno FROM words_idx WHERE length(term) > ? " +
		"ORDER BY segid, term"}
	updateSeparator  = &sqlite.Statement{Head: "UPDATE words_idx SET term = ? WHERE segid = ? AND pgno = ?"}
	deleteSeparator  = &sqlite.Statement{Head: "DELETE FROM words_idx WHERE segid = ? AND pgno = ?"}
	selectSeparator  = &sqlite.Statement{Head: "SELECT pgno FROM words_idx WHERE segid = ? AND term = ?"}
	selectStructure  = &sqlite.Statement{Head: "SELECT block FROM words_data WHERE id = 10"}
	deleteSegment    = &sqlite.Statement{Head: "DELETE FROM words_data WHERE id BETWEEN ? AND ?"}
	deleteSeparators = &sqlite.Statement{Head: "DELETE FROM words_idx WHERE segid = ?"}
)

// segmentShift is where a segment's number stands in the ids of its pages
// (fts5_index.c: FTS5_SEGMENT_ROWID).
const segmentShift = 37

// separator is the text by which a page of the index is found. Its first byte
// is not of the word.
type separator struct {
	segment, page int64
	text          string
}

// Sanitize replaces what words that are gone have left in the index, in short
// transactions.
func Sanitize(ctx context.Context, pool *sqlite.Pool) error {
	err := pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		return c.Transaction(ctx, sqlite.BeginWrite, func() error { return dropMerged(c) })
	})
	if err != nil {
		return err
	}
	for {
		var stale []separator
		err := pool.Read(ctx, func(c *sqlite.Conn) (err error) {
			stale, err = staleSeparators(c)
			return err
		})
		if err != nil || len(stale) == 0 {
			return err
		}
		slices.Reverse(stale)
		err = pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
			return c.Transaction(ctx, sqlite.BeginWrite, func() error {
				for i := range stale {
					if err := replaceSeparator(c, &stale[i]); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
}

// dropMerged deletes the segments that a merge has read to their end, as FTS5 does
// when the merge is over.
func dropMerged(c *sqlite.Conn) error {
	var structure []byte
	if _, err := c.One(selectStructure, nil, func(r []driver.Value) { structure = slices.Clone(r[0].([]byte)) }); err != nil {
		return err
	}
	for _, segment := range mergedSegments(structure) {
		if err := c.Exec(deleteSegment, 0, segment<<segmentShift, (segment+1)<<segmentShift-1); err != nil {
			return err
		}
		if err := c.Exec(deleteSeparators, 0, segment); err != nil {
			return err
		}
	}
	return nil
}

// mergedSegments are the segments of an index that have no page left to read. The
// structure is a cookie of four bytes, the numbers of levels, segments and writes,
// and for each level how many segments are being merged, how many it has, and of
// each its number, first and last page (fts5_index.c: fts5StructureDecode); none of
// a structure that is not so.
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

// replaceSeparator replaces one, unless it stands for a word again, or the pages
// of the index are others now.
func replaceSeparator(c *sqlite.Conn, s *separator) error {
	is, err := separatorIs(c, s.segment, s.text)
	if err != nil || is != s.page {
		return err
	}
	stands, with, err := standsFor(c, s.text)
	if err != nil || stands {
		return err
	}
	other := s.page
	if with != "" {
		if other, err = separatorIs(c, s.segment, with); err != nil {
			return err
		}
	}
	if other != 0 {
		// Words after it begin in a later page or there are none: this one has none.
		return c.Exec(deleteSeparator, 0, s.segment, s.page)
	}
	return c.Exec(updateSeparator, 0, []byte(with), s.segment, s.page)
}

// separatorIs is the page a separator stands for, 0 when there is none.
func separatorIs(c *sqlite.Conn, segment int64, text string) (page int64, err error) {
	_, err = c.One(selectSeparator, []driver.Value{segment, []byte(text)}, func(r []driver.Value) { page = r[0].(int64) })
	return page, err
}

// staleSeparators are those that no word begins with any more.
func staleSeparators(c *sqlite.Conn) (stale []separator, err error) {
	var all []separator
	err = c.Query(selectSeparators, 0, []driver.Value{int64(leastTelling)}, func(r []driver.Value) error {
		all = append(all, separator{segment: r[0].(int64), text: string(r[1].([]byte)), page: r[2].(int64)})
		return nil
	})
	for _, s := range all {
		if err != nil {
			return nil, err
		}
		var stands bool
		if stands, _, err = standsFor(c, s.text); err == nil && !stands {
			stale = append(stale, s)
		}
	}
	return stale, err
}

// standsFor reports whether a word in the index begins as a separator says, and
// what can stand in its place when none does ("": there is no word after it): it
// must come after the words of the page before, as the separator does, and before
// those of its own page, of which none comes before the next word there is.
func standsFor(c *sqlite.Conn, text string) (stands bool, with string, err error) {
	mark, word := text[:1], text[1:]
	next, err := Next(c, word)
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
