// This file finds the differences between two bodies of a record.

package records

import (
	"bytes"
	"understudy"
	"understudy/kit/jsonspan"
)

// maxNames is the maximum number of bytes of field names in a change. If the names are longer, the change has
// only the outermost names, and if those are still longer, none.
const maxNames = 4 << 10

// FieldsBetween returns the names of the fields that differ between two bodies.
func FieldsBetween(old, body []byte) understudy.Names {
	for _, outermost := range []bool{false, true} {
		if names, ok := fieldsOf(old, body, outermost); ok {
			return names
		}
	}
	return ""
}

// fieldsOf returns the names of the fields that differ, and whether their length is at most maxNames.
func fieldsOf(old, body []byte, outermost bool) (understudy.Names, bool) {
	var names []string
	size := 0
	err := jsonspan.FindChanges(old, body, func(name []byte) bool {
		if outermost {
			name, _, _ = bytes.Cut(name, []byte("."))
		}
		if n := len(names); n == 0 || names[n-1] != string(name) {
			size += len(name) + 1
			names = append(names, string(name))
		}
		return size <= maxNames
	})
	if err != nil {
		return "", true // one of the bodies is not a JSON object
	}
	return understudy.NewNames(names...), size <= maxNames
}
