// The index under random updates and merges, compared with a map.

package inverted

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	cases "understudy/internal/sample"
	"understudy/internal/store/db"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// table is a file with the two tables of the schema.
func table(t testing.TB) *sqlite.Conn {
	t.Helper()
	c, err := sqlite.Dial(context.Background(), filepath.Join(t.TempDir(), "index.db"), 8<<10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, text := range []string{
		"PRAGMA synchronous = OFF",
		"PRAGMA journal_mode = MEMORY",
		"CREATE TABLE term_run (number INTEGER PRIMARY KEY, level INTEGER NOT NULL, target INTEGER NOT NULL) STRICT",
		"CREATE TABLE term_chunk (run INTEGER NOT NULL, token INTEGER NOT NULL, posting INTEGER NOT NULL, body BLOB NOT NULL) STRICT",
		"CREATE UNIQUE INDEX term_chunk_first ON term_chunk (run, token, posting)",
	} {
		if err := c.ExecuteOnce(text); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// model is the index as it is to be.
type model struct {
	*testing.T
	c    *sqlite.Conn
	rng  *rand.Rand
	seed uint64
	held map[Entry]bool
	all  []Entry // those ever put in, a few times maybe
	// out and in are pending.
	out, in []Entry
}

func (m *model) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("seed %d: %v", m.seed, err)
	}
}

// entry is a random one: tokens are few, some or many; postings crowd or do not.
func (m *model) entry() Entry {
	token, posting := m.rng.Int64N(1<<60), m.rng.Int64N(1<<50)-1<<49
	switch m.rng.IntN(4) {
	case 0:
		token = m.rng.Int64N(3) << 40
	case 1:
		token &= 0xff << 52
	}
	if m.rng.IntN(2) == 0 {
		posting = m.rng.Int64N(1 << 12)
	}
	if m.rng.IntN(3) == 0 {
		posting <<= postings.ShapeBits
	}
	return Entry{token, posting}
}

// update takes some out and puts some in, in a transaction that may be undone.
func (m *model) update(most int) {
	var out, in []Entry
	for range m.rng.IntN(most) {
		if e := m.entry(); !m.held[e] && !slices.Contains(in, e) {
			in = append(in, e)
		}
	}
	for range m.rng.IntN(most / 4) {
		if len(m.all) == 0 {
			break
		}
		e := m.all[m.rng.IntN(len(m.all))]
		if m.held[e] && !slices.Contains(out, e) {
			out = append(out, e)
			if m.rng.IntN(8) == 0 { // and in again
				in = append(in, e)
			}
		}
	}
	left, undone := m.rng.IntN(3) == 0, m.rng.IntN(8) == 0
	if !left {
		m.must(m.c.ExecuteOnce("BEGIN IMMEDIATE"))
		m.must(Update(m.c, NewPending(append(slices.Clone(m.out), out...), append(slices.Clone(m.in), in...))))
	}
	switch {
	case left:
		m.out, m.in = append(m.out, out...), append(m.in, in...)
	case undone:
		m.must(m.c.ExecuteOnce("ROLLBACK"))
		return
	default:
		m.must(m.c.ExecuteOnce("COMMIT"))
		m.out, m.in = nil, nil
	}
	for _, e := range out {
		delete(m.held, e)
	}
	for _, e := range in {
		m.held[e] = true
		m.all = append(m.all, e)
	}
}

// same compares all there is, and what is found of some tokens from somewhere on.
func (m *model) same() {
	m.Helper()
	pending := NewPending(slices.Clone(m.out), slices.Clone(m.in))
	has := map[Entry]bool{}
	m.must(VisitEntries(m.c, func(e Entry) error {
		if has[e] {
			m.Fatalf("seed %d: the index has %v twice", m.seed, e)
		}
		has[e] = true
		return nil
	}))
	pending.VisitEntries(func(e Entry, out bool) {
		if has[e] != out {
			m.Fatalf("seed %d: %v is pending, out %v", m.seed, e, out)
		}
		has[e] = !out
		if out {
			delete(has, e)
		}
	})
	if !maps.Equal(has, m.held) {
		m.Fatalf("seed %d: the index has %d entries, want %d, or others", m.seed, len(has), len(m.held))
	}
	for range min(20, len(m.all)) {
		up := m.rng.IntN(2) == 0
		tokens := []int64{m.all[m.rng.IntN(len(m.all))].Token}
		for range m.rng.IntN(3) {
			tokens = append(tokens, m.entry().Token)
		}
		meant := func(token int64) bool { return slices.Contains(tokens, token) }
		found := pending.Find(m.c, up, tokens...)
		if m.rng.IntN(3) == 0 { // those between two
			first, last := slices.Min(tokens), max(slices.Min(tokens)+m.rng.Int64N(3), slices.Max(tokens)-m.rng.Int64N(3))
			meant = func(token int64) bool { return first <= token && token <= last }
			found = pending.FindRange(m.c, up, first, last)
		}
		from := m.all[m.rng.IntN(len(m.all))].Posting + m.rng.Int64N(3) - 1
		if m.rng.IntN(2) == 0 {
			from = int64(math.MaxInt64)
			if up {
				from = math.MinInt64
			}
		}
		var want, got []int64
		for e := range m.held {
			if meant(e.Token) && !postings.IsBefore(e.Posting, from, up) {
				want = append(want, e.Posting)
			}
		}
		slices.SortFunc(want, postings.Compare(up))
		want = slices.Compact(want)
		for {
			posting, ok, err := found.Advance(from)
			m.must(err)
			if !ok {
				break
			}
			got = append(got, posting)
			if from, ok = postings.Next(posting, up); !ok {
				break
			}
		}
		if !slices.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			m.Fatalf("seed %d: tokens %v, up %v: %d found, want %d; the first that differ are %v, want %v", m.seed, tokens, up, len(got),
				len(want), got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
		}
	}
}

// TestRandomUpdates puts in and takes out at random, with merges on three levels,
// and compares all the index has with what it was told.
func TestRandomUpdates(t *testing.T) {
	t.Parallel()
	run := cases.OneIn(t, 20)
	for seed := range uint64(40) {
		if !run() {
			continue
		}
		m := &model{T: t, c: table(t), rng: rand.New(rand.NewPCG(seed, 7)), seed: seed, held: map[Entry]bool{}}
		most := []int{20, 400, 3000}[m.rng.IntN(3)]
		for step := range 120 {
			m.update(most)
			if step%30 == 29 {
				m.same()
			}
		}
		m.must(Clear(m.c))
		m.held, m.out, m.in = map[Entry]bool{}, nil, nil
		m.same()
	}
}

// TestRunsStayFew counts runs after saves like those of a walk.
func TestRunsStayFew(t *testing.T) {
	t.Parallel()
	c, rng := table(t), rand.New(rand.NewPCG(1, 2))
	const each = 100
	saves := cases.Count(600, 3000)
	posting, most := int64(0), 0
	for range saves {
		var in []Entry
		for range each {
			posting += 1 << postings.ShapeBits
			in = append(in, Entry{rng.Int64N(1 << 60), posting}, Entry{rng.Int64N(5), posting})
		}
		if err := Update(c, NewPending(nil, in)); err != nil {
			t.Fatal(err)
		}
		rs, err := readRuns(c)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(rs))
	}
	// Five levels of at most two rounds of runs and one that is filled.
	if limit := 5 * (2*runsPerMerge + 1); most > limit {
		t.Errorf("up to %d runs, want at most %d", most, limit)
	}
	n := 0
	if err := VisitEntries(c, func(Entry) error { n++; return nil }); err != nil || n != 2*saves*each {
		t.Errorf("%d entries, want %d: %v", n, 2*saves*each, err)
	}
}

// FuzzChunk reads bytes as the body of a chunk, and packs what it finds again.
func FuzzChunk(f *testing.F) {
	one, _ := pack([]Entry{{3, 7}, {3, 1 << 20}, {90, 12}, {1 << 59, -5}})
	f.Add(int64(3), int64(7), one.body)
	f.Add(int64(0), int64(0), []byte{0, 1, 0})
	f.Add(int64(0), int64(0), []byte{0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, token, posting int64, body []byte) {
		c := chunk{Entry{token, posting}, body}
		all, err := c.appendEntries(nil)
		if err != nil {
			if !db.IsDamaged(err) {
				t.Fatal(err)
			}
			return
		}
		if !slices.IsSortedFunc(all, Compare) || len(slices.Compact(slices.Clone(all))) != len(all) || len(all) == 0 || all[0].Token < 0 {
			return // no chunk of ours
		}
		for rest := all; len(rest) > 0; {
			one, n := pack(rest)
			if again, err := one.appendEntries(nil); err != nil || !slices.Equal(again, rest[:n]) {
				t.Fatalf("packed %v, read %v: %v", rest[:n], again, err)
			}
			rest = rest[n:]
		}
	})
}
