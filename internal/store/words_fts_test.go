// What FTS5 makes of words that are cut already: nothing else.

package store

import (
	"context"
	"database/sql/driver"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/kit/words"
)

// wordsTable is a file with nothing but the index of words.
func wordsTable(t testing.TB) *conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "words.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := dial(context.Background(), path, writerCache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	for _, pragma := range []string{"journal_mode = MEMORY", "synchronous = OFF"} {
		if err := c.ask("PRAGMA "+pragma, func([]driver.Value) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("migrations/00007_words.sql")
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), ";\n") {
		if i := strings.Index(part, "VIRTUAL TABLE"); i >= 0 || strings.Contains(part, "INTO words") {
			if err := c.run(part); err != nil {
				t.Fatalf("%s: %v", part, err)
			}
		}
	}
	return c
}

// FuzzWordsInFTS5 writes the words of a text and reads from the index what it
// has taken them for; then it finds them, and takes them out.
func FuzzWordsInFTS5(f *testing.F) {
	for _, text := range []string{"", "Hello, World!", "Straße İstanbul", "東京タワー ｶﾞ", "مُحَمَّد", "स्ते क़", "👩‍💻👍🏽 🇩🇪", "a\x00b\xffc", "NEAR OR AND NOT \"x\" *", "\ue000 \u0378", "x" + strings.Repeat("é", 100)} {
		f.Add(text)
	}
	c := wordsTable(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		want := words.Fold(text)
		row := wordRow{columnOther: strings.Join(want, " ")}
		args := func() []driver.Value {
			args := []driver.Value{int64(7)}
			for _, part := range row {
				args = append(args, part)
			}
			return args
		}
		if err := c.exec(insertWords, 1, args()...); err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(want))
		err := c.query(selectAllWords, 0, nil, func(r []driver.Value) error {
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
		for _, p := range []words.Pattern{words.Phrase(false, text), words.Phrase(true, text)} {
			if p.Empty() {
				continue
			}
			s, err := c.wordSpots(&textPlan{op: 2, pattern: p}, false)
			if err != nil {
				t.Fatal(err)
			}
			if spot, ok, err := s.seek(beginning(false)); err != nil || !ok || spot != 7 {
				t.Fatalf("%q is not found: %v, %v, %v", text, spot, ok, err)
			}
		}
		if err := c.exec(deleteWords, 1, args()...); err != nil {
			t.Fatal(err)
		}
		if err := c.query(selectAllWords, 0, nil, func(r []driver.Value) error { t.Fatalf("%q: left is %v", text, r); return nil }); err != nil {
			t.Fatal(err)
		}
	})
}
