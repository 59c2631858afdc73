// What FTS5 makes of words that are cut already: nothing else.

package words

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/internal/store/fts5/fts5test"
	"understudy/internal/store/wordrows"
	"understudy/kit/tokenizer"
	"understudy/spec/spectest"
)

var table fts5.Table

// FuzzWordsInFTS5 writes the words of a text and reads from the index what it
// has taken them for; then it finds them, and takes them out.
func FuzzWordsInFTS5(f *testing.F) {
	for _, text := range []string{"", "Hello, World!", "Straße İstanbul", "東京タワー ｶﾞ", "مُحَمَّد", "स्ते क़", "👩‍💻👍🏽 🇩🇪", "a\x00b\xffc",
		"NEAR OR AND NOT \"x\" *", "\ue000 \u0378", "x" + strings.Repeat("é", 100)} {
		f.Add(text)
	}
	c, kinds := fts5test.Open(f), []*Kind{some(2, "some")}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		want := tokenizer.Fold(text)
		for i := range want {
			want[i] = "0200" + want[i]
		}
		row := wordrows.Row{columnOther: strings.Join(want, " ")}
		kinds[0].add(&row)
		if err := table.Update(c, []wordrows.Write{{Posting: 7, Row: row}}); err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(want))
		err := table.VisitWords(c, func(w wordrows.Word) error {
			checktest.MustTrue(t, w.At < int64(len(want)), "%q: w.At is %v", text, w.At)
			checktest.MustEqual(t, w.Posting, 7, "%q: w.Posting", text)
			checktest.MustEqual(t, w.Column, int(columnOther), "%q: w.Column", text)
			got[w.At] = w.Text
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: the index has %q, %v; cut were %q", text, got, err, want)
		}
		for _, p := range []tokenizer.Pattern{tokenizer.Phrase(false, text), tokenizer.Phrase(true, text)} {
			if p.IsEmpty() {
				continue
			}
			s, err := Find(&wordrows.Snapshot{C: c, Table: table}, &Plan{pattern: p}, kinds, false)
			if err != nil {
				t.Fatal(err)
			}
			{
				at, ok, err := s.Advance(math.MaxInt64)
				checktest.MustNoError(t, err, "%q is not found", text)
				checktest.MustTrue(t, ok, "%q is not found: ok is false", text)
				checktest.MustEqual(t, at, 7, "%q is not found: at", text)
			}
		}
		if err := table.Update(c, []wordrows.Write{{Posting: 7, Delete: true, Row: row}}); err != nil {
			t.Fatal(err)
		}
		if err := table.VisitWords(c, func(w wordrows.Word) error { t.Fatalf("%q: left is %v", text, w); return nil }); err != nil {
			t.Fatal(err)
		}
	})
}

// some returns a kind with fields of every class: body, error, from, name, status, to, url.
func some(number int64, name string) *Kind {
	rule := Rule{"body": {column: columnBody}, "status": {column: columnPlain}, "error": {column: columnPlain}, "from": {column: columnPhone},
		"to": {column: columnPhone}, "name": {column: columnName}, "url": {column: columnURL}, "sid": {column: columnNone}}
	rule.assignNumbers()
	return NewKind(number, name, rule)
}

// H2: a field or a kind that is not asked for is not named to FTS5, so that none of its
// words is read; nor is a field that does not have the words.
func TestHiddenFieldsAreNotAskedFor(t *testing.T) {
	c := fts5test.Open(t)
	has := func(text string, prefix bool, fields map[string][]string) *Plan {
		return &Plan{pattern: tokenizer.Phrase(prefix, text), fields: fields}
	}
	calls, messages := some(1, "calls"), some(38, "messages")
	var many []string
	for i := range maxKnown + 1 {
		many = append(many, fmt.Sprintf("1201many%d", i))
	}
	rows := []wordrows.Row{{columnPlain: "0105a 0105b 0105long", columnPhone: "0103a"}, {columnPlain: "0105ber 0105ber 0105never 0105berlin"},
		{columnBody: strings.Join(many, " "), columnPlain: "1205long", columnOther: "1200odd"}}
	for i := range rows {
		if i == 0 { // the others are in the index before anybody asks
			calls.add(&rows[i])
		}
		if err := table.Update(c, []wordrows.Write{{Posting: int64(i), Row: rows[i]}}); err != nil {
			t.Fatal(err)
		}
	}
	status := map[string][]string{"calls": {"status"}}
	both := map[string][]string{"calls": {"from", "sid", "status"}, "messages": {"body"}}
	phrases := func(all ...string) wordrows.Query { return wordrows.Query{Phrases: all} }
	longer := func(q wordrows.Query) wordrows.Query { q.Prefix = true; return q }
	for _, o := range []struct {
		plan  *Plan
		kinds []*Kind
		want  wordrows.Query
	}{
		{has("a b", false, status), []*Kind{calls, messages}, phrases("0105a 0105b")},
		{has("a b", true, status), []*Kind{calls}, longer(phrases("0105a 0105b"))},
		{has("a", false, both), []*Kind{calls, messages}, phrases("0103a", "0105a", "1201a")},
		{has("a", false, map[string][]string{"calls": {"to", "sid", "none"}}), []*Kind{calls, messages}, phrases()},
		{has("a", false, map[string][]string{}), []*Kind{calls, messages}, phrases()},
		{has("odd", false, both), []*Kind{messages}, phrases("1201odd")},
		{has("odd", false, nil), []*Kind{calls, messages}, phrases("1200odd", "1201odd")},
		{has("none", false, nil), []*Kind{calls}, phrases()},
		{has("man", true, both), []*Kind{messages}, longer(phrases("1201man"))},
		{has("none", true, both), []*Kind{calls, messages}, longer(phrases("1201none"))},
		{&Plan{op: wordrows.FirstWithoutSecond, parts: []*Plan{has("a", false, status), has("long", false, nil)}}, []*Kind{calls},
			wordrows.Query{Op: wordrows.FirstWithoutSecond, Parts: []wordrows.Query{phrases("0105a"), phrases("0105long")}}},
	} {
		if got, err := o.plan.bind(&wordrows.Snapshot{C: c, Table: table}, o.kinds); err != nil || !reflect.DeepEqual(got, o.want) {
			t.Errorf("%+v, %v, want %+v", got, err, o.want)
		}
	}
}

// TestFieldsAreNumberedByTheirForm: a form gives each field the number that the spec gives it.
func TestFieldsAreNumberedByTheirForm(t *testing.T) {
	rule := RuleOf(spectest.BuiltIn(t, "twilio").Kind("messages"))
	checktest.True(t, rule["body"].number != 0, `numbered: rule["body"].number is 0`)
	checktest.Equal(t, rule["sid"].number, 0, `numbered: rule["sid"].number`)
	checktest.True(t, rule["from"].number != rule["to"].number, `numbered: rule["from"].number is %v`,
		rule["from"].number)
	if again := ReadRule(rule.Form()); !maps.Equal(again, rule) {
		t.Errorf("read back %+v, want %+v", again, rule)
	}
	many, name := Rule{}, func(i int) string { return fmt.Sprintf("f%05d", i) }
	for i := range query.MaxTextFields + 10 {
		many[name(i)] = field{}
	}
	many.assignNumbers()
	for i, want := range map[int]int{0: 1, query.MaxTextFields - 1: query.MaxTextFields, query.MaxTextFields: 0} {
		if got := many[name(i)].number; got != want {
			t.Errorf("field %d of more than %d has the number %d, want %d", i, query.MaxTextFields, got, want)
		}
	}
	if tag := wordTag(0, query.MaxTextFields); tag != "00zz" {
		t.Errorf("the last number is tagged %s", tag)
	}
}
