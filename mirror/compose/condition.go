// Conditions: a record's fields are tested in one pass over its body.

package compose

import (
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// addTest adds a condition on a field.
func (l *List) addTest(name string, holds query.Test) {
	l.tests = append(l.tests, query.Condition{Fields: []query.Field{fieldOf(l.req.target.Kind, name)}, Test: holds})
}

// fieldOf returns a kind's field. A field that the spec does not name is text.
func fieldOf(k *spec.Kind, name string) query.Field {
	if f := k.Field(name); f != nil {
		return query.FieldOf(f)
	}
	return query.Field{Name: name, Type: spec.TypeText}
}

// matchRecord reports whether a record belongs to the list. Bodies come from the store, which accepts only
// well-formed objects.
func (l *List) matchRecord(f query.Hit) bool {
	// The local filter comes first: the time of the later tests must not depend on a hidden record.
	if only := l.req.localFilter(); only != nil && !only(f.Record) {
		return false
	}
	if !l.match.MatchObject(f.Record.Body, wholeObject(f.Record.Body)) {
		return false
	}
	if k := l.req.target.Kind; k.Root != "" && l.seek.Parent != "" {
		field, id := spec.ParseParentRule(k.ParentRule())
		if id(find(k, f.Record.Body, field).Text()) != l.seek.Parent {
			return false
		}
	}
	return true
}

// wholeObject returns the span of the object that makes up a body.
func wholeObject(body []byte) jsonspan.Value {
	return jsonspan.Value{Kind: jsonspan.Object, End: len(body)}
}

// find returns one field of a body.
func find(k *spec.Kind, body []byte, name string) query.Value {
	return query.Find(body, wholeObject(body), fieldOf(k, name))
}

// equalTest returns a test for one text value.
func equalTest(want string) query.Test { return query.OneOf{Texts: []string{want}} }
