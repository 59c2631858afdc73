// Package terms is the index of exact terms: which fields of a kind can be asked for
// by their value, which tokens stand for the values of a record, and which postings
// fulfil the predicates of a question. Tokens lie in package inverted.
package terms

import (
	"strconv"
	"strings"

	"understudy/spec"
)

// way is how a field is found.
type way uint8

const (
	byValue  way = iota // by its value
	byNumber            // by the digits of a number; what is none by its value
	byTime              // by where the record stands; far from there by its day and its month
)

// Field is a field that tokens are made of.
type Field struct {
	name string
	way  way
	typ  string // of the field
	near string // what ranges call the differences of a time
}

// Kind is what the index knows of a kind of records. It is only read.
type Kind struct {
	Spec   *spec.Kind // nil when no spec names it
	Fields []Field
}

// parentField stands for the field of a record's parent, wherever that is from.
const parentField = "^parent"

// Fields are the fields of a kind that can be asked for exactly (see Spec.Termed), but
// for that of the parent, which each kind has.
func Fields(sp *spec.Spec, kind *spec.Kind) (fields []Field) {
	if kind == nil || sp == nil {
		return nil
	}
	for _, f := range kind.Fields {
		if f.Name == kind.Parent || f.RootPath() != "" || !sp.Termed(kind, f) {
			continue
		}
		one := Field{name: f.Name, typ: f.Type}
		switch {
		case spec.IsTime(f.Type):
			one.way, one.near = byTime, nearName(f.Name)
		case f.Class == spec.ClassPhone:
			one.way = byNumber
		}
		fields = append(fields, one)
	}
	return fields
}

// Fingerprint says what tokens a kind's records have; another one means that they are made anew.
func Fingerprint(kind *spec.Kind, fields []Field) string {
	var b strings.Builder
	b.WriteString("5")
	for _, f := range fields {
		b.WriteString(" " + f.name + ":" + strconv.Itoa(int(f.way)) + ":" + f.typ)
	}
	if kind != nil && kind.ParentRule() != kind.Parent { // ReadFields passes over it
		b.WriteString(" " + kind.ParentRule())
	}
	return b.String()
}

// ReadFields reads a Fingerprint: a program that was not told the spec keeps the terms right all the same.
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
		fields = append(fields, Field{name: parts[0], way: way(n), typ: parts[2], near: nearName(parts[0])})
	}
	return fields
}
