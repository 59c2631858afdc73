// Test: looking at a record's fields, all of them in one walk over its body.

package compose

import (
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// test adds a condition.
func (l *List) test(name string, holds query.Test) {
	l.tests = append(l.tests, query.Condition{Fields: []query.Field{fieldOf(l.req.target.Kind, name)}, Test: holds})
}

// fieldOf is a kind's field; a field that the spec does not name is text.
func fieldOf(k *spec.Kind, name string) query.Field {
	if f := k.Field(name); f != nil {
		return query.FieldOf(f)
	}
	return query.Field{Name: name, Type: spec.TypeText}
}

// passes reports whether a record belongs to the list. The bodies are those of
// the store, which keeps well-formed objects alone.
func (l *List) passes(f query.Hit) bool {
	// First of all: what it takes to tell must not depend on what else a hidden record says.
	if only := l.req.only(); only != nil && !only(f.Record) {
		return false
	}
	if !l.match.MatchObject(f.Record.Body, whole(f.Record.Body)) {
		return false
	}
	if k := l.req.target.Kind; k.Root != "" && l.seek.Parent != "" {
		field, id := spec.ParentIn(k.ParentRule())
		if id(find(k, f.Record.Body, field).Text()) != l.seek.Parent {
			return false
		}
	}
	return true
}

// whole is the object that a body is.
func whole(body []byte) jsonspan.Value {
	return jsonspan.Value{Kind: jsonspan.Object, End: len(body)}
}

// find is one field of a body.
func find(k *spec.Kind, body []byte, name string) query.Value {
	return query.Find(body, whole(body), fieldOf(k, name))
}

// same asks for one value, as text.
func same(want string) query.Test { return query.OneOf{Texts: []string{want}} }
