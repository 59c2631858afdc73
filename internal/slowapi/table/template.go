// Templates: how a record looks as JSON, with places for its values.

// Package table keeps records as rows of values, shows them by templates and
// cuts lists of them into pages. APIs whose records need no code of their own
// are made of it.
package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/format"
)

// Values fill a template. A value is nil, a string, a number, a bool, a Stamp, a
// Part, a list of Parts, or anything encoding/json writes. Values are never
// changed once a row has them: a change makes new ones.
type Values map[string]any

// Stamp is a time in Unix seconds that shows as RFC 3339; 0 shows as null.
type Stamp int64

// Part is a template with its values: an object inside another.
type Part struct {
	T *Template
	V Values
}

// Template is JSON with places: "$x" is the value x, {{x}} inside a string is its
// text, and a member "name?": "$x", is left out where there is no value x.
// {{here}} is the address the request came to.
type Template struct {
	literals []string // around the places
	places   []place
}

type place struct {
	name   string
	member string // with its quotes and colon, of a member that may be left out
	text   bool   // inside a string
}

var places = regexp.MustCompile(`"(\w+)\?":\s*"\$(\w+)",|"\$(\w+)"|\{\{(\w+)\}\}`)

// Parse reads a template. White space between its members goes.
func Parse(text string) (*Template, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	text = compact.String()
	t, at := &Template{}, 0
	for _, m := range places.FindAllStringSubmatchIndex(text, -1) {
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		p := place{name: group(2) + group(3) + group(4), text: m[8] >= 0}
		if member := group(1); member != "" {
			p.member = `"` + member + `":`
		}
		t.literals, t.places, at = append(t.literals, text[at:m[0]]), append(t.places, p), m[1]
	}
	t.literals = append(t.literals, text[at:])
	if !json.Valid(t.Append(nil, Values{}, "")) {
		return nil, fmt.Errorf("table: %.60s… is no JSON once its places are empty", text)
	}
	return t, nil
}

// ParseAll reads every file of a folder; templates are called as their files,
// less the ending. A file that begins with +NAME has the members that an object has
// beside those of the template NAME. It panics on a bad one: they are part of the
// program.
func ParseAll(files fs.FS, dir string) map[string]*Template {
	texts, all := map[string]string{}, map[string]*Template{}
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		raw, err := fs.ReadFile(files, path.Join(dir, e.Name()))
		if err != nil {
			panic(err)
		}
		texts[strings.TrimSuffix(e.Name(), ".json")] = string(raw)
	}
	for name, text := range texts {
		if first, members, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "+") {
			base := strings.TrimSpace(texts[first[1:]])
			text = strings.TrimSuffix(base, "}") + ",\n" + members
		}
		t, err := Parse(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		all[name] = t
	}
	return all
}

// Append appends the JSON of values.
func (t *Template) Append(dst []byte, v Values, here string) []byte {
	for i, p := range t.places {
		dst = append(dst, t.literals[i]...)
		value, there := v[p.name]
		switch {
		case p.text && p.name == "here":
			dst = append(dst, here...)
		case p.text:
			dst = appendInText(dst, value)
		case p.member == "":
			dst = AppendValue(dst, value, here)
		case there:
			dst = append(AppendValue(append(dst, p.member...), value, here), ',')
		}
	}
	return append(dst, t.literals[len(t.places)]...)
}

// appendInText appends a value inside a string that is written already.
func appendInText(dst []byte, value any) []byte {
	switch value := value.(type) {
	case nil:
		return dst
	case string:
		at := len(dst)
		dst = format.AppendText(dst, value)
		return append(dst[:at], dst[at+1:len(dst)-1]...)
	}
	return AppendValue(dst, value, "")
}

// AppendValue appends one value as JSON.
func AppendValue(dst []byte, value any, here string) []byte {
	switch value := value.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return format.AppendText(dst, value)
	case int64:
		return strconv.AppendInt(dst, value, 10)
	case int:
		return strconv.AppendInt(dst, int64(value), 10)
	case bool:
		return strconv.AppendBool(dst, value)
	case Stamp:
		if value == 0 {
			return append(dst, "null"...)
		}
		return append(time.Unix(int64(value), 0).UTC().AppendFormat(append(dst, '"'), time.RFC3339), '"')
	case Part:
		return value.T.Append(dst, value.V, here)
	case []Part:
		return AppendList(dst, value, here)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

// AppendList appends a JSON array.
func AppendList(dst []byte, list []Part, here string) []byte {
	dst = append(dst, '[')
	for i, one := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one.T.Append(dst, one.V, here)
	}
	return append(dst, ']')
}
