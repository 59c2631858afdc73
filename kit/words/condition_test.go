// Conditions over fields, by a table.

package words_test

import (
	"slices"
	"testing"

	"understudy/kit/words"
)

func TestCondition(t *testing.T) {
	fields := []words.Field{{"body", "body", "The quick brown fox"}, {"", "status", "delivered"}, {"name", "caller_name", "Anna Brown"}}
	word := func(texts ...string) *words.Condition { return words.Has(words.Phrase(false, texts...)) }
	in := func(class string) func(words.Field) bool {
		return func(f words.Field) bool { return f.Class == class && f.Text == "" }
	}
	for name, c := range map[string]struct {
		c    *words.Condition
		want bool
		in   []string // what is found in the body
	}{
		"word":             {word("QUICK"), true, []string{"quick"}},
		"absent":           {word("wolf"), false, nil},
		"phrase":           {word("brown", "fox"), true, []string{"brown fox"}},
		"not over fields":  {word("fox delivered"), false, nil},
		"prefix":           {words.Has(words.Phrase(true, "quick br")), true, []string{"quick brown"}},
		"all over fields":  {words.All(word("fox"), word("delivered")), true, []string{"fox"}},
		"all of none":      {words.All(), true, nil},
		"any of none":      {words.Any(), false, nil},
		"any":              {words.Any(word("wolf"), word("anna")), true, nil},
		"but":              {words.But(word("fox"), word("wolf")), true, []string{"fox"}},
		"but not":          {words.But(word("fox"), word("anna")), false, []string{"fox"}},
		"but but":          {words.But(word("fox"), words.But(word("anna"), word("brown"))), true, []string{"fox", "brown"}},
		"where":            {word("brown").Where(in("name")), true, nil},
		"where it is not":  {word("fox").Where(in("name")), false, nil},
		"where all apply":  {words.All(word("brown").Where(in("name"))).Where(in("body")), false, nil},
		"same in two ways": {words.But(word("anna"), word("anna").Where(in("body"))), true, nil},
		"no words":         {word("!!!"), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.c.Match(slices.Values(fields)); got != c.want {
				t.Errorf("holds: %v", got)
			}
			var in []string
			for start, end := range c.c.Find(fields[0]) {
				in = append(in, fields[0].Text[start:end])
			}
			if !slices.Equal(in, c.in) {
				t.Errorf("found %q, want %q", in, c.in)
			}
		})
	}
}
