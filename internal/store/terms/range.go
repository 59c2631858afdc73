// Ranges: between which times a field is looked for.

package terms

import (
	"database/sql/driver"
	"strings"
	"sync"

	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

var (
	upsertSpan = &sqlite.Statement{Head: `INSERT INTO span (shape, field, least, most) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT DO UPDATE SET least = min(least, excluded.least), most = max(most, excluded.most)`}
	selectSpan  = &sqlite.Statement{Head: "SELECT least, most FROM span WHERE shape = ? AND field = ?"}
	selectSpans = &sqlite.Statement{Head: "SELECT shape, field, least, most FROM span"}
)

// Ranges are the times that fields have had far from their places, and the differences of those that were near, as
// the table span has them. They only grow, and may be wider than what is held. Many goroutines may use them at once.
type Ranges struct {
	mu sync.RWMutex
	of map[rangeName]timeRange
}

type rangeName struct {
	shape int64
	field string
}

type timeRange struct{ least, most int64 }

// with is the range with another time in it.
func (s timeRange) with(unix int64) timeRange {
	return timeRange{min(s.least, unix), max(s.most, unix)}
}

// growing is ranges under way in one transaction, as the file has them and then with what is seen. The file is asked,
// since what is in memory may be from a transaction that failed.
type growing struct {
	c    *sqlite.Conn
	of   map[rangeName]timeRange
	news map[rangeName]bool // which the file has not
	err  error
}

// see takes a time in.
func (g *growing) see(name rangeName, unix int64) {
	one, ok := g.of[name]
	if !ok && g.err == nil {
		ok, g.err = g.c.One(selectSpan, []driver.Value{name.shape, name.field}, func(r []driver.Value) {
			one = timeRange{r[0].(int64), r[1].(int64)}
		})
	}
	wide := timeRange{unix, unix}
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
func (r *Ranges) add(seen map[rangeName]timeRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[rangeName]timeRange{}
	}
	for name, one := range seen {
		if old, ok := r.of[name]; ok {
			one = one.with(old.least).with(old.most)
		}
		r.of[name] = one
	}
}

func (r *Ranges) get(name rangeName) (timeRange, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	one, ok := r.of[name]
	return one, ok
}

// Load reads them from the file.
func (r *Ranges) Load(c *sqlite.Conn) error {
	all := map[rangeName]timeRange{}
	err := c.Query(selectSpans, 0, nil, func(r []driver.Value) error {
		all[rangeName{r[0].(int64), r[1].(string)}] = timeRange{r[2].(int64), r[3].(int64)}
		return nil
	})
	if err == nil {
		r.add(all)
	}
	return err
}

// Tokens are those of a record of a kind at a posting. outside is called with each
// field that has a time which is not looked for by these ranges.
func (r *Ranges) Tokens(k *Kind, posting int64, f *query.Facts, outside func(field string)) []int64 {
	return k.appendTokens(nil, posting, f, func(field string, unix int64) {
		if s, ok := r.get(rangeName{postings.Shape(posting), field}); !ok || s.with(unix) != s {
			outside(strings.TrimPrefix(field, nearName("")))
		}
	})
}
