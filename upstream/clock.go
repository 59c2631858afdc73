// Clock: a record's time in Unix seconds, by the field's type.

package upstream

import (
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// unix is the time a value tells, 0 when it is null, absent or not a time.
func unix(body []byte, v jsonspan.Value, typ string) int64 {
	text := v.Of(body)
	switch {
	case v.Kind == jsonspan.String:
		text = text[1 : len(text)-1]
	case v.Kind != jsonspan.Number || typ != spec.TypeEpoch:
		return 0
	}
	return spec.Unix(typ, text)
}
