// Package words is the index of the words of records. The spec of a kind says which fields are text. The package cuts
// their text into words, folds the words, and tags each with its kind and field. It finds postings by words in
// the rows of package wordrows. A query reads no words of kinds and fields that it does not search.
package words

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/query"
	"understudy/internal/store/wordrows"
	"understudy/spec"
)

// column is a column of the word index. It contains the text of a class of fields, or a further value of such a field,
// because a separate column costs less than a border between two values. The order of the columns is part of the
// format. Words of the first column cost least.
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
	columnOther // text that the spec does not name
	columnNone  // not a column: the field is not text
)

// columnsOf is the number of columns of a class of fields, by the first column of the class.
var columnsOf = [wordrows.Columns]column{1, 3, 0, 0, 2, 0, 1, 1, 1}

const (
	digits = "0123456789abcdefghijklmnopqrstuvwxyz" // lower case only, because FTS5 ignores case

	// kindTag is the length in bytes of the first half of a tag, which identifies the kind. tagSize is the length of a
	// whole tag.
	kindTag = 2
	tagSize = 4
)

// appendTag appends the tag of a field of a kind. The number of the kind must be less than 1 << postings.ShapeBits.
// Each word in the index begins with the tag of its field. So a query for some fields reads nothing of other fields,
// although FTS5 stores the columns and records of a word together. The words of a kind are adjacent.
func appendTag(b []byte, kind int64, field int) []byte {
	return append(b, digits[kind/36], digits[kind%36], digits[field/36], digits[field%36])
}

// wordTag returns the tag of a field of a kind as text.
func wordTag(kind int64, field int) string { return string(appendTag(nil, kind, field)) }

// columnOf returns the first column of a class of fields. Prices and their currencies are not text: a word that is in
// every record distinguishes none of them, but costs ten bytes in each.
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
	column column // the first column of the field's class, or columnNone if the field is not text
	number int    // the number of the field, from 1, or 0 if it shares its tag with text that the spec does not name
}

// Rule says which fields of a kind are text, and how the index distinguishes them. A Rule does not change after its
// creation.
type Rule map[string]field

// RuleOf returns the rule of a spec, which says what is text (Kind.IsText). A kind without a spec has no text.
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
	rule.assignNumbers()
	return rule
}

// assignNumbers numbers the text fields in the order of their names.
func (r Rule) assignNumbers() {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if f := r[name]; f.column != columnNone && n < query.MaxTextFields {
			n++
			f.number = n
			r[name] = f
		}
	}
}

// wordsForm is the version of cutting text into words. It must be raised whenever the same body would be cut into other
// words.
const wordsForm = 4

// Form returns the rule as text, together with the version of cutting. If the form changes, all words must be indexed
// again.
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

// ReadRule returns the rule that a form describes. It is used for records whose spec is not available.
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
	rule.assignNumbers()
	return rule
}
