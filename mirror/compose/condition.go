// Conditions: all tests of a list are applied to a record in one pass over its body.

package compose

import (
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// addTest adds a condition on a field: only records for which holds is true belong to the list.
func (l *List) addTest(name string, holds query.Test) {
	l.tests = append(l.tests, query.Condition{Fields: []query.Field{fieldOf(l.req.target.Kind, name)}, Test: holds})
}

// fieldOf returns the field of a kind. A field that is not in the spec has type text.
func fieldOf(k *spec.Kind, name string) query.Field {
	if f := k.Field(name); f != nil {
		return query.FieldOf(f)
	}
	return query.Field{Name: name, Type: spec.TypeText}
}

// matchRecord reports whether a record belongs to the list. The record's body must be valid JSON, which the store guarantees.
func (l *List) matchRecord(f query.Hit) bool {
	// The local filter comes before all tests, so that their time does not reveal anything about a hidden record.
	if only := l.req.localFilter(); only != nil && !only(f.Record) {
		return false
	}
	if !l.match.MatchObject(f.Record.Body, objectSpan(f.Record.Body)) {
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

// objectSpan returns the span of the JSON object that a body consists of.
func objectSpan(body []byte) jsonspan.Value {
	return jsonspan.Value{Kind: jsonspan.Object, End: len(body)}
}

// find returns the value of one field in a body.
func find(k *spec.Kind, body []byte, name string) query.Value {
	return query.Find(body, objectSpan(body), fieldOf(k, name))
}

// equalTest returns the test that a field has one text as its value.
func equalTest(want string) query.Test { return query.OneOf{Texts: []string{want}} }
