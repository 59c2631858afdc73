// The index of words: rows written and taken out with what they are the words
// of, and read as a stream of spots.

package store

import (
	"cmp"
	"database/sql/driver"
	"slices"
	"strings"
	"sync/atomic"

	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

var (
	insertWords = &sqlite.Statement{Head: "INSERT INTO words (rowid, body, plain, plain2, plain3, phone, phone2, name, url, other) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
	deleteWords = &sqlite.Statement{Head: "INSERT INTO words (words, rowid, body, plain, plain2, plain3, phone, phone2, name, url, " +
		"other) VALUES ", Tuple: "('delete', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"}
)

// wordWrite is one row that is to be written or taken out.
type wordWrite struct {
	spot int64
	out  bool
	row  wordRow
}

// wordWrites are what edits come to. What stays as it is is not written.
func wordWrites(x *cutting, edits []edit) (writes []wordWrite) {
	for i := range edits {
		e := &edits[i]
		kind, rule := e.kind.number, e.kind.text
		var old, new wordRow
		if e.old != nil {
			old = x.row(kind, rule, &e.oldFacts)
		}
		if e.new == e.old {
			new = old
		} else if e.new != nil {
			new = x.row(kind, rule, &e.newFacts)
		}
		if old == new && e.was == e.is {
			continue
		}
		if !old.empty() {
			writes = append(writes, wordWrite{e.was, true, old})
		}
		if !new.empty() {
			e.kind.said.add(&new)
			writes = append(writes, wordWrite{e.is, false, new})
		}
	}
	slices.SortStableFunc(writes, func(a, b wordWrite) int {
		if c := cmp.Compare(a.spot, b.spot); c != 0 || a.out == b.out {
			return c
		}
		if a.out {
			return -1
		}
		return 1
	})
	return writes
}

// putWords brings the index in line with edits, in a transaction.
func putWords(c *sqlite.Conn, x *cutting, edits []edit) error {
	writes := wordWrites(x, edits)
	var args []driver.Value
	for i := 0; i < len(writes); {
		args = args[:0]
		st, n := insertWords, i
		if writes[i].out {
			st = deleteWords
		}
		for ; n < len(writes) && writes[n].out == writes[i].out; n++ {
			args = append(args, writes[n].spot)
			for _, text := range writes[n].row {
				if text == "" {
					args = append(args, nil) // costs no memory of the driver
				} else {
					args = append(args, text)
				}
			}
		}
		if err := c.ExecMany(st, 1+int(columns), args); err != nil {
			return err
		}
		i = n
	}
	return nil
}

var (
	selectWordsDown = &sqlite.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?"}
	selectWordsUp   = &sqlite.Statement{Head: "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? ORDER BY rowid LIMIT ?"}
)

// said is the classes of which a kind has words in the index, or had some since
// the store was opened: a question looks for no others. A bit is set before the
// words are committed.
type said struct{ bits atomic.Uint32 }

func (s *said) has(c column) bool { return s.bits.Load()>>c&1 != 0 }

// add adds the classes of a row.
func (s *said) add(row *wordRow) {
	for _, c := range classColumns {
		if row[c] != "" {
			s.bits.Or(1 << c)
		}
	}
}

// readSaid is part of opening: it looks which classes of which kinds have words.
// Where the index cannot be read each may: who asks is told.
func (db indexer) readSaid(c *sqlite.Conn) {
	for _, k := range db.catalog.kinds {
		for _, class := range classColumns {
			tag := wordTag(k.number, class)
			if word, err := nextWord(c, tag); err != nil || strings.HasPrefix(word, tag) {
				k.said.bits.Or(1 << class)
			}
		}
	}
}

// wordSpots are the spots of what a text plan finds in some kinds.
func wordSpots(c *sqlite.Conn, p *textPlan, kinds []*kindPlan, up bool) (postings.Iterator, error) {
	if p == nil {
		return &postings.Slice{Up: up}, nil
	}
	match, err := p.match(kinds, func(prefix string) ([]string, error) { return wordsBeginning(c, prefix) })
	if err != nil {
		return nil, err
	}
	st := selectWordsDown
	if up {
		st = selectWordsUp
	}
	return &postings.Scan{C: c, St: st, Args: []driver.Value{match}, Up: up}, nil
}

// maxBeginning is how many words that begin in a way are looked for one by one.
const maxBeginning = 64

var selectWord = &sqlite.Statement{Head: "SELECT term FROM word WHERE term >= ? LIMIT 1"}

// nextWord is the first word in the index that is not before one; "" when
// there is none.
func nextWord(c *sqlite.Conn, from string) (word string, err error) {
	_, err = c.One(selectWord, []driver.Value{from}, func(r []driver.Value) { word, _ = r[0].(string) })
	return word, err
}

// wordsBeginning are the words in the index that begin with one, and that one; none
// when they are too many.
func wordsBeginning(c *sqlite.Conn, prefix string) (all []string, err error) {
	all = append(all, prefix)
	for from := prefix; len(all) < maxBeginning; {
		word, err := nextWord(c, from)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(word, prefix) {
			return all, nil
		}
		if word != prefix {
			all = append(all, word)
		}
		from = word + "\x01" // words have no such character
	}
	return nil, nil
}
