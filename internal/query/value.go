// Package query tells whether the fields of a JSON record fulfil conditions.
package query

import (
	"bytes"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Field is a field of a record.
type Field struct {
	Name string // dotted
	Type string // one of spec's types; it says how a time is read
	// How the root of a record is read from its address; path "": the field is a member of the record.
	from, path string
}

// FieldOf is a field of a spec, or with its root the field that shows it.
func FieldOf(f *spec.Field) Field {
	one := Field{Name: f.Name, Type: f.Type}
	if f.RootPath() != "" {
		one.from, one.path = f.From, f.RootPath()
	}
	return one
}

// member is the dotted name of the member that the value is read from.
func (f *Field) member() string {
	if f.path != "" {
		return f.from
	}
	return f.Name
}

// of is the value of the field, v being that of its member.
func (f *Field) of(body []byte, v jsonspan.Value) Value {
	if f.path == "" || v.Kind == jsonspan.None {
		return Of(body, v, f.Type)
	}
	root := ""
	if v.Kind == jsonspan.String {
		root = spec.RootAt(f.path, jsonspan.Text(body, v))
	}
	if root == "" {
		return Value{}
	}
	return Value{raw: jsonspan.Quote(nil, root), kind: jsonspan.String, typ: f.Type}
}

// Value is the value of a field in one body. The zero value is null or absent.
type Value struct {
	raw  []byte
	kind jsonspan.Kind
	typ  string
}

// Of is the value v of a body, for a field of type typ.
func Of(body []byte, v jsonspan.Value, typ string) Value {
	if v.Kind == jsonspan.None || v.Kind == jsonspan.Null {
		return Value{}
	}
	return Value{raw: v.Bytes(body), kind: v.Kind, typ: typ}
}

// Null reports whether there is no value.
func (v Value) Null() bool { return v.kind == jsonspan.None }

// Nested reports whether the value is an object or an array.
func (v Value) Nested() bool { return v.kind == jsonspan.Object || v.kind == jsonspan.Array }

// Quoted reports whether the value is a text.
func (v Value) Quoted() bool { return v.kind == jsonspan.String }

// Written reports whether the value is a text or a number.
func (v Value) Written() bool { return v.kind == jsonspan.String || v.kind == jsonspan.Number }

// Text is the value as text: a string decoded, an object or array as JSON, and no value as the empty text.
func (v Value) Text() string {
	return jsonspan.Text(v.raw, jsonspan.Value{Kind: v.kind, End: len(v.raw)})
}

// Raw is the value as it stands in the body; nil when there is none. It shares the body.
func (v Value) Raw() []byte { return v.raw }

// Is reports whether the value's text is want, which is not empty.
func (v Value) Is(want string) bool {
	raw, plain := v.plain()
	if !plain {
		return v.Text() == want
	}
	return string(raw) == want
}

// begins reports whether the value's text begins with one that is not empty.
func (v Value) begins(with string) bool {
	raw, plain := v.plain()
	if !plain {
		return strings.HasPrefix(v.Text(), with)
	}
	return len(raw) >= len(with) && string(raw[:len(with)]) == with
}

// Unix is the time the value tells, 0 when it tells none.
func (v Value) Unix() int64 {
	if !v.Written() {
		return 0
	}
	raw, plain := v.plain()
	if !plain {
		raw = []byte(v.Text())
	}
	return spec.Unix(v.typ, raw)
}

// plain is the text's bytes where no escape has to be decoded.
func (v Value) plain() (raw []byte, ok bool) {
	if v.kind != jsonspan.String {
		return v.raw, true
	}
	raw = v.raw[1 : len(v.raw)-1]
	return raw, bytes.IndexByte(raw, '\\') < 0
}

// Find is one field of an object in a body. Of a name there twice the last counts.
func Find(body []byte, object jsonspan.Value, f Field) Value {
	v, _ := jsonspan.Find(body, object, f.member())
	return f.of(body, v)
}

// Fields are the fields some conditions look at.
type Fields []Field

// Add is the number of a field, which is added when it is not there.
func (fs *Fields) Add(f Field) int {
	for i, have := range *fs {
		if have == f {
			return i
		}
	}
	*fs = append(*fs, f)
	return len(*fs) - 1
}

// Read appends the values of the fields to values, after one walk over the
// object. Dotted names are found by a walk of their own.
func (fs Fields) Read(values []Value, body []byte, object jsonspan.Value) []Value {
	first := len(values)
	for range fs {
		values = append(values, Value{})
	}
	here := values[first:]
	if len(fs) == 0 || object.Kind != jsonspan.Object {
		return values
	}
	c := jsonspan.NewCursor(body, object)
	c.Enter()
	for c.Next() {
		name := c.Name()
		v := c.Skip()
		for i := range fs {
			if jsonspan.MatchName(name, fs[i].member()) {
				here[i] = fs[i].of(body, v)
			}
		}
	}
	for i := range fs {
		if strings.Contains(fs[i].member(), ".") {
			here[i] = Find(body, object, fs[i])
		}
	}
	return values
}

// UnixIn is the time that a field of a body tells, in Unix seconds; 0: none.
func UnixIn(kind *spec.Kind, field string, body []byte) int64 {
	f := kind.Field(field)
	doc, err := jsonspan.Parse(body)
	if f == nil || err != nil || doc.Kind != jsonspan.Object {
		return 0
	}
	v, ok := jsonspan.Find(body, doc, field)
	if !ok {
		return 0
	}
	return Of(body, v, f.Type).Unix()
}
