// This file keeps the ranges of times that occur in a field, so that a search covers no other times.

package terms

import (
	"database/sql/driver"
	"strings"

	"understudy/internal/query"
	"understudy/internal/store/db"
	"understudy/internal/store/postings"
	"understudy/kit/lockwatch"
)

var (
	upsertSpan = &db.Statement{Head: `INSERT INTO span (shape, field, least, most) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (shape, field) DO UPDATE SET least = CASE WHEN excluded.least < span.least THEN excluded.least ELSE span.least END,
		most = CASE WHEN excluded.most > span.most THEN excluded.most ELSE span.most END`}
	selectSpansOf = &db.Statement{Head: "SELECT field, least, most FROM span WHERE shape = ?"}
	selectSpans   = &db.Statement{Head: "SELECT shape, field, least, most FROM span"}
)

// Ranges are the ranges of each field's times that are far from their positions, and of the differences of near times,
// as table span stores them. A range only grows and may be wider than the stored times. Ranges is safe for concurrent
// use.
type Ranges struct {
	mu lockwatch.Mutex
	of map[rangeName]timeRange
}

type rangeName struct {
	shape int64
	field string
}

type timeRange struct{ first, last int64 }

// extend returns the range extended by a time.
func (s timeRange) extend(unix int64) timeRange {
	return timeRange{min(s.first, unix), max(s.last, unix)}
}

// Expect announces that BuildEntries will be called for records in a shape.
func Expect(c db.Conn, shape int64) error { return c.Expect(selectSpansOf, 0, shape) }

// growing are the ranges that one transaction extends. It reads them from the file, because the ranges in memory may
// come from a transaction that failed.
type growing struct {
	c       db.Conn
	read    map[int64]bool // the shapes whose ranges were read
	of      map[rangeName]timeRange
	changed map[rangeName]bool // the ranges to write to the file
	err     error
}

// note extends the range of a field by a time.
func (g *growing) note(name rangeName, unix int64) {
	if !g.read[name.shape] && g.err == nil {
		g.read[name.shape] = true
		g.err = db.VisitRows(g.c, selectSpansOf, []driver.Value{name.shape}, func(r []driver.Value) {
			g.of[rangeName{name.shape, r[0].(string)}] = timeRange{r[1].(int64), r[2].(int64)}
		})
	}
	one, ok := g.of[name]
	wide := timeRange{unix, unix}
	if ok {
		wide = one.extend(unix)
	}
	if g.of[name] = wide; !ok || wide != one {
		g.changed[name] = true
	}
}

// put writes the changed ranges.
func (g *growing) put() error {
	for name := range g.changed {
		if g.err != nil {
			break
		}
		s := g.of[name]
		g.err = g.c.Execute(upsertSpan, 0, name.shape, name.field, s.first, s.last)
	}
	return g.err
}

// add extends the ranges in memory. If the transaction fails afterwards, the ranges are wider than in the file. That
// only makes some searches longer.
func (r *Ranges) add(seen map[rangeName]timeRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[rangeName]timeRange{}
	}
	for name, one := range seen {
		if old, ok := r.of[name]; ok {
			one = one.extend(old.first).extend(old.last)
		}
		r.of[name] = one
	}
}

func (r *Ranges) get(name rangeName) (timeRange, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.of[name]
	return one, ok
}

// Load reads the ranges from the file.
func (r *Ranges) Load(c db.Conn) error {
	all := map[rangeName]timeRange{}
	err := db.VisitRows(c, selectSpans, nil, func(r []driver.Value) {
		all[rangeName{r[0].(int64), r[1].(string)}] = timeRange{r[2].(int64), r[3].(int64)}
	})
	if err == nil {
		r.add(all)
	}
	return err
}

// Tokens returns the tokens of a record at a posting. It calls outside for each field whose time is outside the ranges.
func (r *Ranges) Tokens(k *Kind, posting int64, f *query.Facts, outside func(field string)) []int64 {
	return k.appendTokens(nil, posting, f, func(field string, unix int64) {
		if s, ok := r.get(rangeName{postings.Shape(posting), field}); !ok || s.extend(unix) != s {
			outside(strings.TrimPrefix(field, differenceName("")))
		}
	})
}
