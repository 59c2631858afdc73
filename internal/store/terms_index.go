// The index of terms in the database: kept right by every save.

package store

import (
	"database/sql/driver"
	"slices"
	"sync"

	"understudy/internal/store/inverted"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/words"
)

var (
	upsertSpan = &sqlite.Statement{Head: `INSERT INTO span (shape, field, least, most) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT DO UPDATE SET least = min(least, excluded.least), most = max(most, excluded.most)`}
	selectSpan  = &sqlite.Statement{Head: "SELECT least, most FROM span WHERE shape = ? AND field = ?"}
	selectSpans = &sqlite.Statement{Head: "SELECT shape, field, least, most FROM span"}
)

// index brings the indexes up to date with some edits, in a transaction.
func (db indexer) index(c *sqlite.Conn, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	db.members = readFacts(edits, db.members[:0])
	if err := db.indexTerms(c, indexed(edits, db.built.terms.Load())); err != nil {
		return err
	}
	return words.Update(c, &db.cutter, wordEdits(nil, indexed(edits, db.built.words.Load())))
}

func (db indexer) indexTerms(c *sqlite.Conn, edits []edit) error {
	var out, in []inverted.Entry
	grown := growing{c: c, of: map[spanName]timeSpan{}, news: map[spanName]bool{}}
	var buf []int64
	for i := range edits {
		e := &edits[i]
		buf = buf[:0]
		if e.old != nil {
			buf = appendTokens(buf, e.kind.terms, e.shape, secondOf(postings.Position(e.was)), e.old.Parent, &e.oldFacts, nil)
		}
		out = appendEntries(out, buf, e.was)
		buf = buf[:0]
		if e.new != nil {
			buf = appendTokens(buf, e.kind.terms, e.shape, secondOf(postings.Position(e.is)), e.new.Parent, &e.newFacts,
				func(field string, unix int64) { grown.see(spanName{e.shape, field}, unix) })
		}
		in = appendEntries(in, buf, e.is)
	}
	if err := inverted.Update(c, out, in); err != nil {
		return err
	}
	if err := grown.put(); err != nil {
		return err
	}
	db.spans.add(grown.of)
	return nil
}

// appendEntries appends the entries of a record's tokens, each once.
func appendEntries(dst []inverted.Entry, tokens []int64, spot int64) []inverted.Entry {
	slices.Sort(tokens)
	for _, token := range slices.Compact(tokens) {
		dst = append(dst, inverted.Entry{Token: token, Posting: spot})
	}
	return dst
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
