// This file is about redaction: fields that the upstream empties to take back their content.

package erase

import (
	"slices"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// IsRedactable reports whether the upstream can redact a field of the kind.
func IsRedactable(k *spec.Kind) bool {
	return k != nil && slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Redacts })
}

// EmptiedFields returns the names of the redacting fields that exist and are empty or null.
func EmptiedFields(k *spec.Kind, body []byte) (names []string) {
	if !IsRedactable(k) {
		return nil
	}
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return nil
	}
	for _, f := range k.Fields {
		if v, ok := jsonspan.Find(body, doc, f.Name); f.Redacts && ok && isEmptyValue(v) {
			names = append(names, f.Name)
		}
	}
	return names
}

// isEmptyValue reports whether a value is null, "", {} or [].
func isEmptyValue(v jsonspan.Value) bool {
	switch v.Kind {
	case jsonspan.Null:
		return true
	case jsonspan.String, jsonspan.Object, jsonspan.Array:
		return v.End-v.Start == 2
	}
	return false
}

// hasAny reports whether one of the given fields exists in the body and is not empty.
func hasAny(body []byte, fields []string) bool {
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return true // a body that is not JSON may contain anything
	}
	return slices.ContainsFunc(fields, func(name string) bool {
		v, ok := jsonspan.Find(body, doc, name)
		return ok && !isEmptyValue(v)
	})
}
