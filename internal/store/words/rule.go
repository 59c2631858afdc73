// Package words is the index of the words of records. By the spec of a kind it says
// what of a body is text, cuts and folds it, tags every word with its kind and class
// of fields, and reads from package fts5 the postings that have a text. A question
// reads no word of a kind or a class that it is not asked of.
package words

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/store/fts5"
	"understudy/spec"
)

// column is a column of the index of words: a class of fields, or a further
// value of one, since a value in a column of its own costs less than a border
// between two. Their order is part of the format; words of the first cost least.
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

// classTags are the letters of classes in tags, by column.
const classTags = "bppphhnuo"

// classColumns are the first columns of all classes.
var classColumns = []column{columnBody, columnPlain, columnPhone, columnName, columnURL, columnOther}

// appendTag appends the tag of a class of a kind, whose number is below
// 1 << shapeBits. A word in the index begins with that of its kind and class, so
// that a question about some of them reads nothing of the others: FTS5 keeps what
// a word has in all columns and records together. Words of a kind are neighbours.
func appendTag(b []byte, kind int64, c column) []byte {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz" // FTS5 tells no capital letters apart
	return append(b, digits[kind/36], digits[kind%36], classTags[c])
}

// wordTag is that tag as text.
func wordTag(kind int64, c column) string { return string(appendTag(nil, kind, c)) }

// columnOf is the first column of a class. Prices and their currencies are no
// text: a word in every record that tells none from another costs ten bytes in
// each.
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

// Rule says which fields of a kind are text, and of which class. It is made once for
// a kind and then only read.
type Rule map[string]column

// RuleOf reads it off a spec, which says what is text (Kind.Worded). A kind
// that no spec names has no text.
func RuleOf(k *spec.Kind) Rule {
	if k == nil {
		return nil
	}
	rule := Rule{}
	for _, f := range k.Fields {
		rule[f.Name] = fieldColumn(k, f)
	}
	return rule
}

func fieldColumn(k *spec.Kind, f *spec.Field) column {
	if !k.IsText(f) {
		return columnNone
	}
	return columnOf(f.Class)
}

// wordsForm is raised whenever the same body would be cut into other words.
const wordsForm = 3

// Form is the rule and the way of cutting as text: words made by another form
// are to be made anew.
func (r Rule) Form() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprint(&b, wordsForm)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "\n%d %s", r[name], name)
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
			rule[name] = column(c)
		}
	}
	return rule
}
