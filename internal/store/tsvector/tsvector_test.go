package tsvector

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store/db"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/postgres"
	"understudy/internal/store/postings"
	"understudy/internal/store/wordrows"
)

// pool has databases with the schema of the store.
var pool = pgtest.Pool{Prepare: func(ctx context.Context, dsn string) error {
	engine, err := postgres.NewEngine(dsn)
	if err != nil {
		return err
	}
	c, err := engine.Dial(ctx, true)
	if err != nil {
		return err
	}
	return errors.Join(engine.Prepare(ctx, c), c.Close())
}}

// open returns a connection to a database of the test's own.
func open(t testing.TB) db.Conn {
	t.Helper()
	engine, err := postgres.NewEngine(pool.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := engine.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checktest.NoError(t, c.Close(), "closing the connection") })
	return c
}

var table Table

// model is a table of words and the rows that must be in it.
type model struct {
	testing.TB
	c    db.Conn
	rng  *rand.Rand
	rows map[int64]wordrows.Row
}

func newModel(t testing.TB) *model {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &model{TB: t, c: open(t), rng: rand.New(rand.NewPCG(seed, 1)), rows: map[int64]wordrows.Row{}}
}

// words are words as a tokenizer gives them, and others that SQL, tsqueries and patterns treat in a special way.
var words = []string{"a", "ab", "abc", "b", "code", "your", "zanzibar", "it's", `back\slash`, "100%", "under_score", "x:*", "&", "|b",
	"(", "?1", "'", "%", "_", `\`, "é", "東", "京", "\ue000", "w" + strings.Repeat("é", 31)}

func (m *model) word() string { return words[min(m.rng.IntN(len(words)), m.rng.IntN(len(words)))] }

func (m *model) tag() string { return fmt.Sprintf("0%d0%d", m.rng.IntN(2), m.rng.IntN(3)) }

// row returns a row in which each column has words of one or more fields.
func (m *model) row() (row wordrows.Row) {
	for c := range row {
		if m.rng.IntN(2) == 0 {
			continue
		}
		var all []string
		for range 1 + m.rng.IntN(8) {
			all = append(all, m.tag()+m.word())
		}
		row[c] = strings.Join(all, " ")
	}
	return row
}

// save writes, replaces and deletes rows.
func (m *model) save(n int) {
	var writes []wordrows.Write
	for _, posting := range m.rng.Perm(4 * n)[:n] {
		posting := int64(posting - n)
		if row, ok := m.rows[posting]; ok {
			writes = append(writes, wordrows.Write{Posting: posting, Delete: true, Row: row})
			if delete(m.rows, posting); m.rng.IntN(3) == 0 {
				continue
			}
		}
		if row := m.row(); !row.IsEmpty() {
			writes = append(writes, wordrows.Write{Posting: posting, Row: row})
			m.rows[posting] = row
		}
	}
	m.update(writes)
}

func (m *model) update(writes []wordrows.Write) {
	wordrows.Sort(writes)
	_, err := m.c.RunTransaction(m.Context(), func() error { return table.Update(m.c, writes) })
	checktest.MustNoError(m, err, "saving")
}

// query returns a query of some depth.
func (m *model) query(depth int) (q wordrows.Query) {
	if depth > 0 && m.rng.IntN(3) > 0 {
		q.Op = []wordrows.Op{wordrows.AllParts, wordrows.AnyPart, wordrows.FirstWithoutSecond}[m.rng.IntN(3)]
		for range 2 {
			q.Parts = append(q.Parts, m.query(depth-1))
		}
		return q
	}
	q.Prefix = m.rng.IntN(3) == 0
	switch m.rng.IntN(8) {
	case 0: // nothing
	case 1: // phrases that have nothing in common
		for range 1 + m.rng.IntN(12) {
			phrase := m.tag() + m.word()
			for range m.rng.IntN(3) {
				phrase += " " + m.tag() + m.word()
			}
			q.Phrases = append(q.Phrases, phrase)
		}
	default: // the same words in some fields
		text := []string{m.word(), m.word(), m.word()}[:1+m.rng.IntN(3)*m.rng.IntN(2)]
		for range 1 + m.rng.IntN(20) {
			tag := m.tag()
			q.Phrases = append(q.Phrases, tag+strings.Join(text, " "+tag))
		}
	}
	return q
}

// check compares what a search finds with the rows that match.
func (m *model) check(q *wordrows.Query) {
	m.Helper()
	for _, up := range []bool{true, false} {
		var all []int64
		for posting, row := range m.rows {
			if q.Match(&row) {
				all = append(all, posting)
			}
		}
		slices.SortFunc(all, postings.Compare(up))
		step := m.rng.Int64N(2) * m.rng.Int64N(100) // how many postings are left out after each
		first := int64(math.MinInt64)
		if !up {
			step, first = -step, math.MaxInt64
		}
		var want, got []int64
		from := first
		for _, posting := range all {
			if !postings.IsBefore(posting, from, up) {
				want = append(want, posting)
				from, _ = postings.Next(posting, up)
				from += step
			}
		}
		_, err := m.c.RunReading(m.Context(), func() error {
			found, err := table.Search(m.c, q, up)
			if s, ok := found.(*search); ok && m.rng.IntN(2) == 0 {
				s.most = 10
			}
			from := first
			for ok := true; err == nil && ok; {
				var posting int64
				if posting, ok, err = found.Advance(from); ok {
					got = append(got, posting)
					from, _ = postings.Next(posting, up)
					from += step
				}
			}
			return err
		})
		checktest.MustNoError(m, err, "%+v", *q)
		if !slices.Equal(got, want) {
			m.Fatalf("%+v finds %v, want %v (up %v, step %d)", *q, got, want, up, step)
		}
	}
}

// A search finds the rows that match, in both orders, few or many, also with words that SQL or PostgreSQL's queries take
// for something else, and in rows without lexemes because their lines are too long.
func TestSearchFindsTheRowsThatMatch(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	for range sample.Count(1, 4) {
		m.save(300)
		some := &db.Statement{Head: "UPDATE words SET lexemes = '''!''' WHERE posting % 3 = 0"}
		checktest.MustNoError(t, m.c.Execute(some, 0), "making rows too long")
		for range 100 {
			q := m.query(3)
			m.check(&q)
		}
	}
}

// A TSVECTOR takes only 1 MiB of lexemes.
func TestLongRowsAreFound(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	row := m.row()
	row[0] = "0101first"
	for i := range 20_000 {
		row[0] += fmt.Sprintf(" 0101%050d", i)
	}
	m.rows[1] = row
	m.update([]wordrows.Write{{Posting: 1, Row: row}})
	for _, q := range []wordrows.Query{
		{Phrases: []string{"0101first"}},
		{Phrases: []string{fmt.Sprintf("0101%050d", 19_999)}},
		{Phrases: []string{"0101none"}},
		{Phrases: []string{fmt.Sprintf("0101first 0101%050d", 0)}},
		{Phrases: []string{fmt.Sprintf("0101first 0101%050d", 1)}},
	} {
		m.check(&q)
	}
}

// The words of the table are those of the rows, and none are left when it is cleared.
func TestAllWordsAreVisited(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	for range 3 {
		m.save(50)
	}
	visit := func() map[wordrows.Word]int {
		all := map[wordrows.Word]int{}
		_, err := m.c.RunReading(t.Context(), func() error {
			return table.VisitWords(m.c, func(w wordrows.Word) error {
				all[w]++
				return nil
			})
		})
		checktest.MustNoError(t, err, "visiting all words")
		return all
	}
	want := map[wordrows.Word]int{}
	for posting, row := range m.rows {
		w := wordrows.Write{Posting: posting, Row: row}
		w.VisitWords(func(word wordrows.Word) { want[word]++ })
	}
	if got := visit(); !maps.Equal(got, want) {
		t.Errorf("%d words are visited, want %d", len(got), len(want))
	}
	some := slices.Sorted(maps.Keys(m.rows))[0]
	damage := &db.Statement{Head: "UPDATE words SET lexemes = '''other''' WHERE posting = ?"}
	checktest.MustNoError(t, m.c.Execute(damage, 0, some), "damaging a row")
	if got := visit(); got[wordrows.Word{Posting: some}] != 1 || len(got) != len(want)+1 {
		t.Errorf("the damaged row %d is not noticed", some)
	}
	checktest.MustNoError(t, table.Clear(m.c), "clearing")
	if got := visit(); len(got) > 0 {
		t.Errorf("%d words are left", len(got))
	}
}

// A search leaves the settings of the transaction as they were.
func TestSearchRestoresTheSettings(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	read := func() (all string) {
		err := m.c.QueryOnce("SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE name NOT LIKE '%.%'", nil,
			func(r []driver.Value) error {
				all = r[0].(string)
				return nil
			})
		checktest.MustNoError(t, err, "reading the settings")
		return all
	}
	_, err := m.c.RunReading(t.Context(), func() error {
		before := read()
		found, err := table.Search(m.c, &wordrows.Query{Phrases: []string{"0101a"}}, true)
		if err == nil {
			_, _, err = found.Advance(math.MinInt64)
		}
		checktest.Equal(t, read(), before, "the settings after a search")
		return err
	})
	checktest.MustNoError(t, err, "searching")
}

// PostgreSQL has to take the way to the rows that a statement is written for, whatever it believes about their number.
func TestStatementsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	m.save(300)
	word, phrase := wordrows.Query{}, wordrows.Query{}
	for i := range 3 * phrasesTogether {
		word.Phrases = append(word.Phrases, fmt.Sprintf("01%02da", i))
		phrase.Phrases = append(phrase.Phrases, fmt.Sprintf("01%02[1]dcode 01%02[1]dyour", i))
	}
	q := wordrows.Query{Op: wordrows.AllParts, Parts: []wordrows.Query{word, phrase}}
	for _, o := range []struct {
		format  string
		indexed bool
		scan    string
		last    []driver.Value
		scans   int
	}{
		{inOrder, false, "Index Scan Backward using words_pkey", []driver.Value{int64(math.MaxInt64), int64(64), int64(4096)}, 1},
		{byIndex, true, "Bitmap Index Scan on words_lexemes", []driver.Value{int64(math.MaxInt64), int64(64)}, 3},
	} {
		s := &search{c: m.c, query: &q}
		st := s.newStatement(o.format, o.indexed)
		var plan []string
		_, err := m.c.RunReading(t.Context(), func() error {
			if err := m.c.Execute(changeSettings, 0); err != nil {
				return err
			}
			return m.c.QueryOnce("EXPLAIN "+st.text, append(st.args, o.last...), func(r []driver.Value) error {
				plan = append(plan, r[0].(string))
				return nil
			})
		})
		checktest.MustNoError(t, err, "explaining %s", st.text)
		all := strings.Join(plan, "\n")
		checktest.True(t, strings.Count(all, o.scan) >= o.scans, "the plan has fewer than %d of %s:\n%s", o.scans, o.scan, all)
		checktest.True(t, !strings.Contains(all, "Seq Scan"), "the plan reads the whole table:\n%s", all)
		checktest.Equal(t, strings.Contains(all, "Sort"), o.indexed, "whether the plan sorts:\n%s", all)
	}
}
