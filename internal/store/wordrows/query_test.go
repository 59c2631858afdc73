package wordrows

import (
	"testing"

	"understudy/internal/checktest"
)

func TestMatch(t *testing.T) {
	row := &Row{0: "0101call 0101your 0101code", 4: "0103415 0103555", 8: "0100x"}
	phrase := func(texts ...string) Query { return Query{Phrases: texts} }
	start := func(texts ...string) Query { return Query{Phrases: texts, Prefix: true} }
	for name, o := range map[string]struct {
		q    Query
		want bool
	}{
		"no phrase":                  {Query{}, false},
		"a word":                     {phrase("0101your"), true},
		"another word":               {phrase("0101you"), false},
		"the beginning of a word":    {start("0101you"), true},
		"a phrase":                   {phrase("0101call 0101your"), true},
		"words that are apart":       {phrase("0101call 0101code"), false},
		"words of two columns":       {phrase("0101code 0103415"), false},
		"one of two phrases":         {phrase("0101none", "0103415 0103555"), true},
		"a phrase whose end is open": {start("0101your 0101c"), true},
		"all":                        {Query{Op: AllParts, Parts: []Query{phrase("0100x"), phrase("0101call")}}, true},
		"not all":                    {Query{Op: AllParts, Parts: []Query{phrase("0100x"), phrase("0101none")}}, false},
		"any":                        {Query{Op: AnyPart, Parts: []Query{phrase("0101none"), phrase("0100x")}}, true},
		"none":                       {Query{Op: AnyPart, Parts: []Query{phrase("0101none"), phrase("0100y")}}, false},
		"first only":                 {Query{Op: FirstWithoutSecond, Parts: []Query{phrase("0100x"), phrase("0101none")}}, true},
		"first and second":           {Query{Op: FirstWithoutSecond, Parts: []Query{phrase("0100x"), phrase("0101call")}}, false},
	} {
		checktest.Equal(t, o.q.Match(row), o.want, "%s: match", name)
	}
}
