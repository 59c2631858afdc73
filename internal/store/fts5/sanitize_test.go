// Merges of segments after erasures: FTS5 reads again what secure-delete and
// Sanitize have left.

package fts5

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	cases "understudy/internal/sample"
	"understudy/internal/store/fts5/fts5test"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/wordrows"
)

// mergeModel is a table of words and what must be in it.
type mergeModel struct {
	testing.TB
	c    *sqlite.Conn
	rng  *rand.Rand
	held map[int64]wordrows.Row // by posting
	gone map[string]bool        // words that no row has
	next int64
}

func newMergeModel(t testing.TB, seed uint64) *mergeModel {
	m := &mergeModel{TB: t, c: fts5test.Open(t), rng: rand.New(rand.NewPCG(seed, 42)), held: map[int64]wordrows.Row{}, gone: map[string]bool{}}
	m.set("pgsz", []int{40, 64, 150, 1000}[m.rng.IntN(4)])
	m.set("automerge", []int{0, 2, 4, 16}[m.rng.IntN(4)])
	m.set("crisismerge", []int{2, 4, 16, 100}[m.rng.IntN(4)])
	return m
}

func (m *mergeModel) set(name string, n int) {
	m.must(m.c.ExecuteOnce(fmt.Sprintf("INSERT INTO words (words, rank) VALUES ('%s', %d)", name, n)))
}

func (m *mergeModel) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// text is some words with a tag: often common ones, now and then
// one that no other row has.
func (m *mergeModel) text(tag string) string {
	var all []string
	for range m.rng.IntN(6) {
		switch m.rng.IntN(4) {
		case 0:
			all = append(all, fmt.Sprintf("%szanzibar%08x%s", tag, m.rng.Uint32(), strings.Repeat("z", m.rng.IntN(30))))
		case 1:
			all = append(all, fmt.Sprintf("%s%x", tag, m.rng.IntN(4096)))
		default:
			all = append(all, fmt.Sprintf("%scommon%d", tag, m.rng.IntN(1<<m.rng.IntN(5))))
		}
	}
	return strings.Join(all, " ")
}

// save writes rows, as a save does: in one transaction, in the order of postings.
func (m *mergeModel) save(n int) {
	m.must(m.c.ExecuteOnce("BEGIN"))
	var spots []int64
	for range n {
		m.next += 1 + m.rng.Int64N(3)
		spot := m.next
		if m.rng.IntN(2) == 0 {
			spot = -spot
		}
		spots = append(spots, spot)
	}
	slices.Sort(spots)
	for _, spot := range spots {
		var row wordrows.Row
		for c := range row {
			row[c] = m.text(fmt.Sprintf("0%d%c", m.rng.Int64N(3), "bppphhnuo"[c]))
		}
		m.must(table.Update(m.c, []wordrows.Write{{Posting: spot, Row: row}}))
		m.held[spot] = row
	}
	m.must(m.c.ExecuteOnce("COMMIT"))
}

// erase takes rows out, and then sanitizes as Sanitize does.
func (m *mergeModel) erase(n int) {
	m.must(m.c.ExecuteOnce("BEGIN"))
	all := slices.Sorted(maps.Keys(m.held))
	m.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if m.rng.IntN(2) == 0 { // rows that were saved together
		slices.Sort(all)
		from := m.rng.IntN(len(all))
		all = all[from:]
	}
	for _, spot := range all[:min(n, len(all))] {
		m.must(table.Update(m.c, []wordrows.Write{{Posting: spot, Delete: true, Row: m.held[spot]}}))
		for _, text := range m.held[spot] {
			for word := range strings.FieldsSeq(text) {
				m.gone[word] = true
			}
		}
		delete(m.held, spot)
	}
	m.must(dropMerged(m.c))
	m.must(m.c.ExecuteOnce("COMMIT"))
	for {
		stale, err := listStale(m.c)
		m.must(err)
		if len(stale) == 0 {
			return
		}
		slices.Reverse(stale)
		m.must(m.c.ExecuteOnce("BEGIN"))
		for i := range stale {
			m.must(replaceSeparator(m.c, &stale[i]))
		}
		m.must(m.c.ExecuteOnce("COMMIT"))
	}
}

// check compares the whole index with what must be in it, by a scan and by
// seeking each word, and has FTS5 check its own structure.
func (m *mergeModel) check() {
	m.Helper()
	want, docs := map[wordrows.Word]bool{}, map[string][]int64{}
	for _, spot := range slices.Sorted(maps.Keys(m.held)) {
		for c, text := range m.held[spot] {
			for at, word := range strings.Fields(text) {
				want[wordrows.Word{Text: word, Posting: spot, Column: c, At: int64(at)}] = true
				if all := docs[word]; len(all) == 0 || all[len(all)-1] != spot {
					docs[word] = append(all, spot)
				}
			}
		}
	}
	n := 0
	m.must(table.VisitWords(m.c, func(w wordrows.Word) error {
		n++
		if !want[w] {
			m.Fatalf("the index has %v, which no row has", w)
		}
		return nil
	}))
	if n != len(want) {
		m.Fatalf("the index has %d words, want %d", n, len(want))
	}
	for word := range m.gone {
		if docs[word] != nil {
			delete(m.gone, word)
		}
	}
	seek := func(word string) {
		var got []int64
		m.must(m.c.Query(selectUp, 0, []driver.Value{`"` + word + `"`, int64(-1 << 62), int64(-1)}, func(r []driver.Value) error {
			got = append(got, r[0].(int64))
			return nil
		}))
		if !slices.Equal(got, docs[word]) {
			m.Fatalf("%s is found at %v, want %v", word, got, docs[word])
		}
	}
	some := slices.AppendSeq(slices.Collect(maps.Keys(docs)), maps.Keys(m.gone))
	for range min(100, len(some)) {
		seek(some[m.rng.IntN(len(some))])
	}
	m.noneLeft(slices.Collect(maps.Keys(docs)))
}

// noneLeft looks for words that are gone in the bytes of the index, and for
// separators by which no word begins that is there.
func (m *mergeModel) noneLeft(words []string) {
	slices.Sort(words)
	m.must(m.c.Query(selectSeparators, 0, []driver.Value{int64(minRevealing)}, func(r []driver.Value) error {
		text := string(r[1].([]byte)[1:])
		if i, _ := slices.BinarySearch(words, text); i == len(words) || !strings.HasPrefix(words[i], text) {
			m.Fatalf("a page of the index is found by %s, which begins no word", text)
		}
		return nil
	}))
	m.must(m.c.QueryOnce("SELECT block FROM words_data", nil, func(r []driver.Value) error {
		for word := range m.gone {
			if len(word) > 12 && bytes.Contains(r[0].([]byte), []byte(word)) {
				m.Fatalf("the index holds %s, which is gone", word)
			}
		}
		return nil
	}))
}

// TestMergesAfterErasures saves, erases, sanitizes and merges at random.
func TestMergesAfterErasures(t *testing.T) {
	t.Parallel()
	run := cases.OneIn(t, 150)
	for seed := range uint64(200) {
		if !run() {
			continue
		}
		newMergeModel(t, seed).storm()
	}
}

// A merge under way keeps the pages of a segment that it has read to its end.
// What is erased then is not in them.
func TestMergedSegmentsAreErased(t *testing.T) {
	t.Parallel()
	newMergeModel(t, 36).storm() // which leaves a word so without dropMerged
	for structure, want := range map[string]string{
		"": "[]", "cook": "[]", "cook\x02": "[]", "cook\x02\x03\x00\x00\x00\x02\x02\x03\x00\x00\x81\x04\x01\x08": "[3]",
		"cook\x01\x01\x00\x00\x01\x81\x04\x00\x00": "[132]", "cook\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff": "[]",
		"cook\x7f\x7f\x00\x00\x7f\x03\x00": "[]",
	} {
		if got := fmt.Sprint(mergedSegments([]byte(structure))); got != want {
			t.Errorf("%q: %s, want %s", structure, got, want)
		}
	}
}

// storm saves, erases, sanitizes and merges at random, and checks.
func (m *mergeModel) storm() {
	for step := range 60 {
		switch n := m.rng.IntN(10); {
		case n < 5 || len(m.held) == 0:
			m.save(1 + m.rng.IntN(12))
		case n < 8:
			m.erase(1 + m.rng.IntN(1<<m.rng.IntN(7)))
		case n < 9:
			m.set("merge", m.rng.IntN(40)-20)
		default:
			m.must(m.c.ExecuteOnce("INSERT INTO words (words) VALUES ('optimize')"))
		}
		m.must(m.c.ExecuteOnce("INSERT INTO words (words) VALUES ('integrity-check')"))
		if step%6 == 5 {
			m.check()
		}
	}
}
