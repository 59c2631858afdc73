// This file cuts the pieces out of a record's texts that surround the words found.

package search

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

const (
	maxSnippets     = 3
	maxSnippetBytes = 240
	leadBytes       = 60 // how many bytes of text are shown before the first found word
)

// snippets returns the pieces of a record in which the query's words were found. Texts that people wrote come first.
func snippets(q *lang.BoundQuery, c *lang.Candidate) []query.SearchSnippet {
	wanted := q.Cond.WordPredicates(nil)
	if len(wanted) == 0 {
		return nil
	}
	texts := slices.Clone(c.Texts())
	slices.SortStableFunc(texts, func(a, b tokenizer.Field) int { return cmp.Compare(classRank(a.Class), classRank(b.Class)) })
	var all []query.SearchSnippet
	for _, t := range texts {
		var marks [][2]int
		for _, l := range wanted {
			if field := l.Fields[c.View]; l.Fields != nil && field != t.Name {
				continue
			}
			for start, end := range l.Words.Find(t.Text) {
				marks = append(marks, [2]int{start, end})
				if len(marks) == 200 {
					break
				}
			}
		}
		if len(marks) == 0 {
			continue
		}
		if all = append(all, cutSnippet(t.Name, t.Text, marks)); len(all) == maxSnippets {
			break
		}
	}
	return all
}

// classRank orders the classes of fields: message texts, then names, then the rest.
func classRank(class string) int {
	switch class {
	case spec.ClassBody:
		return 0
	case spec.ClassName:
		return 1
	}
	return 2
}

// cutSnippet returns the piece of a text around its first marks.
func cutSnippet(field, text string, marks [][2]int) query.SearchSnippet {
	slices.SortFunc(marks, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	from, to := 0, len(text)
	if len(text) > maxSnippetBytes {
		from = max(0, marks[0][0]-leadBytes)
		if to = from + maxSnippetBytes; to >= len(text) {
			from, to = max(0, len(text)-maxSnippetBytes), len(text)
		}
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
		for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
			to--
		}
	}
	s := query.SearchSnippet{Field: field, Text: text[from:to], Before: from > 0, After: to < len(text)}
	for _, m := range marks {
		start, end := max(m[0]-from, 0), min(m[1], to)-from
		if end <= start {
			continue
		}
		if n := len(s.Marks); n > 0 && start <= s.Marks[n-1][1] {
			s.Marks[n-1][1] = max(s.Marks[n-1][1], end)
			continue
		}
		s.Marks = append(s.Marks, [2]int{start, end})
	}
	return s
}
