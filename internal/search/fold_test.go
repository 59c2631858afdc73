// Letter case: ids and choices in other letter case, and ids that are old.

package search

import (
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
)

func TestLetterCaseOfIDsAndChoices(t *testing.T) {
	r := newRig(t, true)
	calls := r.all("all", query.SearchRequest{Text: "kind:calls has:parent_call_sid"})
	id := strings.TrimPrefix(calls[0], "calls/")
	out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: id, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	record := string(out.Hits[0].Body)
	_, parent, _ := strings.Cut(record, `"parent_call_sid":"`)
	parent = parent[:understudy.AnyIDText]
	for _, text := range []string{id, "id:" + id, "sid:" + id, "parent_call_sid:" + parent, parent, "-" + parent + " kind:calls", "id:" +
		parent + "," + id} {
		want := r.all("all", query.SearchRequest{Text: text})
		if len(want) == 0 {
			t.Fatalf("%s finds nothing", text)
		}
		for _, id := range []string{id, parent} {
			for _, other := range []string{strings.ToUpper(id), strings.ToLower(id)} {
				typed := strings.ReplaceAll(text, id, other)
				if got := r.all("all", query.SearchRequest{Text: typed}); !slices.Equal(got, want) {
					t.Errorf("%s: %d, and %d by %s", typed, len(got), len(want), text)
				}
			}
		}
	}
	out, err = r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: strings.ToUpper(id)})
	checktest.MustNoError(t, err, "%s in capitals means %+v", id, out.Named)
	checktest.Equal(t, out.Named.ID, id, "%s in capitals means %+v: out.Named.ID", id, out.Named)
	checktest.MustTrue(t, len(out.Hits) != 0, "%s in capitals means %+v: len(out.Hits) is 0", id, out.Named)
	checktest.True(t, out.Hits[0].Exact, "%s in capitals means %+v: out.Hits[0].Exact is false", id, out.Named)
	for _, pair := range [][2]string{{"status:Busy", "status:busy"}, {"status:BUSY,Failed", "status:busy,failed"},
		{"kind:calls direction:INBOUND", "kind:calls direction:inbound"}} {
		got, want := r.all("all", query.SearchRequest{Text: pair[0]}), r.all("all", query.SearchRequest{Text: pair[1]})
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d, and %d by %s", pair[0], len(got), len(want), pair[1])
		}
	}
	if got := r.all("all", query.SearchRequest{Text: "status=Busy"}); len(got) > 0 {
		t.Errorf("status=Busy is the value itself, and finds %d", len(got))
	}
}

// However many records there are, one that is named by its id is found at once.
func TestOldIDsAreFoundAtOnce(t *testing.T) {
	r := newRig(t, true)
	names := r.all("all", query.SearchRequest{Text: "kind:calls,participants"})
	s := r.with(func(o *Options) { o.Limits.MaxRecords = 5 })
	for _, kind := range []string{"calls/", "participants/"} {
		i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, kind) })
		for _, name := range []string{names[i], names[len(names)-1]} {
			_, id, _ := strings.Cut(name, "/")
			out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: "id:" + id})
			checktest.MustNoError(t, err, "%s; out %+v", name, out)
			checktest.MustEqual(t, len(out.Hits), 1, "%s: len(out.Hits)", name)
			checktest.Equal(t, out.Hits[0].ID, id, "%s: out.Hits[0].ID", name)
			checktest.True(t, !out.Partial, "%s: out.Partial is true", name)
		}
	}
}

// The beginning of a number is looked for however it is written.
func TestBeginningsOfNumbers(t *testing.T) {
	r := newRig(t, true)
	var number string
	for _, s := range r.views("all") {
		if s.kind.Name == "calls" {
			number = s.fields["from"]
			break
		}
	}
	country, rest := number[:3], number[3:7]
	want := r.all("all", query.SearchRequest{Text: `from:"` + number[:7] + `"*`})
	if len(want) == 0 {
		t.Fatalf("nothing from %s", number)
	}
	for _, text := range []string{country + rest, country + " " + rest, country + " (" + rest[:2] + ") " + rest[2:], country + "-" + rest} {
		if got := r.all("all", query.SearchRequest{Text: "from:" + text + "*"}); !slices.Equal(got, want) {
			t.Errorf("from:%s*: %d, want %d", text, len(got), len(want))
		}
		found := r.all("all", query.SearchRequest{Text: text + "*"})
		for _, id := range want {
			if !slices.Contains(found, id) {
				t.Errorf("%s*: no %s", text, id)
			}
		}
	}
}
