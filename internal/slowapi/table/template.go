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
	"net/http"
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

// Members are an object whose members are known only by their values.
type Members []Member

// Member is one of Members.
type Member struct {
	Name  string
	Value any
}

// Template is JSON with places: "$x" is the value x, "$x|form" the value x in one of
// the forms, {{x}} inside a string is its text, and a member "name?": "$x", is left
// out where there is no value x. {{here}} is the address the request came to.
type Template struct {
	literals []string // around the places
	places   []place
}

type place struct {
	name   string
	member string // with its quotes and colon, of a member that may be left out
	text   bool   // inside a string
	form   func(dst []byte, value any) []byte
}

var places = regexp.MustCompile(`"(\w+)\?":\s*"\$(\w+)",|"\$(\w+)(?:\|(\w+))?"|\{\{(\w+)\}\}`)

// forms are how a place can show its value: "$created|date".
var forms = map[string]func(dst []byte, value any) []byte{
	"date":   func(dst []byte, value any) []byte { return appendTime(dst, value, "Mon, 02 Jan 2006 15:04:05 +0000") },
	"stamp":  func(dst []byte, value any) []byte { return appendTime(dst, value, time.RFC3339) },
	"null":   appendUnlessZero,
	"text":   appendText,
	"number": appendNumber,
	"bool":   func(dst []byte, value any) []byte { return strconv.AppendBool(dst, value == "true") },
}

// appendTime appends Unix seconds in a layout of package time, or null for 0.
func appendTime(dst []byte, value any, layout string) []byte {
	unix, _ := value.(int64)
	if unix == 0 {
		return append(dst, "null"...)
	}
	return append(time.Unix(unix, 0).UTC().AppendFormat(append(dst, '"'), layout), '"')
}

// appendUnlessZero appends a value, or null for an empty text and for 0.
func appendUnlessZero(dst []byte, value any) []byte {
	if value == "" || value == int64(0) || value == 0.0 {
		value = nil
	}
	return AppendValue(dst, value, "")
}

// appendText appends a text; no value is an empty one.
func appendText(dst []byte, value any) []byte {
	text, _ := value.(string)
	return format.AppendText(dst, text)
}

// appendNumber appends a text that is the digits of a number without quotes, or null
// for an empty one.
func appendNumber(dst []byte, value any) []byte {
	text, _ := value.(string)
	if text == "" {
		text = "null"
	}
	return append(dst, text...)
}

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
		p := place{name: group(2) + group(3) + group(5), text: m[10] >= 0}
		if name := group(4); name != "" {
			if p.form = forms[name]; p.form == nil {
				return nil, fmt.Errorf("table: there is no form %q", name)
			}
		}
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
// beside those of the template NAME, or in their place. It panics on a bad one: they
// are part of the program.
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
			text = extend(texts[first[1:]], "{"+members)
		}
		t, err := Parse(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		all[name] = t
	}
	return all
}

// extend returns the object base with the members of more: each in the place of the
// member of that name, or else at the end.
func extend(base, more string) string {
	var names []string
	values := map[string]json.RawMessage{}
	for _, text := range []string{base, more} {
		in := json.NewDecoder(strings.NewReader(text))
		_, err := in.Token() // the brace
		for err == nil && in.More() {
			var raw json.RawMessage
			name, _ := in.Token()
			err = in.Decode(&raw)
			member := fmt.Sprint(name)
			if values[member] == nil {
				names = append(names, member)
			}
			values[member] = raw
		}
		if err != nil {
			return text // which Parse refuses
		}
	}
	var members []string
	for _, name := range names {
		members = append(members, strconv.Quote(name)+":"+string(values[name]))
	}
	return "{" + strings.Join(members, ",") + "}"
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
		case p.form != nil:
			dst = p.form(dst, value)
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
		return appendTime(dst, int64(value), time.RFC3339)
	case Part:
		return value.T.Append(dst, value.V, here)
	case []Part:
		return append(AppendParts(append(dst, '['), value, here), ']')
	case json.RawMessage:
		return append(dst, value...)
	case Members:
		dst = append(dst, '{')
		for i, one := range value {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendValue(append(format.AppendText(dst, one.Name), ':'), one.Value, here)
		}
		return append(dst, '}')
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

// Show answers with what a value shows as.
func Show(value any, here string) format.Answer {
	return format.Answer{Status: http.StatusOK, Body: AppendValue(nil, value, here)}
}

// Parts returns how rows show.
func Parts(rows []*Row, show func(*Row) Part) []Part {
	all := make([]Part, len(rows))
	for i, r := range rows {
		all[i] = show(r)
	}
	return all
}

// AppendParts appends the elements of a JSON array.
func AppendParts(dst []byte, list []Part, here string) []byte {
	for i, one := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one.T.Append(dst, one.V, here)
	}
	return dst
}
