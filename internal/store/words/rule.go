// Package words is the index of the words of records. The spec of a kind says which fields are text. The package cuts
// and folds their words, tags each with its kind and field, and finds postings by words with package fts5. A query
// reads no word of a kind or a field that it does not name.
package words

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/spec"
)

// column is a column of the index of words: a class of fields, or a further value of one, since a value in a column
// of its own costs less than a border between two. Their order is part of the format; words of the first cost least.
type column uint8

const (
	columnBody column = iota
	columnPlain
	columnPlain2
	columnPlain3
	columnPhone
	columnPhone2
	columnName
	columnURL
	columnOther // what the spec does not name
	columnNone  // no text
)

// columnsOf is how many columns a class has, by its first.
var columnsOf = [fts5.Columns]column{1, 3, 0, 0, 2, 0, 1, 1, 1}

const (
	digits = "0123456789abcdefghijklmnopqrstuvwxyz" // FTS5 tells no capital letters apart

	// kindTag and tagSize are the lengths of a tag's first half, the kind's, and of all of it.
	kindTag = 2
	tagSize = 4
)

// appendTag appends the tag of a field of a kind, whose number is below 1 << postings.ShapeBits. Each word in the
// index begins with its tag, so that a query for some fields reads nothing of the others: FTS5 keeps what a word has
// in all columns and records together. The words of a kind are neighbours.
func appendTag(b []byte, kind int64, field int) []byte {
	return append(b, digits[kind/36], digits[kind%36], digits[field/36], digits[field%36])
}

// wordTag returns that tag as text.
func wordTag(kind int64, field int) string { return string(appendTag(nil, kind, field)) }

// columnOf returns the first column of a class. Prices and their currencies are no text: a word in every record that
// tells none from another costs ten bytes in each.
func columnOf(class string) column {
	switch class {
	case spec.ClassBody:
		return columnBody
	case spec.ClassPhone:
		return columnPhone
	case spec.ClassName:
		return columnName
	case spec.ClassURL:
		return columnURL
	case "":
		return columnPlain
	}
	return columnNone
}

// field is a field of a kind in the index.
type field struct {
	column column // of its class; columnNone: it is no text
	number int    // from 1; 0: it shares its tag with what the spec does not name
}

// Rule says which fields of a kind are text, and how the index tells them apart. It is
// made once for a kind and then only read.
type Rule map[string]field

// RuleOf reads the rule off a spec, which says what is text (Kind.IsText). A kind that no spec names has no text.
func RuleOf(k *spec.Kind) Rule {
	if k == nil {
		return nil
	}
	rule := Rule{}
	for _, f := range k.Fields {
		c := columnNone
		if k.IsText(f) {
			c = columnOf(f.Class)
		}
		rule[f.Name] = field{column: c}
	}
	rule.number()
	return rule
}

// number numbers the fields that are text in the order of their names.
func (r Rule) number() {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if f := r[name]; f.column != columnNone && n < query.MaxTextFields {
			n++
			f.number = n
			r[name] = f
		}
	}
}

// wordsForm is raised whenever the same body would be cut into other words.
const wordsForm = 4

// Form returns the rule and the way of cutting as text. Words made by another form must be made anew.
func (r Rule) Form() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprint(&b, wordsForm)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "\n%d %s", r[name].column, name)
	}
	return b.String()
}

// ReadRule reads a form back: the rule of records whose spec is not at hand.
func ReadRule(form string) Rule {
	if form == "" {
		return nil
	}
	rule := Rule{}
	for line := range strings.Lines(form) {
		n, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if c, err := strconv.Atoi(n); ok && err == nil && c >= 0 && column(c) <= columnNone {
			rule[name] = field{column: column(c)}
		}
	}
	rule.number()
	return rule
}
