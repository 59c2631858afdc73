package randomapitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"understudy/internal/sample"
)

func TestEveryHabitNamesAPublicAPI(t *testing.T) {
	seen := map[string]bool{}
	for _, h := range Habits {
		if h.API == "" {
			t.Errorf("%s: no API has it", h.Name)
		}
		if seen[h.Name] {
			t.Errorf("two habits are called %s", h.Name)
		}
		seen[h.Name] = true
	}
	for _, r := range rules {
		for _, name := range slices.Concat(r.of, r.only) {
			if !seen[name] {
				t.Errorf("a rule names %q, which is no habit", name)
			}
		}
		for _, name := range r.only {
			if axisOf(name) != axisOf(r.only[0]) {
				t.Errorf("a rule allows %s beside %s, of another axis", name, r.only[0])
			}
		}
	}
}

func TestEveryPairOfHabitsOccursIn500APIs(t *testing.T) {
	seed := sample.Seed(t)
	d := newDealer(seed)
	pairs := d.pairs()
	apart := map[[2]int]bool{}
	for pair := range d.unseen {
		apart[pair] = true
	}
	for _, a := range Draw(seed, 500) {
		for pair := range apart {
			if a.Has(Habits[pair[0]].Name) && a.Has(Habits[pair[1]].Name) {
				delete(apart, pair)
			}
		}
	}
	for pair := range apart {
		t.Errorf("no API has %s with %s", Habits[pair[0]].Name, Habits[pair[1]].Name)
	}
	for i, h := range Habits {
		if !slices.ContainsFunc(Habits, func(o Habit) bool { return o.Axis != h.Axis && !clash(h, o) }) {
			t.Errorf("habit %d, %s, stands with no other", i, h.Name)
		}
	}
	t.Logf("%d habits, %d pairs", len(Habits), pairs)
}

func TestASeedDrawsTheSameAPIs(t *testing.T) {
	first, second := Draw(7, 50), Draw(7, 50)
	for i := range first {
		if a, b := first[i].String(), second[i].String(); a != b {
			t.Errorf("%s and %s", a, b)
		}
		if a, b := string(first[i].Document("http://x")), string(second[i].Document("http://x")); a != b {
			t.Errorf("%s and %s", a, b)
		}
	}
}

// A client that knows the API's habits reaches every record.
func TestAClientThatKnowsTheHabitsSeesEveryRecord(t *testing.T) {
	for _, a := range Draw(sample.Seed(t), 500) {
		if !a.Has(rowsStill) || !a.Has(tokensLive) {
			continue
		}
		a.Begin()
		seen := map[string]bool{}
		position := ""
		for asked := 0; ; asked++ {
			rows, next, last := ask(t, a, position)
			for _, id := range rows {
				seen[id] = true
			}
			if last {
				break
			}
			if position = next; asked > 1000 {
				t.Fatalf("%s: no end", a)
			}
		}
		for _, id := range a.Whole() {
			if !seen[id] {
				t.Fatalf("%s: %s is on no page", a, id)
			}
		}
		if len(seen) != len(a.Whole()) {
			t.Errorf("%s: %d records seen of %d", a, len(seen), len(a.Whole()))
		}
	}
}

// ask asks for the page at a position, and says from the API's own knowledge how it goes on.
func ask(t *testing.T, a *API, position string) (ids []string, next string, last bool) {
	query := url.Values{}
	if position != "" {
		query.Set(a.config.position, position)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://x"+a.Path()+"?"+query.Encode(), nil)
	a.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %s is %d", a, r.URL, w.Code)
	}
	var body any
	dec := json.NewDecoder(w.Body)
	dec.UseNumber()
	if err := dec.Decode(&body); err != nil {
		t.Fatal(err)
	}
	for _, row := range rowsIn(body, a) {
		ids = append(ids, fmt.Sprint(row.(map[string]any)[a.idName()]))
	}
	all := a.ordered()
	from, _ := a.from(query, all, a.config.full)
	size, _ := a.size(query)
	p := page{from: from, to: min(from+size, len(all)), size: size}
	if next = a.next(p, all); a.Has(lastID) && len(ids) > 0 {
		next = ids[len(ids)-1]
	}
	return ids, next, p.to == len(all)
}

func rowsIn(body any, a *API) []any {
	for name := range strings.SplitSeq(map[string]string{items: "items", kindName: a.Kind, nested: "response.items", odata2: "d.results",
		withMeta: "data", data: "data"}[a.habits["envelope"]], ".") {
		if name != "" {
			body = body.(map[string]any)[name]
		}
	}
	return body.([]any)
}
