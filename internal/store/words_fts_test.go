// What FTS5 makes of words that are cut already: nothing else.

package store

import (
	"context"
	"database/sql/driver"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
	"understudy/kit/tokenizer"
)

// indexTable is a file with nothing but the FTS5 tables of the schema.
func indexTable(t testing.TB) *sqlite.Conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "words.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.Dial(context.Background(), path, sqlite.WriterCache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, pragma := range []string{"journal_mode = MEMORY", "synchronous = OFF"} {
		if err := c.Ask("PRAGMA "+pragma, func([]driver.Value) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("migrations/00001_start.sql")
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), ";\n") {
		if i := strings.Index(part, "VIRTUAL TABLE"); i >= 0 || strings.Contains(part, "'secure-delete'") {
			if err := c.Run(part); err != nil {
				t.Fatalf("%s: %v", part, err)
			}
		}
	}
	return c
}

// FuzzWordsInFTS5 writes the words of a text and reads from the index what it
// has taken them for; then it finds them, and takes them out.
func FuzzWordsInFTS5(f *testing.F) {
	for _, text := range []string{"", "Hello, World!", "Straße İstanbul", "東京タワー ｶﾞ", "مُحَمَّد", "स्ते क़", "👩‍💻👍🏽 🇩🇪", "a\x00b\xffc",
		"NEAR OR AND NOT \"x\" *", "\ue000 \u0378", "x" + strings.Repeat("é", 100)} {
		f.Add(text)
	}
	c, kinds := indexTable(f), []*kindPlan{tagged(2, columnOther)}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		want := tokenizer.Fold(text)
		for i := range want {
			want[i] = "02o" + want[i]
		}
		row := wordRow{columnOther: strings.Join(want, " ")}
		args := func() []driver.Value {
			args := []driver.Value{int64(7)}
			for _, part := range row {
				args = append(args, part)
			}
			return args
		}
		if err := c.Exec(insertWords, 1, args()...); err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(want))
		err := c.Query(selectAllWords, 0, nil, func(r []driver.Value) error {
			at := int(r[3].(int64))
			if at >= len(want) || r[1] != int64(7) || r[2] != "other" {
				t.Fatalf("%q: %v", text, r)
			}
			got[at] = r[0].(string)
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: the index has %q, %v; cut were %q", text, got, err, want)
		}
		for _, p := range []tokenizer.Pattern{tokenizer.Phrase(false, text), tokenizer.Phrase(true, text)} {
			if p.Empty() {
				continue
			}
			s, err := wordSpots(c, &textPlan{op: 2, pattern: p}, kinds, false)
			if err != nil {
				t.Fatal(err)
			}
			if spot, ok, err := s.Advance(beginning(false)); err != nil || !ok || spot != 7 {
				t.Fatalf("%q is not found: %v, %v, %v", text, spot, ok, err)
			}
		}
		if err := c.Exec(deleteWords, 1, args()...); err != nil {
			t.Fatal(err)
		}
		if err := c.Query(selectAllWords, 0, nil, func(r []driver.Value) error { t.Fatalf("%q: left is %v", text, r); return nil }); err != nil {
			t.Fatal(err)
		}
	})
}

// tagged is a kind in a question that has words of some classes.
func tagged(number int64, classes ...column) *kindPlan {
	k := &kindPlan{kindRow: &kindRow{number: number}}
	for _, c := range classes {
		k.said.bits.Or(1 << c)
	}
	return k
}

// H2: a class or a kind that is not asked for is not named to FTS5, so that none
// of its words is read; nor is one that has no words.
func TestHiddenClassesAreNotAskedFor(t *testing.T) {
	none := func(prefix string) ([]string, error) { return []string{prefix, prefix + "er"}, nil }
	has := func(text string, prefix bool) *textPlan {
		return &textPlan{op: query.TextPhrase, pattern: tokenizer.Phrase(prefix, text)}
	}
	both := &textPlan{op: query.TextOr, of: []*textPlan{has("a b", false), has("long", true)}}
	calls, messages := tagged(1, columnPlain, columnPhone), tagged(38, columnPlain, columnBody)
	for _, c := range []struct {
		plan  *textPlan
		kinds []*kindPlan
		want  string
	}{
		{both.within([]column{columnPlain}), []*kindPlan{calls}, `((("01pa 01pb") OR ("01plong" OR "01plonger")))`},
		{both.within([]column{columnPlain, columnPhone}).within([]column{columnPhone, columnName}), []*kindPlan{calls, messages},
			`(((("01ha 01hb") OR ("01hlong" OR "01hlonger"))))`},
		{has("long", false).within([]column{columnPlain}).within([]column{columnName}), []*kindPlan{calls}, `((("0")))`},
		{has("long", false), []*kindPlan{calls, messages}, `("01plong" OR "01hlong" OR "12blong" OR "12plong")`},
	} {
		if got, err := c.plan.match(c.kinds, none); err != nil || got != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}

// H2: what records of a kind say that is not asked for is not passed over, in no
// class: the index gives no spot of them, and they move no caller's time.
func TestHiddenKindsAreNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := openWords(t, path)
	saveMessages(t, db, 0, 300) // each says "delivered" in a plain field
	call := `{"sid":"CA00000000000000000000000000000001","status":"completed","direction":"inbound"}`
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/c"}, Kind: "calls", Shape: "calls", List: true, Status: 200,
		Body: []byte(call),
		Rows: []understudy.Row{{ID: "CA00000000000000000000000000000001", Clock: 1_770_000_000, End: len(call)}}}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	given := func(text *query.Text, kinds ...string) (n int) {
		t.Helper()
		s, err := planner{db}.seek(&query.RecordQuery{Source: "twilio", Kinds: kinds, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.pool.Read(t.Context(), func(c *sqlite.Conn) error {
			spots, err := s.p.stream(c)
			at, ok := beginning(false), err == nil
			for ; ok; n++ {
				if at, ok, err = spots.Advance(at); !ok || err != nil {
					break
				}
				at, ok = postings.Following(at, false)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	plain := []string{""}
	for reopened := range 2 {
		for _, c := range []struct {
			text  *query.Text
			kinds []string
			want  int
		}{
			{&query.Text{Words: []string{"delivered"}, In: plain}, []string{"calls"}, 0},
			{&query.Text{Op: query.TextPrefix, Words: []string{"deliv"}, In: plain}, []string{"calls"}, 0},
			{&query.Text{Words: []string{"everything"}}, []string{"calls"}, 0},
			{&query.Text{Words: []string{"completed"}, In: plain}, []string{"calls"}, 1},
			{&query.Text{Words: []string{"delivered"}, In: plain}, []string{"calls", "messages"}, 300},
		} {
			if got := given(c.text, c.kinds...); got != c.want {
				t.Errorf("%v in %v: the index gives %d spots, want %d (opened again: %d)", c.text.Words, c.kinds, got, c.want, reopened)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openWords(t, path)
	}
}

// beginning is where an iterator begins.
func beginning(up bool) int64 {
	if up {
		return math.MinInt64
	}
	return math.MaxInt64
}
