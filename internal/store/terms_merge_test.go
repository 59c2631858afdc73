// Merges of terms that were taken out: FTS5 reads again what secure-delete left.

package store

import (
	"database/sql/driver"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	cases "understudy/internal/sample"
	"understudy/internal/store/sqlite"
)

// TestMergesOfTerms saves, changes, takes out and merges at random, and compares
// what the index says with what it was told.
func TestMergesOfTerms(t *testing.T) {
	t.Parallel()
	run := cases.OneIn(t, 40)
	for seed := range uint64(200) {
		if run() {
			mergeTerms(t, seed)
		}
	}
}

func mergeTerms(t *testing.T, seed uint64) {
	c, rng := indexTable(t), rand.New(rand.NewPCG(seed, 7))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	must(c.Run("CREATE VIRTUAL TABLE term USING fts5vocab(terms, instance)"))
	tell := func(name string, n int) {
		t.Helper()
		must(c.Run(fmt.Sprintf("INSERT INTO terms (terms, rank) VALUES ('%s', %d)", name, n)))
	}
	tell("pgsz", []int{40, 64, 150, 1000}[rng.IntN(4)])
	tell("automerge", []int{0, 2, 4, 16}[rng.IntN(4)])
	tell("crisismerge", []int{2, 4, 16, 100}[rng.IntN(4)])
	held := map[int64][]string{}
	span := 1 << (3 + rng.IntN(7)) // few spots change often, many make long lists
	for step := range 60 {
		var writes []write
		for range 1 + rng.IntN(40) {
			spot := 1 + rng.Int64N(int64(span))
			if slices.ContainsFunc(writes, func(w write) bool { return w.spot == spot }) {
				continue
			}
			if held[spot] != nil {
				writes = append(writes, write{spot: spot, out: true, text: strings.Join(held[spot], " ")})
				delete(held, spot)
			}
			if rng.IntN(3) > 0 {
				var all []string
				for range 1 + rng.IntN(5) {
					all = append(all, fmt.Sprintf("%010x", rng.IntN(1<<rng.IntN(12))))
				}
				slices.Sort(all)
				held[spot] = slices.Compact(all)
				writes = append(writes, write{spot: spot, text: strings.Join(held[spot], " ")})
			}
		}
		inFalling(writes)
		must(c.Run("BEGIN"))
		for len(writes) > 0 {
			n := 1
			for n < len(writes) && writes[n].spot == writes[0].spot {
				n++
			}
			must(putTerms(c, writes[:n]))
			writes = writes[n:]
		}
		must(c.Run("COMMIT"))
		switch rng.IntN(8) {
		case 0:
			tell("merge", rng.IntN(40)-20)
		case 1:
			must(c.Run("INSERT INTO terms (terms) VALUES ('optimize')"))
		}
		must(c.Run("INSERT INTO terms (terms) VALUES ('integrity-check')"))
		if step%6 == 5 {
			must(sameTerms(c, held))
		}
	}
}

// sameTerms compares all of the index, and then what is found of each term.
func sameTerms(c *sqlite.Conn, held map[int64][]string) error {
	docs := map[string][]driver.Value{}
	n := 0
	for _, row := range slices.Sorted(maps.Keys(held)) {
		for _, word := range held[row] {
			docs[word] = append(docs[word], row)
			n++
		}
	}
	err := c.Ask("SELECT term, doc FROM term", func(r []driver.Value) error {
		if n--; !slices.Contains(docs[r[0].(string)], driver.Value(-r[1].(int64))) {
			return fmt.Errorf("the index has %v at %v, where it is not", r[0], r[1])
		}
		return nil
	})
	if err != nil || n != 0 {
		return fmt.Errorf("the index lacks %d terms, %w", n, err)
	}
	for word, want := range docs {
		var got []driver.Value
		if err := c.Ask(`SELECT -rowid FROM terms WHERE terms MATCH '"`+word+`"' ORDER BY rowid DESC`, func(r []driver.Value) error {
			got = append(got, r[0])
			return nil
		}); err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("%s is found at %v, want %v, %w", word, got, want, err)
		}
	}
	return nil
}
