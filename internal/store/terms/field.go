// Package terms is the index of exact values. It decides which fields of a kind can be searched by value, which tokens
// stand for the values of a record, and which postings match the predicates of a query. Package inverted stores the
// tokens.
package terms

import (
	"strconv"
	"strings"

	"understudy/spec"
)

// way is how a field is searched.
type way uint8

const (
	byValue  way = iota // by the value of the field
	byNumber            // by the digits of a phone number, or by the value if it is not a number
	byTime              // by the record's position, or by day and month if the time is far from the position
)

// Field is a field whose values are tokens of the index.
type Field struct {
	name string
	way  way
	typ  string // the type of the field in the spec
	near string // the name of this field's near times in Ranges (see differenceName)
}

// Kind is what the index knows about a kind of records. It is read-only.
type Kind struct {
	Spec   *spec.Kind // the kind's spec, or nil if no spec names the kind
	Fields []Field
}

// parentField is the field name under which the tokens of a record's parent are stored, whatever field of the record
// names the parent.
const parentField = "^parent"

// Fields returns the fields of a kind that can be searched exactly (see Spec.Termed), except for the parent
// field, which every kind has.
func Fields(sp *spec.Spec, kind *spec.Kind) (fields []Field) {
	if kind == nil || sp == nil {
		return nil
	}
	for _, f := range kind.Fields {
		if f.Name == kind.Parent || f.RootPath() != "" || !sp.HasValueIndex(kind, f) {
			continue
		}
		one := Field{name: f.Name, typ: f.Type}
		switch {
		case spec.IsTimeType(f.Type):
			one.way, one.near = byTime, differenceName(f.Name)
		case f.Class == spec.ClassPhone:
			one.way = byNumber
		}
		fields = append(fields, one)
	}
	return fields
}

// Fingerprint returns a text that identifies which tokens the records of a kind have. If it changes, all tokens must be
// computed again.
func Fingerprint(kind *spec.Kind, fields []Field) string {
	var b strings.Builder
	b.WriteString("5")
	for _, f := range fields {
		b.WriteString(" " + f.name + ":" + strconv.Itoa(int(f.way)) + ":" + f.typ)
	}
	if kind != nil && kind.ParentRule() != kind.Parent { // ReadFields skips this part of the fingerprint
		b.WriteString(" " + kind.ParentRule())
	}
	return b.String()
}

// ReadFields returns the fields that a Fingerprint contains, so that a program without the spec can still update the
// index.
func ReadFields(text string) (fields []Field) {
	words := strings.Fields(text)
	for _, word := range words[min(1, len(words)):] {
		parts := strings.Split(word, ":")
		if len(parts) != 3 {
			continue
		}
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			continue
		}
		fields = append(fields, Field{name: parts[0], way: way(n), typ: parts[2], near: differenceName(parts[0])})
	}
	return fields
}
