// Answer form: how a spec writes down what a list answer looks like.

package understudy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// AnswerWords are what Paging.Answer may hold in braces:
//
//	{start} {end} {page} {size}                  numbers
//	{key}                                        the list's key, as a string
//	{rows}                                       the records, between brackets
//	{uri} {first} {next} {previous}              relative links; the last two may be null
//	{url} {first_url} {next_url} {previous_url}  the same, absolute
func AnswerWords() []string {
	return []string{"start", "end", "page", "size", "key", "rows", "uri", "first", "next", "previous", "url", "first_url", "next_url", "previous_url"}
}

// CutWord cuts an answer form around its first word in braces. The braces of
// the JSON itself hold no word alone.
func CutWord(form string) (before, word, after string, found bool) {
	for from := 0; ; {
		open := strings.IndexByte(form[from:], '{')
		if open < 0 {
			return form, "", "", false
		}
		open += from
		end := open + 1
		for end < len(form) && (form[end] == '_' || form[end] >= 'a' && form[end] <= 'z') {
			end++
		}
		if end > open+1 && end < len(form) && form[end] == '}' {
			return form[:open], form[open+1 : end], form[end+1:], true
		}
		from = open + 1
	}
}

// checkAnswer checks the answer form and the token of a paging.
func (p *Paging) checkAnswer() error {
	if p.Token != "" && strings.Count(p.Token, "{id}") != 1 {
		return fmt.Errorf("token %q: want {id} in it, once", p.Token)
	}
	rows := p.Answer == ""
	for rest := p.Answer; ; {
		_, word, after, found := CutWord(rest)
		switch {
		case !found && !rows:
			return fmt.Errorf("answer: want {rows} in it")
		case !found:
			return p.tryAnswer()
		case !slices.Contains(AnswerWords(), word):
			return fmt.Errorf("answer: {%s} is not known; there is {%s}", word, strings.Join(AnswerWords(), "}, {"))
		}
		rows = rows || word == "rows"
		rest = after
	}
}

// tryAnswer makes sure that an answer form makes JSON.
func (p *Paging) tryAnswer() error {
	if p.Answer == "" {
		return nil
	}
	var body []byte
	for rest := p.Answer; ; {
		before, word, after, found := CutWord(rest)
		body = append(body, before...)
		switch rest = after; {
		case !found && !json.Valid(body):
			return fmt.Errorf("answer: it makes no JSON: %s", clip(string(body)))
		case !found:
			return nil
		case word == "rows":
			body = append(body, "[]"...)
		case word == "start" || word == "end" || word == "page" || word == "size":
			body = append(body, '0')
		default:
			body = append(body, `""`...)
		}
	}
}
