// Quirks: what an API does with list requests that are slightly wrong, and its error codes.

package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"understudy/kit/jsonspan"
)

// Quirks says what an API does with list requests that are slightly wrong. The texts of refusals are in
// Errors.Messages. A refusal without a text there is not known.
type Quirks struct {
	Operator string `yaml:"operator"`   // what the API does with a time that begins with < or >: ignored (default), refused
	Size     string `yaml:"size"`       // what the API does with a page size that is not a number above 0: refused (default), default
	Above    string `yaml:"size_above"` // what the API does with a page size above the maximum: largest (default), refused
	Alone    string `yaml:"page_alone"` // what the API does with a page number without a token: counts (default), ignored
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
		*one.value = cmp.Or(*one.value, one.ways[0])
		if !slices.Contains(one.ways, *one.value) {
			return fmt.Errorf("odd.%s %q is not known; write %s or %s", one.name, *one.value, one.ways[0], one.ways[1])
		}
	}
	return nil
}

// Code returns the code of the first of Understudy's error words that has a code, as JSON: a number, or a text with
// quotes. It returns "" if no word has a code.
func (e *Errors) Code(words ...string) string {
	for _, word := range words {
		if code := e.Codes[word]; code != "" {
			return jsonCode(code)
		}
	}
	return ""
}

// jsonCode returns an error code as JSON.
func jsonCode(code string) string {
	if _, err := strconv.ParseUint(code, 10, 32); err == nil && (code == "0" || code[0] != '0') {
		return code
	}
	return string(jsonspan.Quote(nil, code))
}

// maxCodeDigits is the maximum length of a numeric error code from the upstream.
const maxCodeDigits = 6

// UpstreamCode returns an error code from an upstream body, as JSON. It accepts whole numbers of plausible
// size, and words among the spec's codes or meanings. For anything else it returns "", because that might
// reveal something about a record.
func (e *Errors) UpstreamCode(body []byte, v jsonspan.Value) string {
	switch text := string(v.Bytes(body)); v.Kind {
	case jsonspan.Number:
		if n, err := strconv.Atoi(text); err == nil && n > 0 && len(text) <= maxCodeDigits {
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
