// How long the first page of a search takes, over as many rows as UNDERSTUDY_RECORDS says (100,000 by default).

package tsvector

import (
	"database/sql/driver"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
	"understudy/internal/store/wordrows"
)

// benchRow returns the words of message i, in fields of kind 02. Half of the messages have the words your and code, one
// has them as a phrase.
func benchRow(i int, rng *rand.Rand, often *rand.Zipf) (row wordrows.Row) {
	var body []string
	for range 12 {
		body = append(body, fmt.Sprintf("0201w%x", often.Uint64()))
	}
	switch half := i % 1000; {
	case i%50_000 == 25_000:
		body = append(body, "0201zanzibar")
	case half < 300:
		body = append(body, "0201morning")
	case half >= 500 && half < 800:
		body = append(body, "0201evening")
	}
	if i/50_000%2 == 1 {
		body = append(body, "0201former")
	}
	if i == 37_100 {
		body = append(body, "0201morning", "0201evening")
	}
	if i%2 == 0 {
		body = append(body, "0201code")
		body = append([]string{"0201your"}, body...)
	}
	if i == 33_334 {
		body = append(body, "0201your", "0201code")
	}
	row[0] = strings.Join(body, " ")
	row[1] = "0205" + []string{"delivered", "delivered", "delivered", "sent", "failed"}[rng.IntN(5)]
	row[2] = "0202inbound"
	row[4] = fmt.Sprintf("02061415555%04d", rng.IntN(2000))
	row[5] = fmt.Sprintf("02031415000%04d", rng.IntN(8))
	return row
}

// fields returns the tags of some fields of 24 kinds, those of benchRow among them.
func fields(n int) (tags []string) {
	tags = []string{"0201", "0205", "0206"}
	for i := 0; len(tags) < n; i++ {
		if tag := fmt.Sprintf("%02d%02d", i%24, i/24); !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags[:n]
}

func BenchmarkSearch(b *testing.B) {
	records := 100_000
	if n, err := strconv.Atoi(os.Getenv("UNDERSTUDY_RECORDS")); err == nil {
		records = n
	}
	c := open(b)
	fillBench(b, c, records)
	phrase := func(n int, words ...string) (q wordrows.Query) {
		for _, tag := range fields(n) {
			q.Phrases = append(q.Phrases, tag+strings.Join(words, " "+tag))
		}
		return q
	}
	for _, n := range []int{1, 3, 240} {
		beginning := phrase(n, "zanz")
		beginning.Prefix = true
		common := phrase(n, "w1")
		common.Prefix = true
		meet := []wordrows.Query{phrase(n, "morning"), phrase(n, "evening")}
		for _, s := range []struct {
			name string
			q    wordrows.Query
		}{
			{"rare word", phrase(n, "zanzibar")},
			{"common word", phrase(n, "morning")},
			{"word in 1 % of rows", phrase(n, "w7f")},
			{"common word of other times", phrase(n, "former")},
			{"no word", phrase(n, "none")},
			{"two words that rarely meet", wordrows.Query{Op: wordrows.AllParts, Parts: meet}},
			{"one without the other", wordrows.Query{Op: wordrows.FirstWithoutSecond, Parts: meet}},
			{"rare beginning", beginning},
			{"common beginning", common},
			{"common phrase", phrase(n, "w0", "w1")},
			{"phrase of common words", phrase(n, "your", "code")},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, s.name), func(b *testing.B) {
				var took []time.Duration
				found := 0
				for b.Loop() {
					start := time.Now()
					found = findFirst(b, c, &s.q)
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(found), "found")
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// findFirst finds the first page of a search.
func findFirst(b *testing.B, c db.Conn, q *wordrows.Query) (found int) {
	_, err := c.RunReading(b.Context(), func() error {
		all, err := table.Search(c, q, false)
		from, ok := int64(math.MaxInt64), true
		for err == nil && ok && found < readFirst {
			if from, ok, err = all.Advance(from); ok {
				found++
				from, _ = postings.Next(from, false)
			}
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// fillBench writes the rows, and logs what one costs.
func fillBench(b *testing.B, c db.Conn, records int) {
	rng := rand.New(rand.NewPCG(12, 0))
	often := rand.NewZipf(rng, 1.1, 4, 20_000)
	start, longest := time.Now(), time.Duration(0)
	for from := 0; from < records; from += 400 {
		var writes []wordrows.Write
		for i := from; i < min(from+400, records); i++ {
			writes = append(writes, wordrows.Write{Posting: -int64(i) << 30, Row: benchRow(i, rng, often)})
		}
		wordrows.Sort(writes)
		t := time.Now()
		if _, err := c.RunTransaction(b.Context(), func() error { return table.Update(c, writes) }); err != nil {
			b.Fatal(err)
		}
		longest = max(longest, time.Since(t))
	}
	b.Logf("%d rows: %.1f us each, %v at most for 400", records, float64(time.Since(start).Microseconds())/float64(records), longest)
	if err := c.QueryOnce("VACUUM ANALYZE words", nil, func([]driver.Value) error { return nil }); err != nil {
		b.Fatal(err)
	}
	size := "SELECT pg_table_size('words'), pg_relation_size('words_lexemes'), pg_relation_size('words_pkey')"
	err := c.QueryOnce(size, nil, func(r []driver.Value) error {
		b.Logf("bytes of a row: %d in the table, %d in the index of lexemes, %d in that of postings", r[0].(int64)/int64(records),
			r[1].(int64)/int64(records), r[2].(int64)/int64(records))
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
