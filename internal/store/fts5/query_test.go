package fts5

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"understudy/internal/store/fts5/fts5test"
	"understudy/internal/store/postings"
	"understudy/internal/store/wordrows"
)

type query = wordrows.Query

var table Table

// A query is asked in FTS5's language, finds what it says, and matches the same rows before they are written.
func TestQueriesFindTheRowsThatTheyMatch(t *testing.T) {
	t.Parallel()
	c := fts5test.Open(t)
	var many []string
	for i := range maxExpanded + 1 {
		many = append(many, fmt.Sprintf("1201many%d", i))
	}
	rows := []wordrows.Row{{1: "0105a 0105b 0105long", 4: "0103a"}, {1: "0105ber 0105never 0105a 0105berlin"}, {0: strings.Join(many, " ")},
		{0: "0105a", 1: "0105b"}} // no phrase reaches from one column into the next
	writes := make([]wordrows.Write, len(rows))
	for i := range rows {
		writes[i] = wordrows.Write{Posting: int64(i), Row: rows[i]}
	}
	if err := table.Update(c, writes); err != nil {
		t.Fatal(err)
	}
	a, long := query{Phrases: []string{"0105a"}}, query{Phrases: []string{"0105long"}}
	for _, test := range []struct {
		query query
		text  string
		found []int64
	}{
		{query{}, `"0"`, nil},
		{query{Prefix: true}, `"0"`, nil},
		{a, `("0105a")`, []int64{0, 1, 3}},
		{query{Phrases: []string{"0105a 0105b"}}, `("0105a 0105b")`, []int64{0}},
		{query{Phrases: []string{"0105a 0105b"}, Prefix: true}, `("0105a 0105b" OR "0105a 0105ber" OR "0105a 0105berlin")`, []int64{0, 1}},
		{query{Phrases: []string{"0103a", "0105never"}}, `("0103a" OR "0105never")`, []int64{0, 1}},
		{query{Phrases: []string{"1201man"}, Prefix: true}, `("1201man" *)`, []int64{2}},
		{query{Phrases: []string{"1201none"}, Prefix: true}, `"0"`, nil},
		{query{Op: wordrows.AllParts, Parts: []query{a, long}}, `(("0105a") AND ("0105long"))`, []int64{0}},
		{query{Op: wordrows.AnyPart, Parts: []query{{}, long}}, `("0" OR ("0105long"))`, []int64{0}},
		{query{Op: wordrows.FirstWithoutSecond, Parts: []query{a, long}}, `(("0105a") NOT ("0105long"))`, []int64{1, 3}},
	} {
		if text, err := table.buildExpression(c, &test.query); err != nil || text != test.text {
			t.Errorf("%+v is asked as %s, %v; want %s", test.query, text, err, test.text)
		}
		found, err := table.Search(c, &test.query, true)
		if err != nil {
			t.Fatal(err)
		}
		var all []int64
		for at, ok := int64(math.MinInt64), true; ok; {
			if at, ok, err = found.Advance(at); err != nil {
				t.Fatal(err)
			}
			if ok {
				all = append(all, at)
				at, ok = postings.Next(at, true)
			}
		}
		if !slices.Equal(all, test.found) {
			t.Errorf("%s finds %v, want %v", test.text, all, test.found)
		}
		for i := range rows {
			if matches := test.query.Match(&rows[i]); matches != slices.Contains(test.found, int64(i)) {
				t.Errorf("%s matches row %d: %v", test.text, i, matches)
			}
		}
	}
}
