package graphql

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

// FuzzFind: reading ends, spaces and comments change nothing that is read, and a field
// that is put before the others is found.
func FuzzFind(f *testing.F) {
	for _, document := range []string{"{a}", `query{a(b:"""\""""""` + ")}", "mutation{...{...{a}}}", "subscription{a#b\n}", "{(}", "{a(}",
		"mutation M($a: T = {b: [1]}) @d { x: a(b: \"}\") @e(f: 1) { c } ...F ... on T { g } } fragment F on T { h }",
		"{a...F}fragment F on T{...F}", "{a:b:c}"} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		op, err := Find(document, "")
		if err != nil {
			return
		}
		if len(op.Fields) == 0 || !slices.IsSorted(op.Fields) {
			t.Fatalf("%q has the fields %q", document, op.Fields)
		}
		again, err := Find(strings.ReplaceAll(" "+op.Text, " ", " ,\n#}\n "), "")
		if !strings.ContainsRune(document, '"') && (err != nil || !reflect.DeepEqual(again.Fields, op.Fields) || again.Kind != op.Kind) {
			t.Fatalf("%q: %v; with comments %v, %v", document, op, again, err)
		}
		if rest, short := strings.CutPrefix(op.Text, "{ "); short {
			more, err := Find("mutation { zz: firstField(a: {b: \"{\"}) { c } "+rest, "")
			checktest.MustNoError(t, err, "%q with one more field", document)
			checktest.MustTrue(t, slices.Contains(more.Fields, "firstField"),
				"%q with one more field: more.Fields is %v", document, more.Fields)
			checktest.MustTrue(t, len(more.Fields) >= len(op.Fields),
				"%q with one more field: len(more.Fields) is %v", document, len(more.Fields))
		}
	})
}
