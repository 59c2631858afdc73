// This file collects the texts of an erased body, and finds these texts in other places.

package erase

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// minText is the minimum length of a text that is searched for in other places. Shorter texts occur everywhere.
const minText = 6

// matchers are the texts of erased bodies: the values of all fields that have a class other than price.
type matchers struct {
	texts     map[string]bool             // the texts without JSON escapes
	numbers   map[string]bool             // the digits of texts that are phone numbers
	longTexts map[[longText]byte][]string // the texts that have at least the length longText, by how they begin
}

// add collects the texts of a body. If only contains names of fields, add collects only the texts of these fields.
func (t *matchers) add(kind *spec.Kind, body []byte, only []string) {
	doc, err := jsonspan.Parse(body)
	if kind == nil || err != nil || doc.Kind != jsonspan.Object {
		return
	}
	for _, f := range kind.Fields {
		if f.Class == "" || f.Class == spec.ClassPrice || len(only) > 0 && !slices.Contains(only, f.Name) {
			continue
		}
		if v, ok := jsonspan.Find(body, doc, f.Name); ok {
			t.addValue(body, v, f.Class == spec.ClassPhone)
		}
	}
}

// addValue collects the texts of a value and the values inside it.
func (t *matchers) addValue(body []byte, v jsonspan.Value, phone bool) {
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.VisitMembers(body, v, func(_ []byte, m jsonspan.Value) bool { t.addValue(body, m, phone); return true })
	case jsonspan.Array:
		jsonspan.VisitElements(body, v, func(e jsonspan.Value) bool { t.addValue(body, e, phone); return true })
	case jsonspan.String:
		text := jsonspan.Text(body, v)
		if len(text) < minText {
			return
		}
		if len(text) >= longText && !t.texts[text] {
			begins := [longText]byte([]byte(text))
			t.longTexts[begins] = append(t.longTexts[begins], text)
		}
		t.texts[text] = true
		if n := understudy.ParsePhone(text); phone && len(n.Digits) >= understudy.MinPhoneDigits {
			t.numbers[n.Digits] = true
		}
	}
}

// matchPage reports whether a page's address, or its bytes outside the records, contain one of the texts.
func (t *matchers) matchPage(sk *codec.Skeleton) bool {
	if len(t.texts) == 0 {
		return false
	}
	if t.matchURI(sk.URI) || t.matchURI(sk.Next) {
		return true
	}
	found := 0
	for text := range quotedStrings(sk.Outside) {
		if found++; t.texts[text] || t.matchURI(text) {
			return true
		}
	}
	return found == 0 && t.matchText(string(sk.Outside))
}

// matchText reports whether a text contains one of the texts or numbers.
func (t *matchers) matchText(text string) bool {
	if len(text) < minText {
		return false
	}
	for one := range t.texts {
		if strings.Contains(text, one) {
			return true
		}
	}
	return t.match(text)
}

// matchMention reports whether a text contains one of the long texts or numbers.
func (t *matchers) matchMention(text string) bool {
	for from := 0; from+longText <= len(text); from++ {
		for _, one := range t.longTexts[[longText]byte([]byte(text[from:from+longText]))] {
			if strings.HasPrefix(text[from:], one) {
				return true
			}
		}
	}
	return t.matchNumber(text)
}

// matchURI reports whether a query value of the address is one of the texts, or any part of the address contains one of
// the numbers.
func (t *matchers) matchURI(uri string) bool {
	path, query, _ := strings.Cut(uri, "?")
	for part := range strings.SplitSeq(path, "/") {
		if text, err := url.PathUnescape(part); err == nil && t.matchNumber(text) {
			return true
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(pair, "=")
		if text, err := url.QueryUnescape(value); err == nil && t.match(text) {
			return true
		}
	}
	return false
}

func (t *matchers) match(text string) bool {
	return t.texts[text] || t.matchNumber(text)
}

// matchNumber reports whether a text contains one of the numbers.
func (t *matchers) matchNumber(text string) bool {
	for n := range numbersIn(text) {
		if t.numbers[n] {
			return true
		}
	}
	return false
}

// quotedStrings yields every JSON string in a text, decoded. The text need not be valid JSON.
func quotedStrings(text []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(text); {
			from := bytes.IndexByte(text[i:], '"')
			if from < 0 {
				return
			}
			start := i + from + 1
			end := start
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text))
			read := string(text[start:end])
			if doc := text[start-1 : min(end+1, len(text))]; bytes.IndexByte(doc, '\\') >= 0 {
				if v, err := jsonspan.Parse(doc); err == nil {
					read = jsonspan.Text(doc, v)
				}
			}
			if !yield(read) {
				return
			}
			i = end + 1
		}
	}
}
