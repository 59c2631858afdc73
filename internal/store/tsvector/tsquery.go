// This file turns queries into SQL.

package tsvector

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"understudy/internal/store/wordrows"
)

// phrasesTogether is the number of phrases in one search of the index. With more phrases, each row that is found takes
// longer. With fewer phrases, planning takes longer.
const phrasesTogether = 8

// simplify returns a query without the parts that match no row, or nil if the query matches none.
func simplify(q *wordrows.Query) *wordrows.Query {
	simple := wordrows.Query{Op: q.Op, Phrases: q.Phrases, Prefix: q.Prefix}
	for i := range q.Parts {
		part := simplify(&q.Parts[i])
		switch {
		case part != nil:
			simple.Parts = append(simple.Parts, *part)
		case q.Op == wordrows.AllParts, q.Op == wordrows.FirstWithoutSecond && i == 0:
			return nil
		}
	}
	switch {
	case q.Op == wordrows.FirstWithoutSecond && len(simple.Parts) == 1:
		return &simple.Parts[0]
	case len(simple.Phrases)+len(simple.Parts) == 0:
		return nil
	}
	return &simple
}

// condition is a condition on the columns of a row, in SQL.
type condition struct {
	text string
	args []driver.Value // the parameters in text, from ?1 on
}

// hasWord reports whether the lexemes alone decide a part of the query.
func hasWord(q *wordrows.Query) bool {
	if len(q.Parts) == 0 {
		return !hasPhrase(q)
	}
	return slices.ContainsFunc(q.Parts, func(part wordrows.Query) bool { return hasWord(&part) })
}

func hasPhrase(q *wordrows.Query) bool {
	return slices.ContainsFunc(q.Phrases, func(phrase string) bool { return strings.Contains(phrase, " ") })
}

// match returns the condition that a row matches a query. It may be wrong for rows whose lines are too long, because they have no
// lexemes. If more is set, the condition holds for every such row that matches. Otherwise it holds for no such row that does not match.
func (b *condition) match(q *wordrows.Query, indexed, more bool) string {
	switch q.Op {
	case wordrows.AnyPhrase:
		return b.matchPhrases(q, indexed, more)
	case wordrows.FirstWithoutSecond:
		return "(" + b.match(&q.Parts[0], indexed, more) + " AND NOT " + b.match(&q.Parts[1], false, !more) + ")"
	}
	parts := make([]string, len(q.Parts))
	for i := range q.Parts {
		parts[i] = b.match(&q.Parts[i], indexed, more)
	}
	return join(q.Op, parts)
}

// matchPhrases does what match does, for a query of phrases.
func (b *condition) matchPhrases(q *wordrows.Query, indexed, more bool) string {
	phrases := hasPhrase(q)
	if phrases && !indexed {
		return b.matchLine(q)
	}
	together, searches := len(q.Phrases), []string(nil)
	if indexed {
		together = phrasesTogether
	}
	for from := 0; from < len(q.Phrases); from += together {
		all := make([]string, 0, together+1)
		for _, phrase := range q.Phrases[from:min(from+together, len(q.Phrases))] {
			all = append(all, writeLexemes(phrase, q.Prefix))
		}
		if from == 0 && more {
			all = append(all, "'"+tooLong+"'")
		}
		searches = append(searches, "lexemes @@ "+b.param(strings.Join(all, " | "))+"::tsquery")
	}
	lexemes := join(wordrows.AnyPart, searches)
	switch {
	case phrases:
		return "(" + lexemes + " AND " + b.matchLine(q) + ")"
	case indexed:
		return lexemes
	}
	pattern, _ := outline(q)
	return "(line LIKE " + b.param(pattern) + " AND " + lexemes + ")"
}

// matchLine returns the condition that the line of a row matches a query.
func (b *condition) matchLine(q *wordrows.Query) string {
	parts := make([]string, len(q.Parts))
	for i := range q.Parts {
		parts[i] = b.matchLine(&q.Parts[i])
	}
	switch texts := textsOf(q); {
	case q.Op == wordrows.FirstWithoutSecond:
		return "(" + parts[0] + " AND NOT " + parts[1] + ")"
	case q.Op != wordrows.AnyPhrase:
		return join(q.Op, parts)
	case len(texts) == 1:
		return "strpos(line, " + b.param(texts[0]) + ") > 0"
	default:
		pattern, head := outline(q)
		all := "string_to_array(" + b.param(strings.Join(texts, "\n")) + ", E'\\n')"
		// Usually the text at the first occurrence of head decides. Comparing that text with the list is faster than
		// searching the line for each text of the list.
		return fmt.Sprintf("(line LIKE %s AND (substr(line, strpos(line, %s) - %d, %d) = ANY (%s) "+
			"OR EXISTS (SELECT FROM unnest(%[5]s) AS text WHERE strpos(line, text) > 0)))",
			b.param(pattern), b.param(head), 1+tagBytes, utf8.RuneCountInString(texts[0]), all)
	}
}

func (b *condition) param(value string) string {
	b.args = append(b.args, value)
	return "?" + strconv.Itoa(len(b.args))
}

func join(op wordrows.Op, parts []string) string {
	if op == wordrows.AllParts {
		return "(" + strings.Join(parts, " AND ") + ")"
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// lexeme quotes a word for a tsquery.
var lexeme = strings.NewReplacer(`'`, `''`, `\`, `\\`)

// writeLexemes returns the tsquery of rows that have all words of a phrase.
func writeLexemes(phrase string, prefix bool) string {
	words := strings.Split(phrase, " ")
	for i, word := range words {
		words[i] = "'" + lexeme.Replace(word) + "'"
	}
	all := strings.Join(words, " & ")
	if prefix {
		all += ":*"
	}
	return "(" + all + ")"
}

// textsOf returns texts. The line of a matching row contains at least one of them.
func textsOf(q *wordrows.Query) []string {
	end := " "
	if q.Prefix {
		end = ""
	}
	all := make([]string, len(q.Phrases))
	for i, phrase := range q.Phrases {
		all[i] = " " + phrase + end
	}
	return all
}

// tagBytes is the length of the tag with which each word begins.
const tagBytes = 4

// like quotes a text for LIKE.
var like = strings.NewReplacer(`%`, `\%`, `_`, `\_`, `\`, `\\`)

// outline returns a LIKE pattern that matches every line with one of the texts of a query, and the end of the first word of the
// texts, after its tag. Usually the texts are the same words with the tags of several fields. Texts of other words have
// nothing in common.
func outline(q *wordrows.Query) (pattern, head string) {
	for i, text := range textsOf(q) {
		words := strings.SplitAfter(text, " ")[1:]
		head = words[0][tagBytes:]
		same := "%" + like.Replace(head)
		for _, word := range words[1:] {
			if word != "" {
				same += "____" + like.Replace(word[tagBytes:])
			}
		}
		if i > 0 && same != pattern {
			return "%", ""
		}
		pattern = same
	}
	return pattern + "%", head
}
