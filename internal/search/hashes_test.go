// Hashes: who sees them finds by them, and by nothing else of the field.

package search

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
)

// shown are the values of a field as a role sees them, by the ids of their records.
func (r *rig) shown(role, kind, field string) map[string]string {
	r.Helper()
	all := map[string]string{}
	err := r.store.Seek(r.Context(), query.RecordQuery{Source: "twilio", Kinds: []string{kind}}, func(f query.Hit) bool {
		v, err := r.gate.MakeView(as(role), &understudy.Page{Key: understudy.Key{Source: "twilio"}, Kind: f.Record.Kind, Status: 200,
			Body: f.Record.Body})
		if err != nil {
			r.Fatal(err)
		}
		all[f.Record.Kind+"/"+f.Record.ID] = v.Rows()[0].Field(field).Text
		return true
	})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

func TestFindByHash(t *testing.T) {
	r := newRig(t, true)
	ids := func(role, text string) []string {
		found := r.all(role, query.SearchRequest{Text: text})
		slices.Sort(found)
		return found
	}
	plain, hashes := r.shown(understudy.RoleAll, "calls", "from"), r.shown("analyst", "calls", "from")
	if len(plain) < 20 {
		t.Fatalf("%d calls", len(plain))
	}
	byHash := map[string][]string{}
	for id, hash := range hashes {
		byHash[hash] = append(byHash[hash], id)
	}
	tried := 0
	for _, hash := range slices.Sorted(maps.Keys(byHash)) {
		if tried++; tried > 12 {
			break
		}
		want := byHash[hash]
		slices.Sort(want)
		one := "kind:calls from:" + hash
		for _, text := range []string{one, `kind:calls from="` + hash + `"`, one + ",h:aaaaaaaaaaaaaaaa"} {
			if got := ids("analyst", text); !slices.Equal(got, want) {
				t.Errorf("%s finds %v, want %v", text, got, want)
			}
		}
		// Who sees the numbers is told whose it is.
		if got := ids("open", "kind:calls from:"+hash); !slices.Equal(got, want) {
			t.Errorf("a role that sees all finds %v by %s, want %v", got, hash, want)
		}
		same := ids("open", "number:"+plain[want[0]])
		if got := ids("open", "number:"+hash); !slices.Equal(got, same) {
			t.Errorf("number:%s finds %v, want %v", hash, got, same)
		}
		got := ids("analyst", "number:"+hash) // calls.to is shown as a country
		missed := slices.ContainsFunc(same, func(id string) bool {
			return !slices.Contains(got, id) && (slices.Contains(want, id) || !strings.HasPrefix(id, "calls/"))
		})
		if missed || slices.ContainsFunc(got, func(id string) bool { return !slices.Contains(same, id) }) {
			t.Errorf("number:%s finds %v for the analyst, want those of %v", hash, got, same)
		}
	}
	texts := map[string][]string{}
	for id, hash := range r.shown("analyst", "messages", "body") {
		texts[hash] = append(texts[hash], id)
	}
	often := slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return len(texts[b]) - len(texts[a]) })
	for _, hash := range often[:12] { // the empty text is among them
		slices.Sort(texts[hash])
		if got := ids("analyst", "kind:messages body:"+hash); !slices.Equal(got, texts[hash]) {
			t.Errorf("the hash %s of a text finds %v, want %v", hash, got, texts[hash])
		}
	}
}

// A plain value is refused, and so is every way but equality.
func TestHashesTellNothingElse(t *testing.T) {
	r := newRig(t, true)
	plain, hashes := r.shown(understudy.RoleAll, "calls", "from"), r.shown("analyst", "calls", "from")
	id := slices.Sorted(maps.Keys(plain))[0]
	hash, to := hashes[id], r.shown("open", "calls", "to")[id]
	for _, a := range []query.SearchRequest{
		{Text: "kind:calls from:" + plain[id]}, {Text: `kind:calls from="` + plain[id] + `"`}, {Text: "kind:calls from:" + plain[id][:5] + "*"},
		{Text: "kind:calls from:" + hash + "*"}, {Text: "kind:calls from>" + hash}, {Text: "kind:calls from:" + hash + "," + plain[id]},
		{Text: "kind:calls has:from"}, {Text: "kind:calls to:" + hash}, {Text: "kind:calls to:US"}, {Text: "kind:calls to:" + to},
		{Text: "kind:calls", Sort: "from"}, {Text: "kind:calls", Sort: "-to"},
		{Where: []query.FieldCondition{{Field: "from", Comparison: query.CompareSame, Value: plain[id]}}},
	} {
		if _, err := r.s.Find(t.Context(), as("analyst"), a); !errors.Is(err, understudy.ErrForbidden) && !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for _, text := range []string{plain[id], `"` + hash + `"`} { // words look at no field that is not seen
		if out, err := r.s.Find(t.Context(), as("analyst"), query.SearchRequest{Text: text}); err == nil && len(out.Hits) > 0 {
			t.Errorf("%s finds %d records", text, len(out.Hits))
		}
	}
	if out, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: "kind:calls from:" + hash}); err == nil {
		t.Errorf("who sees four digits finds %d by a hash", len(out.Hits))
	}
	out, err := r.s.Find(t.Context(), as("analyst"), query.SearchRequest{Text: "kind:calls from:" + hash, Facets: true})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(out); strings.Contains(string(text), plain[id][1:]) || out.Total.N == 0 {
		t.Errorf("the answer holds the number: %s", text)
	}
	where := query.SearchRequest{Kinds: []string{"calls"},
		Where: []query.FieldCondition{{Field: "from", Comparison: query.CompareIs, Value: hash}}}
	if out, err := r.s.Find(t.Context(), as("analyst"), where); err != nil || len(out.Hits) == 0 {
		t.Errorf("a condition of a list: %v", err)
	}
}

// Under row rules a hash finds what its number finds, among the records that may be found.
func TestHashesUnderRowRules(t *testing.T) {
	r := newRig(t, true)
	plain, hashes := r.shown(understudy.RoleAll, "calls", "from"), r.shown("counter", "calls", "from")
	found, none := 0, 0
	for _, id := range slices.Sorted(maps.Keys(plain))[:60] {
		want := r.all("failed", query.SearchRequest{Text: "kind:calls from:" + plain[id]})
		got := r.all("counter", query.SearchRequest{Text: "kind:calls from:" + hashes[id]})
		if !slices.Equal(got, want) {
			t.Errorf("%s finds %v, its number %v", hashes[id], got, want)
		}
		if found += len(want); len(want) == 0 {
			none++
		}
	}
	if found == 0 || none == 0 {
		t.Errorf("%d records found, %d numbers of hidden records alone", found, none)
	}
}
