// Package query defines queries for records, and tests whether the fields of a JSON record match conditions.
package query

import (
	"bytes"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Field is a field of a record.
type Field struct {
	Name string // the dotted name of the field
	Type string // the type of the field, one of spec's types; it says how to parse a time
	// from and path are set only for a field that shows the record's root. The root is derived from the URL in the
	// member from, by the path template path.
	from, path string
}

// FieldOf returns the field of a spec. A field that shows the record's root gets its value from the record's URL.
func FieldOf(f *spec.Field) Field {
	one := Field{Name: f.Name, Type: f.Type}
	if f.RootPath() != "" {
		one.from, one.path = f.DerivedFrom, f.RootPath()
	}
	return one
}

// member returns the dotted name of the member from which the value is read.
func (f *Field) member() string {
	if f.path != "" {
		return f.from
	}
	return f.Name
}

// value returns the value of the field, computed from v, the value of the member that contains the field.
func (f *Field) value(body []byte, v jsonspan.Value) Value {
	if f.path == "" || v.Kind == jsonspan.None {
		return NewValue(body, v, f.Type)
	}
	root := ""
	if v.Kind == jsonspan.String {
		root = spec.RootFromURL(f.path, jsonspan.Text(body, v))
	}
	if root == "" {
		return Value{}
	}
	return Value{raw: jsonspan.Quote(nil, root), kind: jsonspan.String, typ: f.Type}
}

// Value is the value of a field in one body. The zero Value stands for null and for an absent field.
type Value struct {
	raw  []byte
	kind jsonspan.Kind
	typ  string
}

// NewValue returns the value v of a body, for a field of type typ.
func NewValue(body []byte, v jsonspan.Value, typ string) Value {
	if v.Kind == jsonspan.None || v.Kind == jsonspan.Null {
		return Value{}
	}
	return Value{raw: v.Bytes(body), kind: v.Kind, typ: typ}
}

// IsNull reports whether the value is null or absent.
func (v Value) IsNull() bool { return v.kind == jsonspan.None }

// IsNested reports whether the value is an object or an array.
func (v Value) IsNested() bool { return v.kind == jsonspan.Object || v.kind == jsonspan.Array }

// IsString reports whether the value is a string.
func (v Value) IsString() bool { return v.kind == jsonspan.String }

// IsStringOrNumber reports whether the value is a string or a number.
func (v Value) IsStringOrNumber() bool { return v.kind == jsonspan.String || v.kind == jsonspan.Number }

// Text returns the value as text: a string decoded, an object or array as JSON, and a missing value as the empty text.
func (v Value) Text() string {
	return jsonspan.Text(v.raw, jsonspan.Value{Kind: v.kind, End: len(v.raw)})
}

// RawBytes returns the bytes of the value in the body, or nil if there is no value. It shares memory with the body.
func (v Value) RawBytes() []byte { return v.raw }

// Is reports whether the value's text equals want, which must not be empty.
func (v Value) Is(want string) bool {
	raw, plain := v.rawText()
	if !plain {
		return v.Text() == want
	}
	return string(raw) == want
}

// hasPrefix reports whether the value's text begins with the text with, which must not be empty.
func (v Value) hasPrefix(with string) bool {
	raw, plain := v.rawText()
	if !plain {
		return strings.HasPrefix(v.Text(), with)
	}
	return len(raw) >= len(with) && string(raw[:len(with)]) == with
}

// Unix returns the time in the value in Unix seconds, or 0 if it contains no time.
func (v Value) Unix() int64 {
	if !v.IsStringOrNumber() {
		return 0
	}
	raw, plain := v.rawText()
	if !plain {
		raw = []byte(v.Text())
	}
	return spec.Unix(v.typ, raw)
}

// rawText returns the bytes of the text. ok is false if the text has escapes that must be decoded.
func (v Value) rawText() (raw []byte, ok bool) {
	if v.kind != jsonspan.String {
		return v.raw, true
	}
	raw = v.raw[1 : len(v.raw)-1]
	return raw, bytes.IndexByte(raw, '\\') < 0
}

// Find returns one field of an object in a body. If a name is repeated, its last value counts.
func Find(body []byte, object jsonspan.Value, f Field) Value {
	v, _ := jsonspan.Find(body, object, f.member())
	return f.value(body, v)
}

// Fields are the fields that a list of conditions tests.
type Fields []Field

// Add returns the index of a field among the fields. It adds the field if it is missing.
func (fs *Fields) Add(f Field) int {
	for i, have := range *fs {
		if have == f {
			return i
		}
	}
	*fs = append(*fs, f)
	return len(*fs) - 1
}

// Read appends the values of the fields to values, after one pass over the object. Each dotted name needs a
// pass of its own.
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
				here[i] = fs[i].value(body, v)
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

// UnixIn returns the time in a field of a body in Unix seconds, or 0 if there is none.
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
	return NewValue(body, v, f.Type).Unix()
}
