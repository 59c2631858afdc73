// Templates: the JSON of records, with placeholders for their values.

// Package table stores simulated records as rows of named values, and writes them as JSON with templates. The
// imitated APIs of GitHub and Stripe use it.
package table

import (
	"bytes"
	"cmp"
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

// Values are the named values of a record. A value may be nil, a string, a number, a bool, a Stamp, a Part, a []Part, or any
// other value that encoding/json can write. The Values of a row never change; a change replaces them by a new map.
type Values map[string]any

// Stamp is a time in Unix seconds. Its JSON is an RFC 3339 string, or null for 0.
type Stamp int64

// Part is a template with its values. Its JSON is an object that is part of another object.
type Part struct {
	Template *Template
	Values   Values
}

// Members is a JSON object whose field names are not in the template.
type Members []Member

// Member is one field of Members.
type Member struct {
	Name  string
	Value any
}

// Template is JSON with placeholders. "$x" stands for the value x, and "$x|form" for the value x in one of the forms.
// {{x}} inside a string stands for the text of x. "name?": "$x", is left out if there is no value x. {{here}} is the
// URL of the server as the client sees it.
type Template struct {
	literals     []string // the texts before, between and after the placeholders
	placeholders []placeholder
}

// placeholder is one placeholder of a template.
type placeholder struct {
	name   string
	member string // the name of a field that may be left out, with its quotes and colon
	text   bool   // whether the placeholder is inside a JSON string
	form   func(dst []byte, value any) []byte
}

var placeholderPattern = regexp.MustCompile(`"(\w+)\?":\s*"\$(\w+)",|"\$(\w+)(?:\|(\w+))?"|\{\{(\w+)\}\}`)

// forms are the formats that a placeholder may name, as in "$created|date".
var forms = map[string]func(dst []byte, value any) []byte{
	"date":   func(dst []byte, value any) []byte { return appendTime(dst, value, "Mon, 02 Jan 2006 15:04:05 +0000") },
	"stamp":  func(dst []byte, value any) []byte { return appendTime(dst, value, time.RFC3339) },
	"null":   appendUnlessZero,
	"text":   appendText,
	"number": appendNumber,
	"bool":   func(dst []byte, value any) []byte { return strconv.AppendBool(dst, value == "true") },
}

// appendTime appends the time of a value in Unix seconds in the given layout. It appends null for 0.
func appendTime(dst []byte, value any, layout string) []byte {
	unix, _ := value.(int64)
	if unix == 0 {
		return append(dst, "null"...)
	}
	return append(time.Unix(unix, 0).UTC().AppendFormat(append(dst, '"'), layout), '"')
}

// appendUnlessZero appends a value. It appends null for "" and 0.
func appendUnlessZero(dst []byte, value any) []byte {
	if value == "" || value == int64(0) || value == 0.0 {
		value = nil
	}
	return AppendValue(dst, value, "")
}

// appendText appends a string. It appends "" if there is no value.
func appendText(dst []byte, value any) []byte {
	text, _ := value.(string)
	return format.AppendText(dst, text)
}

// appendNumber appends a string of digits as a JSON number. It appends null if the string is empty.
func appendNumber(dst []byte, value any) []byte {
	text, _ := value.(string)
	text = cmp.Or(text, "null")
	return append(dst, text...)
}

// Parse parses a template. It removes white space outside of strings.
func Parse(text string) (*Template, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	text = compact.String()
	t, at := &Template{}, 0
	for _, m := range placeholderPattern.FindAllStringSubmatchIndex(text, -1) {
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		p := placeholder{name: group(2) + group(3) + group(5), text: m[10] >= 0}
		if name := group(4); name != "" {
			if p.form = forms[name]; p.form == nil {
				return nil, fmt.Errorf("table: there is no form %q", name)
			}
		}
		if member := group(1); member != "" {
			p.member = `"` + member + `":`
		}
		t.literals, t.placeholders, at = append(t.literals, text[at:m[0]]), append(t.placeholders, p), m[1]
	}
	t.literals = append(t.literals, text[at:])
	if !json.Valid(t.Append(nil, Values{}, "")) {
		return nil, fmt.Errorf("table: %.60s… is no JSON once its places are empty", text)
	}
	return t, nil
}

// ParseAll parses all files of a folder as templates. The name of a template is that of its file without .json. If
// the first line of a file is +NAME, the file extends the template NAME: it adds fields and replaces those of the
// same name. ParseAll panics if a template is not valid, because templates are part of the program.
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

// extend returns the JSON object base with the fields of more. A field of more replaces the field of the same name,
// or is added at the end.
func extend(base, more string) string {
	var names []string
	values := map[string]json.RawMessage{}
	for _, text := range []string{base, more} {
		in := json.NewDecoder(strings.NewReader(text))
		_, err := in.Token() // the first token is the opening brace of the object
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
			return text // the text is not valid JSON, so Parse will return an error for it
		}
	}
	var members []string
	for _, name := range names {
		members = append(members, strconv.Quote(name)+":"+string(values[name]))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Append appends the JSON of the template, with its placeholders replaced by values.
func (t *Template) Append(dst []byte, v Values, baseURL string) []byte {
	for i, p := range t.placeholders {
		dst = append(dst, t.literals[i]...)
		value, there := v[p.name]
		switch {
		case p.text && p.name == "here":
			dst = append(dst, baseURL...)
		case p.text:
			dst = appendInText(dst, value)
		case p.form != nil:
			dst = p.form(dst, value)
		case p.member == "":
			dst = AppendValue(dst, value, baseURL)
		case there:
			dst = append(AppendValue(append(dst, p.member...), value, baseURL), ',')
		}
	}
	return append(dst, t.literals[len(t.placeholders)]...)
}

// appendInText appends the text of a value inside a JSON string. The opening quote of the string must be in dst.
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
func AppendValue(dst []byte, value any, baseURL string) []byte {
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
		return value.Template.Append(dst, value.Values, baseURL)
	case []Part:
		return append(AppendParts(append(dst, '['), value, baseURL), ']')
	case json.RawMessage:
		return append(dst, value...)
	case Members:
		dst = append(dst, '{')
		for i, one := range value {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendValue(append(format.AppendText(dst, one.Name), ':'), one.Value, baseURL)
		}
		return append(dst, '}')
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

// Show returns a response with the status 200 and a value as JSON.
func Show(value any, baseURL string) format.Answer {
	return format.Answer{Status: http.StatusOK, Body: AppendValue(nil, value, baseURL)}
}

// Parts returns the results of show for all rows.
func Parts(rows []*Row, show func(*Row) Part) []Part {
	all := make([]Part, len(rows))
	for i, r := range rows {
		all[i] = show(r)
	}
	return all
}

// AppendParts appends the elements of a JSON array, separated by commas.
func AppendParts(dst []byte, list []Part, baseURL string) []byte {
	for i, one := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one.Template.Append(dst, one.Values, baseURL)
	}
	return dst
}
