//go:build unix

// What words cost in FTS5, and what they would cost as entries of the index of terms.

package words

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/internal/query"
	"understudy/internal/store/db"
	"understudy/internal/store/fts5/fts5test"
	"understudy/internal/store/inverted"
	"understudy/internal/store/wordrows"
	"understudy/kit/tokenizer"
)

const (
	costRecords = 100_000
	costBatch   = 400 // records in a transaction: eight pages of 50
)

// BenchmarkIndexes writes the same messages to each index and reports the CPU time and the bytes of a record.
// A phrase of two common words that never stand together is then looked for, by FTS5 and in the
// bodies of all records that have both words.
func BenchmarkIndexes(b *testing.B) {
	for _, name := range []string{"fts5", "runs", "runs and pairs"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				c := fts5test.Open(b)
				for _, text := range []string{
					"CREATE TABLE term_run (number INTEGER PRIMARY KEY, level INTEGER NOT NULL, target INTEGER NOT NULL) STRICT",
					"CREATE TABLE term_chunk (run INTEGER NOT NULL, token INTEGER NOT NULL, posting INTEGER NOT NULL, body BLOB NOT NULL) STRICT",
					"CREATE UNIQUE INDEX term_chunk_first ON term_chunk (run, token, posting)",
				} {
					if err := c.ExecuteOnce(text); err != nil {
						b.Fatal(err)
					}
				}
				writeMessages(b, c, name)
			}
		})
	}
	b.Run("phrase", findPhrase)
}

// writeMessages writes the messages to an index and reports what one costs.
func writeMessages(b *testing.B, c db.Conn, name string) {
	kind, cutter, rng, seed := some(2, "messages"), &Cutter{}, rand.New(rand.NewPCG(1, 2)), maphash.MakeSeed()
	zipf := rand.NewZipf(rng, 1.2, 4, 20_000)
	empty, used := fileBytes(b, c), time.Duration(0)
	for from := 0; from < costRecords; from += costBatch {
		var edits []Edit
		for i := range costBatch {
			edits = append(edits, Edit{Kind: kind, Is: int64(from+i) << 14, New: message(rng, zipf)})
		}
		before := cpuTime()
		_, err := c.RunTransaction(b.Context(), func() error {
			writes := cutter.Writes(edits)
			if name == "fts5" {
				return table.Update(c, wordrows.NewPending(writes))
			}
			var in []inverted.Entry
			for i := range writes {
				in = appendWords(in, &writes[i], seed, name != "runs")
			}
			return inverted.Update(c, inverted.NewPending(nil, in))
		})
		if err != nil {
			b.Fatal(err)
		}
		used += cpuTime() - before
	}
	b.ReportMetric(float64(used.Microseconds())/costRecords, "cpu-us/record")
	b.ReportMetric(float64(fileBytes(b, c)-empty)/costRecords, "bytes/record")
}

// appendWords appends the entries of a row: its words in an order that keeps beginnings together and, with pairs, each two
// words that stand together.
func appendWords(in []inverted.Entry, w *wordrows.Write, seed maphash.Seed, pairs bool) []inverted.Entry {
	first := len(in)
	add := func(tag, start, whole string) {
		token := int64(1)<<62 | int64(maphash.String(seed, tag)&(1<<14-1))<<48 | int64(maphash.String(seed, whole)&(1<<16-1))
		for i := range min(4, len(start)) {
			token |= int64(start[i]) << (40 - 8*i)
		}
		in = append(in, inverted.Entry{Token: token, Posting: w.Posting})
	}
	for _, text := range w.Row {
		last := ""
		for word := range strings.FieldsSeq(text) {
			if word == valueBorder {
				last = ""
				continue
			}
			add(word[:tagSize], word[tagSize:], word)
			if pairs && strings.HasPrefix(last, word[:tagSize]) {
				add(word[:tagSize], last[tagSize:], last+" "+word)
			}
			last = word
		}
	}
	slices.SortFunc(in[first:], inverted.Compare)
	return in[:first+len(slices.Compact(in[first:]))]
}

// findPhrase looks for two words that each record has and no record has together.
func findPhrase(b *testing.B) {
	const records = 10_000
	c, kind, cutter, rng := fts5test.Open(b), some(2, "messages"), &Cutter{}, rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.2, 4, 20_000)
	var edits []Edit
	for i := range records {
		edits = append(edits, Edit{Kind: kind, Is: int64(i) << 14, New: message(rng, zipf)})
	}
	writes := cutter.Writes(edits)
	if err := table.Update(c, wordrows.NewPending(writes)); err != nil {
		b.Fatal(err)
	}
	plan := &Plan{pattern: tokenizer.Phrase(false, "code your")}
	for range b.N {
		before, snapshot := cpuTime(), &wordrows.Snapshot{C: c, Table: table}
		found, err := Find(snapshot, plan, []*Kind{kind}, false)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok, err := found.Advance(math.MaxInt64); ok || err != nil {
			b.Fatalf("found %v, %v", ok, err)
		}
		b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/records, "fts5-ns/record")
		bound, err := plan.bind(snapshot, []*Kind{kind})
		if err != nil {
			b.Fatal(err)
		}
		before = cpuTime()
		for _, e := range edits {
			if row := cutter.row(kind, e.New); bound.Match(&row) {
				b.Fatal("the phrase is found")
			}
		}
		b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/records, "bodies-ns/record")
	}
}

// message returns the facts of a message of 8 to 23 words, of which few are common, between two numbers.
func message(rng *rand.Rand, zipf *rand.Zipf) *query.Facts {
	text := "your "
	for range 8 + rng.IntN(16) {
		text += fmt.Sprintf("w%x ", zipf.Uint64()*2654435761%(1<<32))
	}
	body, err := json.Marshal(map[string]string{"body": text + "code", "status": []string{"delivered", "failed"}[rng.IntN(2)],
		"from": fmt.Sprintf("+1415555%04d", rng.IntN(20)), "to": fmt.Sprintf("+1%010d", rng.Int64N(1e10))})
	if err != nil {
		panic(err)
	}
	facts, _ := query.FactsOf("", body, nil)
	return &facts
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func fileBytes(b *testing.B, c db.Conn) (size int64) {
	err := c.QueryOnce("SELECT (p.page_count - f.freelist_count) * s.page_size "+
		"FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s",
		nil, func(r []driver.Value) error {
			size = r[0].(int64)
			return nil
		})
	if err != nil {
		b.Fatal(err)
	}
	return size
}
