// Envelope: the template of a list answer in a spec.

package paging

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy"
)

// EnvelopeWords returns the words that Rules.Template may contain in braces:
//
//	{start} {end} {page} {size}                  numbers
//	{total}                                      number of rows of all pages
//	{more}                                       whether a next page exists
//	{next_token}                                 the token of the next page, or null
//	{key}                                        the list's key, as a string
//	{rows}                                       the records, between brackets
//	{path}                                       the path of {uri}
//	{uri} {first} {next} {previous}              relative links; the last two may be null
//	{url} {first_url} {next_url} {previous_url}  the same, absolute
func EnvelopeWords() []string {
	return []string{
		"start", "end", "page", "size", "total", "more", "next_token", "key", "rows", "path", "uri", "first", "next", "previous",
		"url", "first_url", "next_url", "previous_url",
	}
}

// CutWord splits a template at its first word in braces. Braces that belong to the JSON never enclose a single word.
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

// checkAnswer checks the template and the token of the rules.
func (r *Rules) checkAnswer(style style) error {
	if r.Token != "" && strings.Count(r.Token, "{id}") != 1 {
		return fmt.Errorf("token %q: write {id} exactly once", r.Token)
	}
	rows := r.Template == ""
	for rest := r.Template; ; {
		_, word, after, found := CutWord(rest)
		switch {
		case !found && !rows:
			return fmt.Errorf("answer: write {rows} in the place of the records")
		case !found:
			return r.tryAnswer(style)
		case !slices.Contains(EnvelopeWords(), word):
			return fmt.Errorf("answer: {%s} is not known; write one of {%s}", word, strings.Join(EnvelopeWords(), "}, {"))
		}
		rows = rows || word == "rows"
		rest = after
	}
}

// tryAnswer checks that a template gives JSON, and that this JSON says at the upstream's place whether a next
// page exists. Otherwise a program would take the first page for the complete list.
func (r *Rules) tryAnswer(style style) error {
	if r.Template == "" {
		return nil
	}
	ends, err := r.sample(r.Next, false)
	if err != nil {
		return err
	}
	goes, err := r.sample(r.Next, true)
	if err != nil {
		return err
	}
	if strings.HasPrefix(r.Next, inHeader) { // the function NextHeader sets this header, so the template need not contain it
		ends, goes = nil, nil
	}
	if err := style.checkTemplate(r, goes, ends); err != nil {
		return err
	}
	head, _, _ := strings.Cut(r.Token, "{id}")
	if strings.Contains(r.Template, "{previous") && len(r.Tokens) > 0 && r.Token != "" && r.Back == "" && !strings.Contains(head, "A") {
		return fmt.Errorf("answer: {previous} cannot be filled, because the token %q looks the same for the page before; remove {previous}",
			r.Token)
	}
	return nil
}

// checkWord checks that the template has a word at a place of the body, and that the place has the given value
// on the last page. An empty place passes.
func (r *Rules) checkWord(place, word string, value any) error {
	if place == "" {
		return nil
	}
	last, err := r.sample(place, false)
	if err == nil && (last != value || !strings.Contains(r.Template, "{"+word+"}")) {
		err = fmt.Errorf("answer: write {%s} at %s", word, place)
	}
	return err
}

// sample fills the template with sample values and returns the value at a place. goes says whether a next page should
// exist.
func (r *Rules) sample(place string, goes bool) (value any, err error) {
	var body []byte
	for rest := r.Template; ; {
		before, word, after, found := CutWord(rest)
		body = append(body, before...)
		switch rest = after; {
		case !found && json.Unmarshal(body, &value) != nil:
			return nil, fmt.Errorf("answer is not JSON after filling: %s", understudy.Clip(string(body)))
		case !found:
			return memberAt(value, place), nil
		case word == "rows":
			body = append(body, "[]"...)
		case slices.Contains([]string{"start", "end", "page", "size", "total"}, word):
			body = append(body, '0')
		case word == "more":
			body = strconv.AppendBool(body, goes)
		case goes && word == "next_token":
			body = append(body, `"/token"`...)
		case goes && (word == "next" || word == "next_url"):
			body = append(body, `"/next"`...)
		case word == "next", word == "next_url", word == "next_token":
			body = append(body, "null"...)
		default:
			body = append(body, `""`...)
		}
	}
}

// memberAt returns the value of a dotted name as jsonspan.Find does, or nil.
func memberAt(value any, dotted string) any {
	object, _ := value.(map[string]any)
	if whole, there := object[dotted]; there {
		return whole
	}
	head, rest, path := strings.Cut(dotted, ".")
	if !path {
		return nil
	}
	return memberAt(object[head], rest)
}
