package words

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"understudy/internal/store/fts5/fts5test"
	"understudy/internal/store/postings"
	"understudy/internal/store/wordrows"
	"understudy/kit/tokenizer"
)

// TestPendingRowsAreFoundAlike: a plan finds of rows that are pending, above others that are
// written, what FTS5 finds once all are written.
func TestPendingRowsAreFoundAlike(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	c := fts5test.Open(t)
	kinds := []*Kind{some(1, "one"), some(2, "two")}
	words := []string{"a", "ab", "abc", "b", "bc", "long", "longer"}
	names := slices.Sorted(maps.Keys(kinds[0].Rule))
	row := func() (row wordrows.Row) {
		k := kinds[rng.IntN(2)]
		for class, columns := range columnsOf {
			for c := range row[class : class+int(columns)] {
				var all []string
				for range rng.IntN(5) {
					field := 0
					if f := k.Rule[names[rng.IntN(len(names))]]; f.column == column(class) {
						field = f.number
					}
					if all = append(all, wordTag(k.Number, field)+words[rng.IntN(len(words))]); rng.IntN(4) == 0 {
						all = append(all, valueBorder)
					}
				}
				row[class+c] = strings.Join(all, " ")
			}
		}
		k.add(&row)
		return row
	}
	var plan func(depth int) *Plan
	plan = func(depth int) *Plan {
		p := &Plan{}
		if depth == 0 || rng.IntN(3) == 0 {
			text := words[rng.IntN(len(words))]
			if rng.IntN(3) == 0 {
				text += " " + words[rng.IntN(len(words))]
			}
			p.pattern = tokenizer.Phrase(rng.IntN(3) == 0, text)
			if rng.IntN(3) == 0 {
				p.fields = map[string][]string{"one": {names[rng.IntN(len(names))], names[rng.IntN(len(names))]}, "two": {names[0]}}
			}
		} else {
			p.op = []wordrows.Op{wordrows.AllParts, wordrows.AnyPart, wordrows.FirstWithoutSecond}[rng.IntN(3)]
			p.parts = []*Plan{plan(depth - 1), plan(depth - 1)}
		}
		return p
	}
	held := map[int64]wordrows.Row{}
	for range 10 {
		var writes []wordrows.Write
		for range 1 + rng.IntN(4) { // some saves
			var some []wordrows.Write
			for posting := range int64(20) {
				is, ok := held[posting]
				if rng.IntN(3) == 0 && ok {
					some = append(some, wordrows.Write{Posting: posting, Delete: true, Row: is})
					delete(held, posting)
					ok = false
				}
				if one := row(); rng.IntN(3) == 0 && !ok && !one.IsEmpty() {
					some = append(some, wordrows.Write{Posting: posting, Row: one})
					held[posting] = one
				}
			}
			wordrows.Sort(some)
			writes = append(writes, some...)
		}
		pending := wordrows.NewPending(writes)
		var plans []*Plan
		var found [][]int64
		for range 20 {
			p := plan(3)
			plans, found = append(plans, p), append(found, findAll(t, func(up bool) (postings.Iterator, error) {
				return Find(&wordrows.Snapshot{C: c, Table: table, Pending: pending}, p, kinds[:1+len(plans)%2], up)
			}))
		}
		if err := table.Update(c, pending); err != nil {
			t.Fatal(err)
		}
		for i, p := range plans {
			want := findAll(t, func(up bool) (postings.Iterator, error) {
				return Find(&wordrows.Snapshot{C: c, Table: table}, p, kinds[:1+i%2], up)
			})
			if !slices.Equal(found[i], want) {
				t.Fatalf("seed %d: %+v finds %v while rows are pending, then %v", seed, p, found[i], want)
			}
		}
	}
}

// findAll is all that is found, going up and then down.
func findAll(t *testing.T, find func(up bool) (postings.Iterator, error)) (all []int64) {
	for _, up := range []bool{true, false} {
		from := int64(math.MaxInt64)
		if up {
			from = math.MinInt64
		}
		s, err := find(up)
		for ok := true; err == nil && ok; {
			var at int64
			if at, ok, err = s.Advance(from); ok {
				all = append(all, at)
				from, ok = postings.Next(at, up)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
