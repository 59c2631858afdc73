// What differs between two bodies of a record.

package records

import (
	"bytes"
	"understudy"
	"understudy/kit/jsonspan"
)

// maxNames is how many bytes of field names a change carries: where more
// differs, only the outermost names are told, and where that is still more,
// none.
const maxNames = 4 << 10

// FieldsBetween names what differs between two bodies.
func FieldsBetween(old, body []byte) understudy.Names {
	for _, outermost := range []bool{false, true} {
		if names, ok := fieldsOf(old, body, outermost); ok {
			return names
		}
	}
	return ""
}

// fieldsOf is FieldsBetween, if the names are not too many.
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
		return "", true // not two objects
	}
	return understudy.NamesOf(names...), size <= maxNames
}
