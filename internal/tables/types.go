// This file converts the values of records to values of columns.

package tables

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// The types of columns.
const (
	text, textArray = "text", "text[]"
	bigint, numeric = "bigint", "numeric"
	boolean, jsonb  = "boolean", "jsonb"
	timestamptz     = "timestamptz"
)

// typeForSpec has the types of columns by the type of the field in the spec. Other fields become text.
var typeForSpec = map[string]string{
	spec.TypeInt: bigint, spec.TypeCode: bigint, spec.TypeDecimal: numeric, spec.TypeBool: boolean, spec.TypeMap: jsonb,
	spec.TypeRFC2822: timestamptz, spec.TypeISO: timestamptz, spec.TypeEpoch: timestamptz, spec.TypeMillis: timestamptz,
}

// typeForValue returns the type of a column for a value of which only the JSON is known.
func typeForValue(body []byte, v jsonspan.Value) string {
	for _, typ := range map[jsonspan.Kind][]string{jsonspan.Bool: {boolean}, jsonspan.Number: {bigint, numeric},
		jsonspan.Array: {textArray, jsonb}, jsonspan.Object: {jsonb}}[v.Kind] {
		if _, fits := encodeValue(nil, body, v, typ, ""); fits {
			return typ
		}
	}
	return text
}

// joinTypes returns the narrowest type that holds every value of two types.
func joinTypes(a, b string) string {
	switch both := a + " " + b; {
	case a == b, both == numeric+" "+bigint:
		return a
	case both == bigint+" "+numeric:
		return numeric
	case a == jsonb || b == jsonb || a == textArray || b == textArray:
		return jsonb
	}
	return text
}

var decimal = regexp.MustCompile(`^[+-]?(\d+(\.\d+)?|\.\d+)([eE][+-]?\d{1,3})?$`)

// isDecimal reports whether a text is a number that PostgreSQL's numeric holds with all its digits. It takes more than 16,000 of them.
func isDecimal(text string) bool { return len(text) <= 1000 && decimal.MatchString(text) }

// replaceNUL replaces U+0000 in JSON, which PostgreSQL cannot store, by its symbol. The first pair skips escaped backslashes.
var replaceNUL = strings.NewReplacer(`\\`, `\\`, `\u0000`, "\u2400")

// encodeValue appends a value of a record as JSON, from which PostgreSQL reads a value of a column type. specType is the type of
// the field in the spec, or "". A value that stands for nothing in this type becomes null. fits is false if the type cannot
// hold the value exactly.
func encodeValue(dst, body []byte, v jsonspan.Value, typ, specType string) (out []byte, fits bool) {
	raw := string(v.Bytes(body))
	isText, isNested := v.Kind == jsonspan.String, v.Kind == jsonspan.Object || v.Kind == jsonspan.Array
	switch {
	case isText && raw == `""` && typ != text && typ != jsonb, typ == timestamptz && jsonspan.Text(body, v) == "0":
		return append(dst, null...), true
	case typ == jsonb && hasHugeNumber(body, v), typ == text && !isText && !isNested:
		return jsonspan.Quote(dst, raw), true
	case typ == jsonb, typ == text && isText, typ == textArray && isTextArray(body, v):
		if strings.Contains(raw, `\u0000`) {
			raw = replaceNUL.Replace(raw)
		}
		return append(dst, raw...), true
	case isNested:
		return dst, false
	}
	value := jsonspan.Text(body, v)
	switch typ {
	case boolean:
		fits = value == "true" || value == "false"
	case bigint:
		_, err := strconv.ParseInt(value, 10, 64)
		fits = err == nil
	case numeric:
		fits = isDecimal(value)
	case timestamptz:
		var at time.Time
		at, fits = parseTime(specType, value)
		value = at.UTC().Format("2006-01-02T15:04:05.999999Z")
	}
	if !fits {
		return dst, false
	}
	return jsonspan.Quote(dst, value), true
}

// isTextArray reports whether a value is an array of texts.
func isTextArray(body []byte, v jsonspan.Value) bool {
	isOther := func(e jsonspan.Value) bool { return e.Kind != jsonspan.String && e.Kind != jsonspan.Null }
	return v.Kind == jsonspan.Array && !hasElement(body, v, isOther)
}

// hasHugeNumber reports whether a value contains a number that jsonb cannot hold.
func hasHugeNumber(body []byte, v jsonspan.Value) bool {
	if v.Kind == jsonspan.Number {
		return !isDecimal(string(v.Bytes(body)))
	}
	return hasElement(body, v, func(e jsonspan.Value) bool { return hasHugeNumber(body, e) })
}

// hasElement reports whether is returns true for a member of an object or an element of an array.
func hasElement(body []byte, v jsonspan.Value, is func(jsonspan.Value) bool) (found bool) {
	look := func(e jsonspan.Value) bool { found = is(e); return !found }
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.VisitMembers(body, v, func(_ []byte, e jsonspan.Value) bool { return look(e) })
	case jsonspan.Array:
		jsonspan.VisitElements(body, v, look)
	}
	return found
}

// parseTime returns the time in a text. ok is false if there is none, or if PostgreSQL would round it.
func parseTime(specType, value string) (at time.Time, ok bool) {
	if spec.IsNumericTime(specType) {
		digits, micros := 6, 1e6
		if specType == spec.TypeMillis {
			digits, micros = 3, 1e3
		}
		f, err := strconv.ParseFloat(value, 64)
		_, part, _ := strings.Cut(value, ".")
		if err != nil || len(part) > digits || !isDecimal(value) || math.Abs(f*micros) > 1<<52 {
			return at, false
		}
		at, ok = time.UnixMicro(int64(math.Round(f*micros))).UTC(), true
	} else {
		at, ok = spec.Time(specType, value)
	}
	return at, ok && at.UTC().Year() >= 1 && at.UTC().Year() <= 9999 && at.Nanosecond()%1000 == 0
}
