// Terms: the index of exact values. A record's row holds a token for each field
// that the spec makes a term of: a hash of shape, field and value.

package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/codec"
	"understudy/internal/store/postings"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// termWay is how a field is found.
type termWay uint8

const (
	termValue  termWay = iota // by its value
	termNumber                // by the digits of a number; what is none by its value
	termTime                  // by where the record stands; far from there by its day and its month
)

// termField is a field that terms are made of.
type termField struct {
	name string
	way  termWay
	typ  string // of the field
	near string // what span calls the differences of a time
}

// parentTerm stands for the field of a record's parent, wherever that is from.
const parentTerm = "^parent"

// termFields are the fields of a kind that can be asked for exactly (see
// Spec.Termed). The field of a kind's parent is parentTerm.
func termFields(sp *spec.Spec, kind *spec.Kind) (fields []termField) {
	if kind == nil || sp == nil {
		return nil
	}
	for _, f := range kind.Fields {
		if f.Name == kind.Parent || !sp.Termed(kind, f) {
			continue
		}
		one := termField{name: f.Name, typ: f.Type}
		switch {
		case isTime(f.Type):
			one.way, one.near = termTime, nearName(f.Name)
		case f.Class == spec.ClassPhone:
			one.way = termNumber
		}
		fields = append(fields, one)
	}
	return fields
}

// isTime reports whether a field of a type tells a time.
func isTime(typ string) bool {
	return slices.Contains([]string{spec.TypeRFC2822, spec.TypeISO, spec.TypeEpoch, spec.TypeDate}, typ)
}

// fingerprint says what terms a kind's records have; another one means that
// they are made anew.
func fingerprint(fields []termField) string {
	var b strings.Builder
	b.WriteString("4")
	for _, f := range fields {
		b.WriteString(" " + f.name + ":" + strconv.Itoa(int(f.way)) + ":" + f.typ)
	}
	return b.String()
}

// fieldsIn reads a fingerprint: a program that was not told the spec keeps the
// terms right all the same.
func fieldsIn(text string) (fields []termField) {
	words := strings.Fields(text)
	for _, word := range words[min(1, len(words)):] {
		parts := strings.Split(word, ":")
		if len(parts) != 3 {
			continue
		}
		way, err := strconv.Atoi(parts[1])
		if err != nil {
			continue
		}
		fields = append(fields, termField{name: parts[0], way: termWay(way), typ: parts[2], near: nearName(parts[0])})
	}
	return fields
}

// tokenOf is what stands for a value in the index: 60 bits of its FNV-1a hash
// (draft-eastlake-fnv). Values that share one are told apart by the body.
func tokenOf(shape int64, field, value string) int64 {
	const offset, prime = 14695981039346656037, 1099511628211
	n := (uint64(offset) ^ uint64(shape&0xff)) * prime
	n = (n ^ uint64(shape>>8)) * prime
	for i := range len(field) {
		n = (n ^ uint64(field[i])) * prime
	}
	n *= prime // a border
	for i := range len(value) {
		n = (n ^ uint64(value[i])) * prime
	}
	n ^= n >> 32
	return int64(n & (1<<60 - 1))
}

// numberTerm is what of a number terms are made of: its last digits, which are
// the same however it is written.
func numberTerm(text string) string {
	n := understudy.ReadPhone(text)
	if n.Digits == "" {
		return strings.ToLower(text)
	}
	return "#" + n.Digits[max(len(n.Digits)-understudy.NationalPhone, 0):]
}

// dayOf is the number of a day since 1970, monthOf of a month since the year 0;
// both in UTC.
func dayOf(unix int64) int64 {
	const day = 24 * 60 * 60
	if unix < 0 {
		return (unix+1)/day - 1
	}
	return unix / day
}

func monthOf(unix int64) int64 {
	t := time.Unix(unix, 0).UTC()
	return int64(t.Year())*12 + int64(t.Month()) - 1
}

func dayTerm(day int64) string     { return "d" + strconv.FormatInt(day, 10) }
func monthTerm(month int64) string { return "m" + strconv.FormatInt(month, 10) }

// farTerm is a value of every time that is far from its record's place.
const farTerm = "far"

// noTerm is a value of every time a record has not.
const noTerm = "none"

// nearTime is how far, in seconds, a time may be from the second of its
// record's place to be found by that place alone. Most are nearer: what began
// when it is said to have, and ended some minutes later.
const nearTime = 60 * 60

// nearName is what span calls the differences between a field's times and the
// seconds of the places, of those times that are near.
func nearName(field string) string { return "~" + field }

// appendTokens appends the tokens of a record that stands in a second. Times that
// are far from it, and by nearName the differences of the others, are told to
// seen.
func appendTokens(dst []int64, fields []termField, shape, second int64, parent string, f *query.Facts,
	seen func(field string, unix int64),
) []int64 {
	add := func(field, value string) { dst = append(dst, tokenOf(shape, field, value)) }
	if parent != "" {
		add(parentTerm, parent)
	}
	body := f.Body
	one := func(f *termField, v jsonspan.Value) {
		if f.way == termTime {
			at := query.Of(body, v, f.typ).Unix()
			name, value := f.name, at
			switch off := at - second; {
			case at == 0:
				add(f.name, noTerm)
				return
			case off >= -nearTime && off <= nearTime:
				name, value = f.near, off
			default:
				add(f.name, farTerm)
				add(f.name, dayTerm(dayOf(at)))
				add(f.name, monthTerm(monthOf(at)))
			}
			if seen != nil {
				seen(name, value)
			}
			return
		}
		text := textOf(body, v)
		if text != "" && f.way == termNumber {
			text = numberTerm(text)
		}
		if text != "" {
			add(f.name, text)
		}
	}
	if f.Doc.Kind != jsonspan.Object {
		return dst
	}
	// Of two members of a name the last counts, as Find has it.
	var buf [64]jsonspan.Value
	values := append(buf[:0], make([]jsonspan.Value, len(fields))...)
	for _, m := range f.Members {
		for i := range fields {
			if len(fields[i].name) <= len(m.Name) && jsonspan.NameIs(m.Name, fields[i].name) {
				values[i] = m.Value
				break
			}
		}
	}
	for i := range fields {
		if name := fields[i].name; strings.Contains(name, ".") {
			values[i], _ = jsonspan.Find(body, f.Doc, name)
		}
		if values[i].Kind != jsonspan.None || fields[i].way == termTime {
			one(&fields[i], values[i])
		}
	}
	return dst
}

// textOf is a value as terms have it.
func textOf(body []byte, v jsonspan.Value) string {
	value := query.Of(body, v, "")
	if value.Nested() {
		return ""
	}
	return value.Text()
}

// monthStart is when a month begins.
func monthStart(month int64) int64 {
	return time.Date(int(month/12), time.Month(month%12)+1, 1, 0, 0, 0, 0, time.UTC).Unix()
}

// tokens are the tokens of a version of a record that stands at a spot.
func tokens(fields []termField, spot int64, e *codec.Entry, seen func(field string, unix int64)) []int64 {
	f, _ := query.FactsOf(e.Body, nil)
	return appendTokens(nil, fields, postings.Shape(spot), secondOf(postings.Position(spot)), e.Parent, &f, seen)
}
