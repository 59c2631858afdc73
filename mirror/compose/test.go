// Test: looking at a record's fields, all of them in one walk over its body.

package compose

import (
	"bytes"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// wanted is a field that tests look at, and its value in the record at hand.
type wanted struct {
	name  string
	value jsonspan.Value // None: null or absent
}

// test is one condition on a field.
type test struct {
	field int
	holds check
}

// check looks at a value; one of kind None is null or absent.
type check func(body []byte, v jsonspan.Value) bool

// test adds a condition.
func (l *List) test(name string, holds check) {
	i := 0
	for i < len(l.fields) && l.fields[i].name != name {
		i++
	}
	if i == len(l.fields) {
		l.fields = append(l.fields, wanted{name: name})
	}
	l.tests = append(l.tests, test{i, holds})
}

// passes reports whether a record belongs to the list.
func (l *List) passes(f understudy.Found) bool {
	l.look(f.Body)
	for _, t := range l.tests {
		if !t.holds(f.Body, l.fields[t.field].value) {
			return false
		}
	}
	only := l.only()
	return only == nil || only(f.Record)
}

// look finds the fields wanted.
func (l *List) look(body []byte) {
	if len(l.fields) == 0 {
		return
	}
	for i := range l.fields {
		l.fields[i].value = jsonspan.Value{}
		if strings.Contains(l.fields[i].name, ".") {
			l.fields[i].value = find(body, l.fields[i].name)
		}
	}
	c := jsonspan.At(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)})
	c.Enter()
	for c.More() {
		name := c.Name()
		v := c.Skip()
		for i := range l.fields {
			if jsonspan.NameIs(name, l.fields[i].name) {
				l.fields[i].value = present(v)
			}
		}
	}
}

// find is one field of a body.
func find(body []byte, name string) jsonspan.Value {
	v, _ := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, name)
	return present(v)
}

func present(v jsonspan.Value) jsonspan.Value {
	if v.Kind == jsonspan.Null {
		return jsonspan.Value{}
	}
	return v
}

// same asks for one value, as text.
func same(want string) check {
	return func(body []byte, v jsonspan.Value) bool {
		raw := v.Of(body)
		if v.Kind == jsonspan.None {
			return false
		}
		if v.Kind == jsonspan.String {
			if raw = raw[1 : len(raw)-1]; bytes.IndexByte(raw, '\\') >= 0 {
				return jsonspan.Text(body, v) == want
			}
		}
		return string(raw) == want
	}
}

// text asks something of a value's text; null and absent are the empty one.
func text(holds func(string) bool) check {
	return func(body []byte, v jsonspan.Value) bool {
		if v.Kind == jsonspan.None {
			return holds("")
		}
		return holds(jsonspan.Text(body, v))
	}
}

// within asks for a time from first to last, in Unix seconds.
func within(typ string, first, last int64) check {
	return func(body []byte, v jsonspan.Value) bool {
		at := unix(typ, body, v)
		return at != 0 && at >= first && at <= last
	}
}

// unix is the time a value tells, 0 when it tells none.
func unix(typ string, body []byte, v jsonspan.Value) int64 {
	raw := v.Of(body)
	if v.Kind == jsonspan.String {
		if raw = raw[1 : len(raw)-1]; bytes.IndexByte(raw, '\\') >= 0 {
			raw = []byte(jsonspan.Text(body, v))
		}
	}
	return understudy.Unix(typ, raw)
}
