// Queries: the parameters of a request, read once.
package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

// Query is what stands behind the question mark, read once.
type Query struct {
	Given map[string]given
}

// given is how a parameter was given; bare is `To` where `To=` is empty.
type given struct {
	Value string
	bare  bool
}

// ReadQuery reads a raw query. Only the first = splits, so that `DateSent>=X`
// has the key `DateSent>`. The last of several of one name counts. What is not
// validly encoded is taken as it stands.
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

// Encode is the one spelling lists echo a value in: as url.QueryEscape, but a
// space is %20.
func Encode(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// Echo appends the parameters that were given, in the order of keys, each
// followed by &. Given empty, bare or not at all stay three things.
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

// Strict decodes one JSON value without unknown fields and nothing behind it.
func Strict(raw []byte, into any) error {
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

// Embedded returns what reads an embedded JSON file, once, when it is first needed.
func Embedded[T any](raw []byte) func() T {
	return sync.OnceValue(func() (data T) {
		if err := Strict(raw, &data); err != nil {
			panic(err) // it is part of the program
		}
		return data
	})
}

// Match compares a path with a pattern, part by part. A star in the pattern, an ending
// perhaps behind it, stands for anything but nothing; what it stands for comes back.
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
