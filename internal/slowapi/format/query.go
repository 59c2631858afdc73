// Query: the parameters of a request.
package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

// Query has the parsed parameters of a request.
type Query struct {
	Given map[string]given
}

// given is the value of a parameter. bare is true for `To` and false for `To=`, which both have an empty value.
type given struct {
	Value string
	bare  bool
}

// ReadQuery parses a query string. A parameter is split at the first =, so `DateSent>=X` has the key `DateSent>`. If
// a name occurs several times, the last value is used. Text with an invalid encoding stays as it is.
func ReadQuery(raw string) Query {
	q := Query{map[string]given{}}
	for part := range strings.SplitSeq(raw, "&") {
		name, value, split := strings.Cut(part, "=")
		q.Given[decode(name)] = given{Value: decode(value), bare: !split}
	}
	return q
}

func decode(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// Encode returns a value as the URIs in lists write it: like url.QueryEscape, but with %20 for a space.
func Encode(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// Echo appends the parameters that the query has, in the order of keys, each followed by &. It writes an empty value
// and a name without a value as they were.
func (q Query) Echo(dst []byte, keys []string) []byte {
	for _, key := range keys {
		g, there := q.Given[key]
		if !there {
			continue
		}
		dst = append(dst, Encode(key)...)
		if !g.bare {
			dst = append(dst, '=')
			dst = append(dst, Encode(g.Value)...)
		}
		dst = append(dst, '&')
	}
	return dst
}

// DecodeStrict decodes one JSON value. It returns an error if there are unknown fields or more data after the value.
func DecodeStrict(raw []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the body is not the JSON expected here: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// DecodeEmbedded returns a function that decodes an embedded JSON file when it is first called.
func DecodeEmbedded[T any](raw []byte) func() T {
	return sync.OnceValue(func() (data T) {
		if err := DecodeStrict(raw, &data); err != nil {
			panic(err) // an error means that a file in the program is wrong
		}
		return data
	})
}

// Match compares a path with a pattern, segment by segment. A star in the pattern stands for any text that is not
// empty; it may be followed by an ending such as .json. Match returns the texts that the stars stand for.
func Match(pattern, path string) ([]string, bool) {
	var found []string
	for {
		want, laterWant, moreWant := strings.Cut(pattern, "/")
		have, laterHave, moreHave := strings.Cut(path, "/")
		ending, star := strings.CutPrefix(want, "*")
		if name, ends := strings.CutSuffix(have, ending); star && ends && name != "" {
			found = append(found, name)
		} else if want != have {
			return nil, false
		}
		if moreWant != moreHave {
			return nil, false
		}
		if !moreWant {
			return found, true
		}
		pattern, path = laterWant, laterHave
	}
}
