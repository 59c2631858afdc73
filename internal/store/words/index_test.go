// What FTS5 makes of words that are cut already: nothing else.

package words

import (
	"math"
	"slices"
	"strings"
	"testing"

	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/internal/store/fts5/fts5test"
	"understudy/kit/tokenizer"
)

// FuzzWordsInFTS5 writes the words of a text and reads from the index what it
// has taken them for; then it finds them, and takes them out.
func FuzzWordsInFTS5(f *testing.F) {
	for _, text := range []string{"", "Hello, World!", "Straße İstanbul", "東京タワー ｶﾞ", "مُحَمَّد", "स्ते क़", "👩‍💻👍🏽 🇩🇪", "a\x00b\xffc",
		"NEAR OR AND NOT \"x\" *", "\ue000 \u0378", "x" + strings.Repeat("é", 100)} {
		f.Add(text)
	}
	c, kinds := fts5test.Open(f), []*Kind{tagged(2, columnOther)}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		want := tokenizer.Fold(text)
		for i := range want {
			want[i] = "02o" + want[i]
		}
		row := fts5.Row{columnOther: strings.Join(want, " ")}
		if err := fts5.Update(c, []fts5.Write{{Posting: 7, Row: row}}); err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(want))
		err := fts5.Each(c, func(w fts5.Word) error {
			if w.At >= int64(len(want)) || w.Posting != 7 || w.Column != int(columnOther) {
				t.Fatalf("%q: %v", text, w)
			}
			got[w.At] = w.Text
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: the index has %q, %v; cut were %q", text, got, err, want)
		}
		for _, p := range []tokenizer.Pattern{tokenizer.Phrase(false, text), tokenizer.Phrase(true, text)} {
			if p.Empty() {
				continue
			}
			s, err := Find(c, nil, &Plan{op: query.TextPhrase, pattern: p}, kinds, false)
			if err != nil {
				t.Fatal(err)
			}
			if at, ok, err := s.Advance(math.MaxInt64); err != nil || !ok || at != 7 {
				t.Fatalf("%q is not found: %v, %v, %v", text, at, ok, err)
			}
		}
		if err := fts5.Update(c, []fts5.Write{{Posting: 7, Out: true, Row: row}}); err != nil {
			t.Fatal(err)
		}
		if err := fts5.Each(c, func(w fts5.Word) error { t.Fatalf("%q: left is %v", text, w); return nil }); err != nil {
			t.Fatal(err)
		}
	})
}

// tagged is a kind in a question that has words of some classes.
func tagged(number int64, classes ...column) *Kind {
	k := &Kind{Number: number}
	for _, c := range classes {
		k.said.bits.Or(1 << c)
	}
	return k
}

// H2: a class or a kind that is not asked for is not named to FTS5, so that none
// of its words is read; nor is one that has no words.
func TestHiddenClassesAreNotAskedFor(t *testing.T) {
	none := func(prefix string) ([]string, error) { return []string{prefix, prefix + "er"}, nil }
	has := func(text string, prefix bool) *Plan {
		return &Plan{op: query.TextPhrase, pattern: tokenizer.Phrase(prefix, text)}
	}
	both := &Plan{op: query.TextOr, of: []*Plan{has("a b", false), has("long", true)}}
	calls, messages := tagged(1, columnPlain, columnPhone), tagged(38, columnPlain, columnBody)
	for _, c := range []struct {
		plan  *Plan
		kinds []*Kind
		want  string
	}{
		{both.within([]column{columnPlain}), []*Kind{calls}, `((("01pa 01pb") OR ("01plong" OR "01plonger")))`},
		{both.within([]column{columnPlain, columnPhone}).within([]column{columnPhone, columnName}), []*Kind{calls, messages},
			`(((("01ha 01hb") OR ("01hlong" OR "01hlonger"))))`},
		{has("long", false).within([]column{columnPlain}).within([]column{columnName}), []*Kind{calls}, `((("0")))`},
		{has("long", false), []*Kind{calls, messages}, `("01plong" OR "01hlong" OR "12blong" OR "12plong")`},
	} {
		if got, err := c.plan.match(c.kinds, none); err != nil || got != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}
