// Matchers: the texts of an erased body that may stand in other places as well,
// and how they are found there.

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

// leastText is how long a text must be to be looked for elsewhere; shorter
// ones stand everywhere.
const leastText = 6

// matchers are the texts of erased bodies: the values of fields with a class,
// but for prices.
type matchers struct {
	texts   map[string]bool // as read
	numbers map[string]bool // digits of those that are phone numbers
	long    map[string]bool // those of texts that are long
}

// add collects the texts of a body; only those fields when some are named.
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
			t.value(body, v, f.Class == spec.ClassPhone)
		}
	}
}

func (t *matchers) value(body []byte, v jsonspan.Value, phone bool) {
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.VisitMembers(body, v, func(_ []byte, m jsonspan.Value) bool { t.value(body, m, phone); return true })
	case jsonspan.Array:
		jsonspan.VisitElements(body, v, func(e jsonspan.Value) bool { t.value(body, e, phone); return true })
	case jsonspan.String:
		text := jsonspan.Text(body, v)
		if len(text) < leastText {
			return
		}
		t.texts[text] = true
		if len(text) >= longText {
			t.long[text] = true
		}
		if n := understudy.ReadPhone(text); phone && len(n.Digits) >= understudy.LeastPhone {
			t.numbers[n.Digits] = true
		}
	}
}

// inPage reports whether a page's address or what lies outside its records
// holds one of the texts.
func (t *matchers) inPage(sk *codec.Skeleton) bool {
	if len(t.texts) == 0 {
		return false
	}
	if t.inURI(sk.URI) || t.inURI(sk.Next) {
		return true
	}
	found := 0
	for text := range quoted(sk.Outside) {
		if found++; t.texts[text] || t.inURI(text) {
			return true
		}
	}
	return found == 0 && t.inText(string(sk.Outside))
}

// inText reports whether any other text holds one of the texts or numbers.
func (t *matchers) inText(text string) bool {
	for one := range t.texts {
		if strings.Contains(text, one) {
			return true
		}
	}
	return t.is(text)
}

// mentioned reports whether any text holds one of the long texts or numbers.
func (t *matchers) mentioned(text string) bool {
	for one := range t.long {
		if strings.Contains(text, one) {
			return true
		}
	}
	return t.number(text)
}

// inURI reports whether a value of an address is one of the texts, or any part
// of it one of the numbers.
func (t *matchers) inURI(uri string) bool {
	path, query, _ := strings.Cut(uri, "?")
	for part := range strings.SplitSeq(path, "/") {
		if text, err := url.PathUnescape(part); err == nil && t.number(text) {
			return true
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(pair, "=")
		if text, err := url.QueryUnescape(value); err == nil && t.is(text) {
			return true
		}
	}
	return false
}

func (t *matchers) is(text string) bool {
	return t.texts[text] || t.number(text)
}

// number reports whether a text holds one of the numbers.
func (t *matchers) number(text string) bool {
	for n := range numbersIn(text) {
		if t.numbers[n] {
			return true
		}
	}
	return false
}

// quoted yields every string of a text that is nearly JSON, read.
func quoted(text []byte) func(yield func(string) bool) {
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
