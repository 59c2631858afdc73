// Quirks: what an API does with list requests that are not quite right, and the codes of
// its errors.

package spec

import (
	"fmt"
	"slices"
	"strconv"

	"understudy/kit/jsonspan"
)

// Quirks says what an API does with list requests that are not quite right. Upstream's
// text for a refusal is in the errors' messages; a refusal without a text there is not
// known.
type Quirks struct {
	Operator string `yaml:"operator"`   // a time that begins with < or >: ignored (default), refused
	Size     string `yaml:"size"`       // a page size that is no number above 0: refused (default), default
	Above    string `yaml:"size_above"` // a page size above the largest: largest (default), refused
	Alone    string `yaml:"page_alone"` // a page number without a token: counts (default), ignored
}

// The values of Quirks.
const (
	QuirkIgnored = "ignored"
	QuirkRefused = "refused"
	QuirkDefault = "default"
	QuirkLargest = "largest"
	QuirkCounts  = "counts"
)

// check fills in defaults and refuses unknown values.
func (o *Quirks) check() error {
	for _, one := range []struct {
		name  string
		value *string
		ways  []string
	}{
		{"operator", &o.Operator, []string{QuirkIgnored, QuirkRefused}},
		{"size", &o.Size, []string{QuirkRefused, QuirkDefault}},
		{"size_above", &o.Above, []string{QuirkLargest, QuirkRefused}},
		{"page_alone", &o.Alone, []string{QuirkCounts, QuirkIgnored}},
	} {
		if *one.value == "" {
			*one.value = one.ways[0]
		}
		if !slices.Contains(one.ways, *one.value) {
			return fmt.Errorf("odd.%s %q: want %s or %s", one.name, *one.value, one.ways[0], one.ways[1])
		}
	}
	return nil
}

// Code is the code of the first of our words that has one, as JSON: a number, or a text
// with its quotes; "" when none has.
func (e *Errors) Code(words ...string) string {
	for _, word := range words {
		if code := e.Codes[word]; code != "" {
			return jsonCode(code)
		}
	}
	return ""
}

// jsonCode is an error code as JSON.
func jsonCode(code string) string {
	if _, err := strconv.ParseUint(code, 10, 32); err == nil && (code == "0" || code[0] != '0') {
		return code
	}
	return string(jsonspan.Quote(nil, code))
}

// maxCode bounds a code that upstream sent, in bytes.
const maxCode = 6

// Known is a code of upstream's as JSON, from a value in an error's body: a whole number of
// plausible size, or a word that the spec has among codes or meanings. Any other is "": it
// may tell something of a record.
func (e *Errors) Known(body []byte, v jsonspan.Value) string {
	switch text := string(v.Bytes(body)); v.Kind {
	case jsonspan.Number:
		if n, err := strconv.Atoi(text); err == nil && n > 0 && len(text) <= maxCode {
			return text
		}
	case jsonspan.String:
		word := jsonspan.Text(body, v)
		_, meant := e.Meanings[word]
		for _, code := range e.Codes {
			meant = meant || code == word
		}
		if meant {
			return jsonCode(word)
		}
	}
	return ""
}
