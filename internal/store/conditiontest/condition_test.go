// Conditions over fields, by a table.

package conditiontest_test

import (
	"slices"
	"testing"

	"understudy/internal/store/conditiontest"
	"understudy/kit/tokenizer"
)

func TestCondition(t *testing.T) {
	fields := []tokenizer.Field{{Class: "body", Name: "body", Text: "The quick brown fox"}, {Name: "status", Text: "delivered"},
		{Class: "name", Name: "caller_name", Text: "Anna Brown"}}
	word := func(texts ...string) *conditiontest.Condition {
		return conditiontest.Has(tokenizer.Phrase(false, texts...))
	}
	in := func(class string) func(tokenizer.Field) bool {
		return func(f tokenizer.Field) bool { return f.Class == class && f.Text == "" }
	}
	for name, c := range map[string]struct {
		c    *conditiontest.Condition
		want bool
		in   []string // what is found in the body
	}{
		"word":            {word("QUICK"), true, []string{"quick"}},
		"absent":          {word("wolf"), false, nil},
		"phrase":          {word("brown", "fox"), true, []string{"brown fox"}},
		"not over fields": {word("fox delivered"), false, nil},
		"prefix":          {conditiontest.Has(tokenizer.Phrase(true, "quick br")), true, []string{"quick brown"}},
		"all over fields": {conditiontest.All(word("fox"), word("delivered")), true, []string{"fox"}},
		"all of none":     {conditiontest.All(), true, nil},
		"any of none":     {conditiontest.Any(), false, nil},
		"any":             {conditiontest.Any(word("wolf"), word("anna")), true, nil},
		"but":             {conditiontest.Exclude(word("fox"), word("wolf")), true, []string{"fox"}},
		"but not":         {conditiontest.Exclude(word("fox"), word("anna")), false, []string{"fox"}},
		"but but": {conditiontest.Exclude(word("fox"),
			conditiontest.Exclude(word("anna"), word("brown"))), true, []string{"fox", "brown"}},
		"where":            {word("brown").Restrict(in("name")), true, nil},
		"where it is not":  {word("fox").Restrict(in("name")), false, nil},
		"where all apply":  {conditiontest.All(word("brown").Restrict(in("name"))).Restrict(in("body")), false, nil},
		"same in two ways": {conditiontest.Exclude(word("anna"), word("anna").Restrict(in("body"))), true, nil},
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
