// What searches in text cost, over as many messages as UNDERSTUDY_RECORDS says
// (100,000 by default); and how long a file of before places and terms takes to
// open.

package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// vocabulary are words of three to nine letters, the most frequent first.
func vocabulary(n int) []string {
	rng := rand.New(rand.NewPCG(11, 0))
	all := make([]string, n)
	for i := range all {
		word := make([]byte, 3+rng.IntN(7))
		for j := range word {
			word[j] = "etaoinshrdlucmfwypvbgk"[min(rng.IntN(22), rng.IntN(22))]
		}
		all[i] = string(word)
	}
	return all
}

// saveTexts saves messages of twelve words each as walks do, the newest first;
// every 50,000th says "zanzibar".
func saveTexts(b *testing.B, db *store.DB, words []string, n int) (spent time.Duration) {
	b.Helper()
	rng := rand.New(rand.NewPCG(12, 0))
	often := rand.NewZipf(rng, 1.1, 4, uint64(len(words)-1))
	for from := 0; from < n; from += 50 {
		p := &understudy.Page{Key: understudy.Key{Source: storetest.Source, URI: fmt.Sprint("/m", from)}, Kind: "messages", Shape: "messages",
			List: true, Status: 200, At: storetest.Epoch}
		for i := from; i < min(from+50, n); i++ {
			at, sent := len(p.Body), storetest.Epoch.Add(-time.Duration(i)*31*time.Second).UTC()
			id := fmt.Sprintf("SM%016x%016x", rng.Uint64(), i)
			p.Body = fmt.Appendf(p.Body, `{"sid":"%s","date_sent":"%s","account_sid":"%s","to":"+1415555%04d","from":"+1415000%04d",`+
				`"status":"%s","direction":"inbound","num_segments":"1","body":"`,
				id, sent.Format(time.RFC1123Z), storetest.Account, rng.IntN(2000), rng.IntN(8),
				[...]string{"delivered", "delivered", "delivered", "sent", "failed"}[rng.IntN(5)])
			for j := range 12 {
				if j > 0 {
					p.Body = append(p.Body, ' ')
				}
				p.Body = append(p.Body, words[often.Uint64()]...)
			}
			if i%50_000 == 25_000 {
				p.Body = append(p.Body, " zanzibar"...)
			}
			p.Body = append(p.Body, `"}`...)
			p.Rows = append(p.Rows, understudy.Row{ID: id, Clock: sent.Unix(), Start: at, End: len(p.Body)})
		}
		start := time.Now()
		if _, err := db.Save(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(start)
	}
	return spent
}

func BenchmarkSeekText(b *testing.B) {
	records := benchRecords()
	words := vocabulary(20_000)
	db := storetest.OpenAt(b, filepath.Join(b.TempDir(), "understudy.db"))
	spent := saveTexts(b, db, words, records)
	st, err := db.ReadStats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d messages: %.0f bytes each, %.0f saved a second", records, st.PerRecord, float64(records)/spent.Seconds())
	seekTexts(b, db, words, []string{"messages"})
}

// BenchmarkSeekTextKinds is the same with the other kinds beside the messages, 2,000
// records of each, in messages and in all kinds: each field of each kind that may have
// the words is one more look at the index. Fields without a class have six values, as
// states, methods and flags do.
func BenchmarkSeekTextKinds(b *testing.B) {
	words := vocabulary(20_000)
	db := storetest.OpenAt(b, filepath.Join(b.TempDir(), "understudy.db"))
	saveTexts(b, db, words, benchRecords())
	rng := rand.New(rand.NewPCG(13, 0))
	often := rand.NewZipf(rng, 1.1, 4, uint64(len(words)-1))
	kinds := []string{"messages"}
	for _, k := range storetest.Specs(b)[storetest.Source].Kinds {
		if k.Name == "messages" || len(k.Lists) == 0 {
			continue
		}
		kinds = append(kinds, k.Name)
		for from := 0; from < 2000; from += 50 {
			p := &understudy.Page{Key: understudy.Key{Source: storetest.Source, URI: fmt.Sprint("/", k.Name, from)}, Kind: k.Name,
				Shape: k.Lists[0].Shape, List: true, Status: 200, At: storetest.Epoch}
			for i := from; i < from+50; i++ {
				at, id := len(p.Body), fmt.Sprintf("XX%016x%016x", rng.Uint64(), i)
				p.Body = fmt.Appendf(p.Body, `{"sid":"%s"`, id)
				for _, f := range k.Fields {
					switch {
					case !k.IsText(f):
					case f.Class == "":
						p.Body = fmt.Appendf(p.Body, `,%q:%q`, f.Name, words[5000+rng.IntN(6)])
					default:
						p.Body = fmt.Appendf(p.Body, `,%q:"%s %s"`, f.Name, words[often.Uint64()], words[often.Uint64()])
					}
				}
				p.Body = append(p.Body, '}')
				p.Rows = append(p.Rows, understudy.Row{ID: id, Clock: storetest.Epoch.Unix() - int64(i*3000), Start: at, End: len(p.Body)})
			}
			if _, err := db.Save(b.Context(), p); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("messages", func(b *testing.B) { seekTexts(b, db, words, kinds[:1]) })
	b.Run("all", func(b *testing.B) { seekTexts(b, db, words, kinds) })
}

// seekTexts asks for the first 50 records of some kinds in several ways.
func seekTexts(b *testing.B, db *store.DB, words, kinds []string) {
	rng := rand.New(rand.NewPCG(5, 0))
	word := func(text string) *query.Text { return &query.Text{Words: []string{text}} }
	for _, bench := range []struct {
		name string
		ask  func() query.RecordQuery
	}{
		{"rare word", func() query.RecordQuery { return query.RecordQuery{Text: word("zanzibar")} }},
		{"common word", func() query.RecordQuery { return query.RecordQuery{Text: word(words[rng.IntN(3)])} }},
		{"word in the middle", func() query.RecordQuery { return query.RecordQuery{Text: word(words[500+rng.IntN(500)])} }},
		{"two words", func() query.RecordQuery {
			return query.RecordQuery{Text: &query.Text{Op: query.TextAnd,
				Parts: []*query.Text{word(words[rng.IntN(50)]), word(words[100+rng.IntN(500)])}}}
		}},
		{"common phrase", func() query.RecordQuery {
			return query.RecordQuery{Text: &query.Text{Op: query.TextPhrase, Words: []string{words[rng.IntN(3)], words[rng.IntN(3)]}}}
		}},
		{"rare phrase", func() query.RecordQuery {
			return query.RecordQuery{Text: &query.Text{Op: query.TextPhrase, Words: []string{words[rng.IntN(20)], words[1000+rng.IntN(1000)]}}}
		}},
		{"beginning", func() query.RecordQuery {
			return query.RecordQuery{Text: &query.Text{Op: query.TextPrefix, Words: []string{words[rng.IntN(2000)][:3]}}}
		}},
		{"word and filter", func() query.RecordQuery {
			return query.RecordQuery{Text: word(words[rng.IntN(3)]),
				Predicates: []query.Predicate{{Field: "to", Any: []string{fmt.Sprintf("+1415555%04d", rng.IntN(2000))}}}}
		}},
		{"nothing", func() query.RecordQuery { return query.RecordQuery{Text: word("nosuchwordatall")} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var took []time.Duration
			found := 0
			for b.Loop() {
				q := bench.ask()
				if q.Source, q.Kinds, q.Limit = storetest.Source, kinds, 50; len(kinds) == 1 {
					q.Shape = "messages"
				}
				n, start := 0, time.Now()
				if err := db.Seek(b.Context(), q, func(query.Hit) bool { n++; return n < 50 }); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				found += n
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(found)/float64(len(took)), "found")
		})
	}
}

// BenchmarkIndex is filling the indexes of terms and words anew.
func BenchmarkIndex(b *testing.B) {
	records := benchRecords()
	db := storetest.OpenAt(b, filepath.Join(b.TempDir(), "understudy.db"))
	w := storetest.NewWorld(3, records)
	for n, from := 0, 0; from < w.N; n++ {
		p, next := w.List(50, n, from, storetest.Epoch)
		from = next
		if _, err := db.Save(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := errors.Join(db.Index.Clear(b.Context()), db.Index.Build(b.Context(), nil)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(records)*1e6, "s/million")
}
