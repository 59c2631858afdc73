// The index under random updates and merges, compared with a map.

package inverted

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	cases "understudy/internal/sample"
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
		if err := c.Run(text); err != nil {
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
	undone := m.rng.IntN(8) == 0
	m.must(m.c.Run("BEGIN IMMEDIATE"))
	m.must(Update(m.c, slices.Clone(out), slices.Clone(in)))
	if undone {
		m.must(m.c.Run("ROLLBACK"))
		return
	}
	m.must(m.c.Run("COMMIT"))
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
	n := 0
	m.must(Each(m.c, func(e Entry) error {
		if n++; !m.held[e] {
			m.Fatalf("seed %d: the index has %v", m.seed, e)
		}
		return nil
	}))
	if n != len(m.held) {
		m.Fatalf("seed %d: the index has %d entries, want %d", m.seed, n, len(m.held))
	}
	for range min(20, len(m.all)) {
		up := m.rng.IntN(2) == 0
		tokens := []int64{m.all[m.rng.IntN(len(m.all))].Token}
		for range m.rng.IntN(3) {
			tokens = append(tokens, m.entry().Token)
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
			if slices.Contains(tokens, e.Token) && !postings.Before(e.Posting, from, up) {
				want = append(want, e.Posting)
			}
		}
		slices.SortFunc(want, postings.Compare(up))
		want = slices.Compact(want)
		found := Find(m.c, up, tokens...)
		for {
			posting, ok, err := found.Advance(from)
			m.must(err)
			if !ok {
				break
			}
			got = append(got, posting)
			if from, ok = postings.Following(posting, up); !ok {
				break
			}
		}
		if !slices.Equal(got, want) {
			m.Fatalf("seed %d: tokens %v, up %v:\n got %v\nwant %v", m.seed, tokens, up, got, want)
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
		m.held = map[Entry]bool{}
		m.same()
	}
}

// TestRunsStayFew counts runs after saves like those of a walk.
func TestRunsStayFew(t *testing.T) {
	t.Parallel()
	c, rng := table(t), rand.New(rand.NewPCG(1, 2))
	const saves, each = 3000, 100
	posting, most := int64(0), 0
	for range saves {
		var in []Entry
		for range each {
			posting += 1 << postings.ShapeBits
			in = append(in, Entry{rng.Int64N(1 << 60), posting}, Entry{rng.Int64N(5), posting})
		}
		if err := Update(c, nil, in); err != nil {
			t.Fatal(err)
		}
		rs, err := readRuns(c)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(rs))
	}
	// Five levels of at most two rounds of runs and one that is filled.
	if limit := 5 * (2*fan + 1); most > limit {
		t.Errorf("up to %d runs, want at most %d", most, limit)
	}
	n := 0
	if err := Each(c, func(Entry) error { n++; return nil }); err != nil || n != 2*saves*each {
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
		all, err := c.entries(nil)
		if err != nil {
			if !sqlite.IsDamaged(err) {
				t.Fatal(err)
			}
			return
		}
		if !slices.IsSortedFunc(all, Compare) || len(slices.Compact(slices.Clone(all))) != len(all) || len(all) == 0 || all[0].Token < 0 {
			return // no chunk of ours
		}
		for rest := all; len(rest) > 0; {
			one, n := pack(rest)
			if again, err := one.entries(nil); err != nil || !slices.Equal(again, rest[:n]) {
				t.Fatalf("packed %v, read %v: %v", rest[:n], again, err)
			}
			rest = rest[n:]
		}
	})
}
