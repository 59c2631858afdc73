// The index of terms in the database: kept right by every save.

package store

import (
	"database/sql/driver"
	"math"
	"slices"
	"strings"
	"sync"

	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

var (
	insertTerms = &sqlite.Statement{Head: "INSERT INTO terms (rowid, term) VALUES ", Tuple: "(?, ?)"}
	deleteTerms = &sqlite.Statement{Head: "INSERT INTO terms (terms, rowid, term) VALUES ('delete', ?, ?)"}
	upsertSpan  = &sqlite.Statement{Head: `INSERT INTO span (shape, field, least, most) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT DO UPDATE SET least = min(least, excluded.least), most = max(most, excluded.most)`}
	selectSpan  = &sqlite.Statement{Head: "SELECT least, most FROM span WHERE shape = ? AND field = ?"}
	selectSpans = &sqlite.Statement{Head: "SELECT shape, field, least, most FROM span"}
)

// index brings the indexes up to date with some edits, in a transaction.
func (db indexer) index(c *sqlite.Conn, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	db.cutting.members = readFacts(edits, db.cutting.members[:0])
	if err := db.indexTerms(c, indexed(edits, db.built.terms.Load())); err != nil {
		return err
	}
	return putWords(c, &db.cutting, indexed(edits, db.built.words.Load()))
}

func (db indexer) indexTerms(c *sqlite.Conn, edits []edit) error {
	var writes []write
	grown := growing{c: c, of: map[spanName]timeSpan{}, news: map[spanName]bool{}}
	var was, is []byte
	for i := range edits {
		e := &edits[i]
		was, is = was[:0], is[:0]
		if e.old != nil {
			was = termText(was, e.kind.terms, e.shape, secondOf(postings.Position(e.was)), e.old.Parent, &e.oldFacts, nil)
		}
		if e.new != nil {
			is = termText(is, e.kind.terms, e.shape, secondOf(postings.Position(e.is)), e.new.Parent, &e.newFacts, func(field string, unix int64) {
				grown.see(spanName{e.shape, field}, unix)
			})
		}
		if len(was) > 0 {
			writes = append(writes, write{spot: e.was, out: true, text: string(was)})
		}
		if len(is) > 0 {
			writes = append(writes, write{spot: e.is, text: string(is)})
		}
	}
	inFalling(writes)
	if err := putTerms(c, writes); err != nil {
		return err
	}
	if err := grown.put(); err != nil {
		return err
	}
	db.spans.add(grown.of)
	return nil
}

// putTerms writes rows in their order. Rows that only come are written together.
func putTerms(c *sqlite.Conn, writes []write) error {
	var args []driver.Value
	for len(writes) > 0 {
		n := 1
		for n < len(writes) && writes[n].spot == writes[0].spot {
			n++
		}
		out, in := termsOf(writes[:n])
		if out != "" {
			if err := c.ExecMany(insertTerms, 2, args); err != nil {
				return err
			}
			args = args[:0]
			if err := c.Exec(deleteTerms, 0, termRow(writes[0].spot), out); err != nil {
				return err
			}
		}
		if in != nil {
			args = append(args, termRow(writes[0].spot), *in)
		}
		writes = writes[n:]
	}
	return c.ExecMany(insertTerms, 2, args)
}

// termsOf is what is taken out of one spot and what is put in; in is nil when
// there is no row to put. A word that is taken out and put in at once must be told
// as neither: FTS5 loses what follows it then (detail=none with secure-delete).
// FTS5 counts rows in and out, whatever is in them: one that had words and has
// others is put in, though it may have no new ones.
func termsOf(writes []write) (out string, in *string) {
	if len(writes) == 1 {
		if w := &writes[0]; w.out {
			return w.text, nil
		}
		return "", &writes[0].text
	}
	var outs, ins []string
	for _, w := range writes {
		if w.out {
			outs = append(outs, strings.Fields(w.text)...)
		} else {
			ins = append(ins, strings.Fields(w.text)...)
		}
	}
	if len(outs) > 0 && len(ins) > 0 {
		outs, ins = lacking(outs, ins), lacking(ins, outs)
		if len(outs)+len(ins) == 0 {
			return "", nil
		}
	} else if len(ins) == 0 {
		return strings.Join(outs, " "), nil
	}
	text := strings.Join(ins, " ")
	return strings.Join(outs, " "), &text
}

// termRow is the number of a spot's row, and the spot of a row's number: they
// fall as spots rise, since FTS5 reads its rows much faster upwards, and the
// newest records are those most asked for.
func termRow(spot int64) int64 { return -max(spot, -math.MaxInt64) }

// lacking are the words of a that b lacks.
func lacking(a, b []string) (words []string) {
	for _, word := range a {
		if !slices.Contains(b, word) {
			words = append(words, word)
		}
	}
	return words
}

// spans are the times that fields have had far from their places, and the
// differences of those that were near, as span has them. They only grow, and may
// be wider than what is held.
type spans struct {
	mu sync.RWMutex
	of map[spanName]timeSpan
}

type spanName struct {
	shape int64
	field string
}

type timeSpan struct{ least, most int64 }

// with is the span with another time in it.
func (s timeSpan) with(unix int64) timeSpan {
	return timeSpan{min(s.least, unix), max(s.most, unix)}
}

// growing is spans under way in one transaction, as the file has them and then
// with what is seen. The file is asked, since what is in memory may be from a
// transaction that failed.
type growing struct {
	c    *sqlite.Conn
	of   map[spanName]timeSpan
	news map[spanName]bool // which the file has not
	err  error
}

// see takes a time in.
func (g *growing) see(name spanName, unix int64) {
	one, ok := g.of[name]
	if !ok && g.err == nil {
		ok, g.err = g.c.One(selectSpan, []driver.Value{name.shape, name.field}, func(r []driver.Value) {
			one = timeSpan{r[0].(int64), r[1].(int64)}
		})
	}
	wide := timeSpan{unix, unix}
	if ok {
		wide = one.with(unix)
	}
	if g.of[name] = wide; !ok || wide != one {
		g.news[name] = true
	}
}

// put writes what is news.
func (g *growing) put() error {
	for name := range g.news {
		if g.err != nil {
			break
		}
		s := g.of[name]
		g.err = g.c.Exec(upsertSpan, 0, name.shape, name.field, s.least, s.most)
	}
	return g.err
}

// add makes them known. A transaction that then fails has made them wider in
// memory than in the file, which costs nothing but looking.
func (s *spans) add(seen map[spanName]timeSpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[spanName]timeSpan{}
	}
	for name, one := range seen {
		if old, ok := s.of[name]; ok {
			one = one.with(old.least).with(old.most)
		}
		s.of[name] = one
	}
}

func (s *spans) get(name spanName) (timeSpan, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	one, ok := s.of[name]
	return one, ok
}

// readSpans learns them from the database.
func (db indexer) readSpans(c *sqlite.Conn) error {
	all, err := readSpanTable(c)
	if err == nil {
		db.spans.add(all)
	}
	return err
}

// readSpanTable are those in the file.
func readSpanTable(c *sqlite.Conn) (map[spanName]timeSpan, error) {
	all := map[spanName]timeSpan{}
	err := c.Query(selectSpans, 0, nil, func(r []driver.Value) error {
		all[spanName{r[0].(int64), r[1].(string)}] = timeSpan{r[2].(int64), r[3].(int64)}
		return nil
	})
	return all, err
}
