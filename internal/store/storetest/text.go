// The rules of words: which records a text finds.

package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/conditiontest"
	"understudy/kit/tokenizer"
)

// RunText runs the rules of words; open is as that of RunSeek.
func RunText(t *testing.T, open func(t testing.TB) Seeker) {
	for _, rule := range []struct {
		name string
		test func(t *testing.T, s *seeker)
	}{
		{"scripts", textScripts},
		{"fields", textFields},
		{"shapes", textShapes},
		{"text and times", textTimes},
		{"texts that mean nothing", noTexts},
		{"limits", textLimits},
		{"any text", anyText},
	} {
		t.Run(strings.ReplaceAll(rule.name, " ", "-"), func(t *testing.T) {
			rule.test(t, &seeker{TB: t, Seeker: open(t), open: open})
		})
	}
}

// letter is a message as the tests of words have it: its fields but for ids and
// times.
type letter map[string]any

// letterPage returns an answer that shows a message in a shape.
func letterPage(n int, shape string, when time.Time, l letter) *understudy.Page {
	all := maps.Clone(l)
	all["sid"] = letterID(n)
	all["date_sent"] = Epoch.Add(time.Duration(n) * time.Second).Format(time.RFC1123Z)
	body, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	p := instance(fmt.Sprint("/m/", shape, n), when, row{id: letterID(n), body: string(body)})
	p.Kind, p.Shape = "messages", shape
	p.Rows[0].Clock = Epoch.Unix() + int64(n)
	return p
}

func letterID(n int) string { return fmt.Sprintf("SM%032x", n) }

func letterGone(n int, when time.Time) *understudy.Page {
	p := gone(fmt.Sprint("/m/", n), when, letterID(n), 404)
	p.Kind, p.Shape = "messages", "messages"
	return p
}

func (s *seeker) letters(shape string, all ...letter) {
	s.Helper()
	for i, l := range all {
		s.save(letterPage(i+1, shape, at(i), l))
	}
}

// findText returns the numbers of the messages that a text finds, newest first. It returns an error if Count
// counts another number of messages.
func findText(s Seeker, text *query.Text) (found []int, err error) {
	q := query.RecordQuery{Source: Source, Kinds: []string{"messages"}, Text: text}
	err = s.Seek(context.Background(), q, func(f query.Hit) bool {
		n := 0
		if _, err := fmt.Sscanf(f.Record.ID, "SM%x", &n); err != nil {
			panic(err)
		}
		found = append(found, n)
		return true
	})
	if err != nil {
		return nil, err
	}
	n, err := s.Count(context.Background(), q, 0, time.Time{})
	if err == nil && (n.N != int64(len(found)) || n.AtLeast) {
		err = fmt.Errorf("%d are found, counted %+v", len(found), n)
	}
	return found, err
}

func (s *seeker) wantText(text *query.Text, want ...int) {
	s.Helper()
	if got, err := findText(s.Seeker, text); err != nil || !slices.Equal(got, want) {
		shown, _ := json.Marshal(text)
		s.Errorf("%s: %v, %v, want %v", shown, got, err, want)
	}
}

func word(texts ...string) *query.Text { return &query.Text{Words: texts} }
func begins(text string) *query.Text {
	return &query.Text{Op: query.TextPrefix, Words: []string{text}}
}
func phrase(texts ...string) *query.Text {
	return &query.Text{Op: query.TextPhrase, Words: texts}
}
func joined(op query.TextOp, of ...*query.Text) *query.Text {
	return &query.Text{Op: op, Parts: of}
}
func within(t *query.Text, fields ...string) *query.Text {
	t.Fields = map[string][]string{"messages": fields}
	return t
}

func textScripts(_ *testing.T, s *seeker) {
	bodies := []string{
		1: "Your parcel #4711 (no-reply@example.com) is at https://example.com/t?id=a-b",
		2: "Straße in İstanbul, ein Éclair",
		3: "東京都に住んでいます",
		4: "مُحَمَّد وأحمد",
		5: "Привет, ёлка! שָׁלוֹם",
		6: "नमस्ते दुनिया ๑๒ สวัสดีครับ",
		7: "well done 👍🏽👩‍💻 '; DROP TABLE words; -- \" OR NEAR(a b) *",
		8: "안녕하세요",
	}
	for n, body := range bodies {
		if n > 0 {
			s.save(letterPage(n, "messages", at(n), letter{"body": body}))
		}
	}
	for _, c := range []struct {
		text *query.Text
		want []int
	}{
		{word("PARCEL"), []int{1}}, {word("#4711"), []int{1}}, {begins("47"), []int{1}}, {word("47"), nil},
		{word("no-reply@example.com"), []int{1}}, {word("reply"), []int{1}}, {word("example.com"), []int{1}}, {phrase("id", "a-b"), []int{1}},
		{word("strasse"), []int{2}}, {word("istanbul"), []int{2}}, {word("ISTANBUL"), []int{2}}, {word("eclair"), []int{2}},
		{word("京"), []int{3}}, {word("京都に"), []int{3}}, {word("都京"), nil}, {begins("住ん"), []int{3}},
		{word("محمد"), []int{4}}, {begins("واحم"), []int{4}},
		{word("ПРИВЕТ"), []int{5}}, {word("елка"), []int{5}}, {word("שלום"), []int{5}},
		{word("नमस्ते"), []int{6}}, {word("12"), []int{6}}, {word("วัสดี"), []int{6}},
		{word("👍"), []int{7}}, {word("👩‍💻"), []int{7}}, {word("👍👩‍💻"), []int{7}}, {word("drop table words"), []int{7}},
		{word("\" OR near(a"), []int{7}}, {word("' OR 1=1"), nil}, {word("*"), nil}, {word(""), nil},
		{word("녕하"), []int{8}},
	} {
		s.wantText(c.text, c.want...)
	}
}

// textTimes asks for a text and a time, and one more term: periods of places
// bound the words, whatever shapes the record is held in.
func textTimes(_ *testing.T, s *seeker) {
	for n := range 200 {
		body, status := "hello", [...]string{"failed", "delivered", "sent"}[n%3]
		if n%4 == 0 {
			body = "hello there"
		}
		s.save(letterPage(n+1, "messages", at(n), letter{"body": body, "status": status}))
	}
	s.save(letterPage(150, "detail", at(300), letter{"body": "hello there"}))
	far := letterPage(300, "messages", at(301), letter{"body": "hello there", "status": "sent"})
	far.Rows[0].Clock -= 86_400 // it stands a day before its time
	s.save(far)
	for _, c := range []struct {
		from, to int64
		text     string
		terms    []query.Predicate
		want     int
	}{
		{50, 101, "hello", nil, 51},
		{50, 101, "there", nil, 12},
		{0, 101, "there", nil, 25},
		{150, 0, "there", nil, 14},
		{300, 301, "there", nil, 1},
		{50, 101, "there", []query.Predicate{{Field: "status", Any: []string{"failed", "sent"}}}, 8},
		{400, 0, "hello", nil, 0},
		{50, 101, "nowhere", nil, 0},
	} {
		t := query.Predicate{}
		if c.from != 0 {
			t.From = Epoch.Unix() + c.from
		}
		if c.to != 0 {
			t.To = Epoch.Unix() + c.to
		}
		for _, field := range []string{"", "date_sent"} {
			for _, up := range []bool{false, true} {
				t.Field = field
				q := query.RecordQuery{Source: Source, Kinds: []string{"messages"}, Text: word(c.text),
					Predicates: append([]query.Predicate{t}, c.terms...), OldestFirst: up}
				if got := s.seek(q); len(got) != c.want {
					s.Errorf("%+v, field %q, up %v: %d, want %d", c, field, up, len(got), c.want)
				}
			}
		}
	}
}

func textFields(_ *testing.T, s *seeker) {
	s.letters("messages",
		letter{"body": "hello one", "from": "+14155550100", "to": "+14155550101", "status": "delivered", "direction": "outbound-api",
			"error_message": "carrier said no"},
		letter{"body": "hello two", "status": "failed", "error_code": 30003, "num_segments": "77",
			"unheard": map[string]any{"of": []any{"unknown words", 12}}},
		letter{"body": "delivered", "messaging_service_sid": nil, "uri": "/hidden", "api_version": "2010-04-01",
			"error_message": map[string]any{"inner": "nested thing"}})
	for _, c := range []struct {
		text *query.Text
		want []int
	}{
		{word("hello"), []int{2, 1}},
		{word("delivered"), []int{3, 1}},
		{within(word("delivered"), "body"), []int{3}},
		{within(word("delivered"), "status"), []int{1}},
		{within(word("delivered"), "status", "body"), []int{3, 1}},
		{within(word("delivered"), "direction", "from"), nil},
		{within(word("delivered")), nil},
		{&query.Text{Words: []string{"delivered"}, Fields: map[string][]string{"calls": {"status"}}}, nil},
		{within(word("delivered"), "date_sent"), nil},
		{phrase("delivered outbound"), nil},
		{phrase("outbound", "api"), []int{1}},
		{phrase("carrier", "said"), []int{1}},
		{phrase("no", "outbound"), nil},
		{begins("1415"), []int{1}},
		{within(word("14155550101"), "to"), []int{1}},
		{within(word("14155550101"), "from"), nil},
		{word("30003"), []int{2}}, {word("77"), nil}, {word("hidden"), nil}, {word("2010"), nil},
		{word("unknown words"), []int{2}}, {within(word("unknown"), "unheard"), nil}, {word("12"), []int{2}},
		{word("nested"), []int{3}}, {within(word("nested"), "error_message"), nil},
		{joined(query.TextAnd, word("hello"), word("failed")), []int{2}},
		{joined(query.TextOr, word("failed"), word("carrier")), []int{2, 1}},
		{joined(query.TextNot, word("delivered"), word("carrier")), []int{3}},
		{joined(query.TextNot, word("hello"), word("!")), []int{2, 1}},
		{joined(query.TextAnd, word("hello"), word("!")), nil},
		{joined(query.TextOr, within(word("two"), "status"), within(word("failed"), "status")), []int{2}},
		{joined(query.TextNot, word("delivered"), within(word("outbound"), "direction")), []int{3}},
		{joined(query.TextNot, word("delivered"), within(word("outbound"), "status")), []int{3, 1}},
	} {
		s.wantText(c.text, c.want...)
	}
}

// textShapes checks that a record is found once by the words of any of its shapes.
func textShapes(_ *testing.T, s *seeker) {
	s.save(letterPage(1, "messages", at(0), letter{"body": "in both, here"}))
	s.save(letterPage(1, "detail", at(1), letter{"body": "in both, there"}))
	s.wantText(word("both"), 1)
	s.wantText(word("there"), 1)
	s.wantText(joined(query.TextNot, word("both"), word("here")), 1)
	n := 0
	q := query.RecordQuery{Source: Source, Kinds: []string{"messages"}, Shape: "detail", Text: word("here")}
	if err := s.Seek(s.Context(), q, func(query.Hit) bool { n++; return true }); err != nil || n > 0 {
		s.Errorf("%d of the other shape, %v", n, err)
	}
	s.save(letterPage(1, "detail", at(2), letter{"body": "changed"}))
	s.wantText(word("there"))
	s.save(letterGone(1, at(3)))
	s.wantText(word("here"))
	s.wantText(word("changed"))
}

func noTexts(_ *testing.T, s *seeker) {
	deep := word("a")
	for range 40 {
		deep = joined(query.TextAnd, deep)
	}
	var many []*query.Text
	for range 100 {
		many = append(many, word("a"))
	}
	for _, text := range []*query.Text{{Op: 17}, {Op: query.TextAnd}, {Op: query.TextNot, Parts: many[:1]},
		{Op: query.TextOr, Parts: []*query.Text{nil}}, deep, joined(query.TextOr, many...),
		within(joined(query.TextOr, word("a")), "body")} {
		if _, err := findText(s.Seeker, text); !errors.Is(err, understudy.ErrInvalid) {
			s.Errorf("%+v: %v", text, err)
		}
	}
}

func textLimits(_ *testing.T, s *seeker) {
	long := strings.Repeat("x", 1000)
	var body strings.Builder
	for n := range 6000 {
		fmt.Fprintf(&body, "w%d ", n)
	}
	s.letters("messages", letter{"body": long + " after"},
		letter{"api_version": body.String(), "body": body.String(), "error_message": "rare"})
	s.wantText(word(long), 1)
	s.wantText(begins(long[:500]), 1)
	s.wantText(joined(query.TextNot, word("after"), word(long+"y")), 1)
	s.wantText(phrase(long, "after"), 1)
	s.wantText(word("w4000"), 2)
	s.wantText(word("w5999"))
	s.wantText(word("rare"), 2) // a field has as many words as it may, whatever the others say
	s.wantText(&query.Text{Op: query.TextPhrase, Prefix: true, Words: []string{body.String()[:160]}}, 2)
}

// anyText saves, changes and deletes messages in many scripts. It compares what random texts find with the
// messages.
func anyText(t *testing.T, s *seeker) {
	var before letters // opening a store takes longer than all the rest: one check goes on where another ended
	rapid.Check(t, func(rt *rapid.T) {
		w := &letters{s: s.Seeker, t: rt, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)), said: before.said, at: before.at}
		defer func() { before = *w }()
		for _, n := range slices.Sorted(maps.Keys(w.said)) {
			w.gone(n)
		}
		w.said = map[int]map[string]letter{}
		for range 5 + w.rng.IntN(40) {
			w.step()
		}
		for range 30 {
			w.compare()
		}
	})
}

// Alphabets are words of several scripts that differ in what folding, segmenting and joining make of them.
var Alphabets = [][]string{
	{"hello", "Hello", "world", "wörld", "help", "4711", "hell", "a"}, {"straße", "STRASSE", "éclair", "e\u0301clair"},
	{"東京", "京都", "都", "に", "ﾄﾞ", "ド"}, {"محمد", "مُحَمَّد", "أحمد", "احمد"}, {"Привет", "привет", "ёлка"},
	{"สวัสดี", "ดี"}, {"नमस्ते", "क़लम", "कलम"}, {"👍", "👍🏽", "👩‍💻", "🇩🇪"}, {"한국", "국어"}, {"\u200b", "\"", "'", "--", "*", "\xff", ""},
}

// letters is what messages say, by number and shape.
type letters struct {
	s    Seeker
	t    *rapid.T
	rng  *rand.Rand
	said map[int]map[string]letter
	at   int
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func (w *letters) words(most int) string {
	var all []string
	for range w.rng.IntN(most + 1) {
		all = append(all, strings.ToValidUTF8(pick(w.rng, pick(w.rng, Alphabets)), ""))
	}
	return strings.Join(all, pick(w.rng, []string{" ", " ", "-", ", ", ""}))
}

func (w *letters) letter() letter {
	l := letter{"body": w.words(8)}
	for _, name := range []string{"status", "direction", "error_message", "api_version", "from", "to", "unheard", "uri"} {
		if w.rng.IntN(3) == 0 {
			l[name] = w.words(3)
		}
	}
	return l
}

// gone lets a message go.
func (w *letters) gone(n int) {
	w.at++
	if _, err := w.s.Save(context.Background(), letterGone(n, at(w.at))); err != nil {
		w.t.Fatal(err)
	}
	delete(w.said, n)
}

func (w *letters) step() {
	n, shape := 1+w.rng.IntN(12), pick(w.rng, []string{"messages", "messages", "detail"})
	if w.rng.IntN(6) == 0 {
		w.gone(n)
		return
	}
	w.at++
	l := w.letter()
	if held := w.said[n][shape]; held != nil && w.rng.IntN(2) == 0 {
		l = maps.Clone(held) // one field changes
		l[pick(w.rng, []string{"body", "status", "unheard"})] = w.words(4)
	}
	if _, err := w.s.Save(context.Background(), letterPage(n, shape, at(w.at), l)); err != nil {
		w.t.Fatal(err)
	}
	if w.said[n] == nil {
		w.said[n] = map[string]letter{}
	}
	w.said[n][shape] = l
}

func (w *letters) text(depth int) *query.Text {
	t := &query.Text{Op: query.TextOp(w.rng.IntN(6))}
	if depth == 0 {
		t.Op %= query.TextAnd
	}
	switch t.Op {
	case query.TextWord, query.TextPrefix:
		text := []rune(strings.ToValidUTF8(pick(w.rng, pick(w.rng, Alphabets)), ""))
		if t.Op == query.TextPrefix && len(text) > 1 {
			text = text[:1+w.rng.IntN(len(text)-1)]
		}
		t.Words = []string{string(text)}
	case query.TextPhrase:
		t.Words, t.Prefix = []string{w.words(2), w.words(2)}, w.rng.IntN(2) == 0
	case query.TextNot:
		t.Parts = []*query.Text{w.text(depth - 1), w.text(depth - 1)}
	default:
		for range 1 + w.rng.IntN(3) {
			t.Parts = append(t.Parts, w.text(depth-1))
		}
	}
	if t.Op < query.TextAnd && w.rng.IntN(3) == 0 {
		within(t)
		for range w.rng.IntN(4) {
			field := pick(w.rng, []string{"body", "status", "direction", "error_message", "from", "to", "date_sent"})
			t.Fields["messages"] = append(t.Fields["messages"], field)
		}
	}
	return t
}

// Condition returns what a text asks of the fields of a record of a kind.
func Condition(t *query.Text, kind string) *conditiontest.Condition {
	var of []*conditiontest.Condition
	for _, part := range t.Parts {
		of = append(of, Condition(part, kind))
	}
	var c *conditiontest.Condition
	switch t.Op {
	case query.TextAnd:
		c = conditiontest.All(of...)
	case query.TextOr:
		c = conditiontest.Any(of...)
	case query.TextNot:
		c = conditiontest.Exclude(of[0], of[1])
	default:
		c = conditiontest.Has(tokenizer.Phrase(t.Op == query.TextPrefix || t.Prefix, t.Words...))
	}
	if t.Fields == nil {
		return c
	}
	return c.Restrict(func(f tokenizer.Field) bool { return slices.Contains(t.Fields[kind], f.Name) })
}

func (w *letters) compare() {
	text := w.text(3)
	holds := Condition(text, "messages")
	var want []int
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(w.said))) {
		for _, l := range w.said[n] {
			var fields []tokenizer.Field
			for name, value := range l {
				if name != "uri" { // it is no text
					fields = append(fields, tokenizer.Field{Name: name, Text: value.(string)})
				}
			}
			if holds.Match(slices.Values(fields)) {
				want = append(want, n)
				break
			}
		}
	}
	got, err := findText(w.s, text)
	if err != nil || !slices.Equal(got, want) {
		shown, _ := json.Marshal(text)
		w.t.Fatalf("%s:\n got %v, %v\nwant %v", shown, got, err, want)
	}
}
