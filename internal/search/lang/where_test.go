package lang

import (
	"reflect"
	"testing"

	"understudy/internal/query"
)

// A condition beside a text is the same tree as the condition written behind it.
func TestWhereIsAsWritten(t *testing.T) {
	for _, c := range []struct {
		text  string
		where []query.FieldCondition
		want  string
	}{
		{"", nil, ""},
		{"", []query.FieldCondition{{Field: "status", Comparison: query.CompareSame, Value: "busy"}}, `status="busy"`},
		{"a OR b", []query.FieldCondition{{Field: "to", Comparison: query.CompareIs, Value: "+1 555"}}, `(a OR b) to:"+1 555"`},
		{"a b", []query.FieldCondition{{Field: "body", Comparison: query.CompareIs, Value: "x", Prefix: true},
			{Field: "start_time", Comparison: query.CompareAtLeast, Value: `2026-01-02 "`}}, `a b body:"x"* start_time>="2026-01-02 \""`},
		{"", []query.FieldCondition{{Field: "n", Comparison: query.CompareAtMost, Value: "1..2"}}, `n<="1..2"`},
		{"", []query.FieldCondition{{Field: "n", Comparison: query.CompareLess, Value: "1"},
			{Field: "n", Comparison: query.CompareMore, Value: "0"}}, "n<1 n>0"},
	} {
		tree, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AddConditions(tree, c.where)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Parse(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() || !reflect.DeepEqual(bare(got), bare(want)) {
			t.Errorf("%s: %s, want %s", c.text, got, want)
		}
	}
	for _, value := range []string{"", "\x00", "\xff"} {
		if _, err := AddConditions(&Node{}, []query.FieldCondition{{Field: "to", Comparison: query.CompareSame, Value: value}}); err == nil {
			t.Errorf("%q is a value", value)
		}
	}
}

// bare is a tree without where its nodes stand.
func bare(n *Node) Node {
	out := *n
	out.at, out.end, out.conditionText, out.Of, out.Values = 0, 0, "", nil, nil
	for _, o := range n.Of {
		b := bare(o)
		out.Of = append(out.Of, &b)
	}
	for _, v := range n.Values {
		out.Values = append(out.Values, Value{Text: v.Text, prefix: v.prefix})
	}
	return out
}
