// What lists made of records cost, over as many as UNDERSTUDY_RECORDS says
// (100,000 by default).

package store_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"understudy/internal/query"
	"understudy/internal/store/storetest"
)

// benchRecords is over how many records is measured.
func benchRecords() int {
	if n, err := strconv.Atoi(os.Getenv("UNDERSTUDY_RECORDS")); err == nil {
		return n
	}
	return 100_000
}

func BenchmarkSeek(b *testing.B) {
	records := benchRecords()
	path := filepath.Join(b.TempDir(), "understudy.db")
	if kept := os.Getenv("UNDERSTUDY_KEPT"); kept != "" { // a file to fill, or one filled before
		path = kept
	}
	db := storetest.OpenAt(b, path)
	w := storetest.NewWorld(3, records)
	held, err := db.ReadStats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	var spent time.Duration
	for n, from := 0, 0; from < w.N && held.Records == 0; n++ {
		p, next := w.List(50, n, from, storetest.Epoch)
		from = next
		start := time.Now()
		if _, err := db.Save(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		spent += took[len(took)-1]
	}
	if slices.Sort(took); len(took) > 0 {
		st, err := db.ReadStats(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%d records: %.0f bytes each, %.0f saved a second; a save of 50 takes %v at the median, %v at p99, %v at most",
			records, st.PerRecord, float64(records)/spent.Seconds(), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	}
	rng := rand.New(rand.NewPCG(5, 0))
	field := func(name string, values ...string) []query.Predicate {
		return []query.Predicate{{Field: name, Any: values}}
	}
	for _, bench := range []struct {
		name string
		ask  func() query.RecordQuery
	}{
		{"newest", func() query.RecordQuery { return query.RecordQuery{} }},
		{"status", func() query.RecordQuery { return query.RecordQuery{Predicates: field("status", "failed")} }},
		{"number", func() query.RecordQuery {
			return query.RecordQuery{Predicates: field("to", w.Person(rng.IntN(2000)))}
		}},
		{"number and status", func() query.RecordQuery {
			return query.RecordQuery{Predicates: append(field("from", w.Person(rng.IntN(2000))), field("status", "completed")...)}
		}},
		{"day", func() query.RecordQuery {
			from := storetest.Epoch.Unix() - rng.Int64N(int64(w.N)*37)
			from -= from % 86_400
			return query.RecordQuery{Predicates: []query.Predicate{{Field: "start_time", From: from, To: from + 86_400}}}
		}},
		{"since a time", func() query.RecordQuery {
			return query.RecordQuery{Predicates: []query.Predicate{{Field: "start_time", From: storetest.Epoch.Unix() - rng.Int64N(int64(w.N)*37)}}}
		}},
		{"nobody", func() query.RecordQuery { return query.RecordQuery{Predicates: field("to", "+4900000000")} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				q := bench.ask()
				q.Source, q.Kinds, q.Shape, q.Limit = storetest.Source, []string{"calls"}, "calls", 51
				start := time.Now()
				if err := db.Seek(b.Context(), q, func(query.Hit) bool { return true }); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
