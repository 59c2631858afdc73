// Redaction: fields that upstream empties to take back what it said.

package erase

import (
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Redactable reports whether upstream takes anything back by emptying a field.
func Redactable(k *spec.Kind) bool {
	if k == nil {
		return false
	}
	for _, f := range k.Fields {
		if f.Redacts {
			return true
		}
	}
	return false
}

// Emptied are the fields that redact and are there, empty or null.
func Emptied(k *spec.Kind, body []byte) (names []string) {
	if !Redactable(k) {
		return nil
	}
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return nil
	}
	for _, f := range k.Fields {
		if v, ok := jsonspan.Find(body, doc, f.Name); f.Redacts && ok && emptyValue(v) {
			names = append(names, f.Name)
		}
	}
	return names
}

// emptyValue reports whether a value says nothing: null, "", {} or [].
func emptyValue(v jsonspan.Value) bool {
	switch v.Kind {
	case jsonspan.Null:
		return true
	case jsonspan.String, jsonspan.Object, jsonspan.Array:
		return v.End-v.Start == 2
	}
	return false
}

// saysAny reports whether one of the fields is there and not empty.
func saysAny(body []byte, fields []string) bool {
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return true // what cannot be read may say anything
	}
	for _, name := range fields {
		if v, ok := jsonspan.Find(body, doc, name); ok && !emptyValue(v) {
			return true
		}
	}
	return false
}
