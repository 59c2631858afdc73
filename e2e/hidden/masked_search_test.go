// Masked search: a role from which fields and rows are hidden searches, counts,
// narrows, sorts and exports, and learns nothing of either.

package hidden

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// maskedSearch is a server, what its role may find, and what it must not learn.
type maskedSearch struct {
	*testing.T
	web     string
	seen    map[string][]map[string]any // by kind, newest first; the fields as role all sees them
	secrets []string                    // words and numbers of hidden fields and rows
}

// searchAnswer is what the test reads of /-/search.
type searchAnswer struct {
	Hits []struct {
		ID       string         `json:"id"`
		Record   map[string]any `json:"record"`
		Snippets []struct {
			Field, Text string
		} `json:"snippets"`
	} `json:"hits"`
	Next   string `json:"next"`
	Total  *struct{ N int }
	Facets []struct {
		Name   string
		Values []struct {
			Value string
			N     int
		}
	} `json:"facets"`
	Error string `json:"error"`
}

const (
	lookAll  = rig.Account + ":" + rig.DemoToken
	lookSome = "some:" + rig.MaskedToken
)

func newMaskedSearch(t *testing.T) *maskedSearch {
	t.Helper()
	up := rig.StartAPI(t, "--latency", "0s", "--records", "120", "--epoch", time.Now().UTC().Format(time.RFC3339)).URL("slowapi")
	house := startNarrow(t, narrow{
		upstream: up, name: "some", source: "sync: [calls, messages]",
		sees: "calls: see, messages: see, phone: last4, body: hide, calls.price: hide",
	})
	m := &maskedSearch{T: t, web: house.URL("viewer"), seen: map[string][]map[string]any{}}
	rig.Await(t, func() string { return rig.Incomplete(t, m.web, time.Time{}, "calls", "messages") })
	numbers, words := map[string]bool{}, map[string]bool{}
	for _, kind := range []string{"calls", "messages"} {
		for _, h := range m.walk(lookAll, "q="+url.QueryEscape("kind:"+kind)) {
			for _, field := range []string{"to", "from"} {
				if n, ok := h[field].(string); ok && strings.HasPrefix(n, "+") {
					numbers[n] = true
				}
			}
			for _, word := range strings.FieldsFunc(fmt.Sprint(h["body"]), func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }) {
				words[word] = len(word) > 4 && word[0] < 'a' // answers themselves are in small letters
			}
			if h["direction"] == "inbound" && kind == "calls" || h["status"] == "delivered" && kind == "messages" {
				m.seen[kind] = append(m.seen[kind], h)
			} else {
				m.secrets = append(m.secrets, h["sid"].(string))
			}
		}
	}
	open := strings.ToLower(m.open())
	for _, from := range []map[string]bool{numbers, words} {
		var all []string
		for text, is := range from {
			if is && !strings.Contains(open, strings.ToLower(text)) {
				all = append(all, text)
			}
		}
		if slices.Sort(all); len(all) < 10 {
			t.Fatalf("the world has too little to hide: %q", all)
		}
		m.secrets = append(m.secrets, all...)
	}
	return m
}

// open is all that the role sees of what it may find.
func (m *maskedSearch) open() string {
	var all strings.Builder
	for _, seen := range m.seen {
		for _, r := range seen {
			for name, value := range r {
				if name != "body" && name != "to" && name != "from" {
					fmt.Fprint(&all, value, " ")
				}
			}
		}
	}
	return all.String()
}

// ask reads one answer.
func (m *maskedSearch) ask(who, query string) (status int, body string, a searchAnswer) {
	m.Helper()
	r := rig.Get(m.T, who, m.web+"/-/search?"+query)
	if err := json.Unmarshal(r.Body, &a); err != nil {
		m.Fatalf("%s: %v: %.300s", query, err, r.Body)
	}
	return r.Status, string(r.Body), a
}

// walk is the records of all pages.
func (m *maskedSearch) walk(who, query string) (all []map[string]any) {
	m.Helper()
	for cursor := ""; ; {
		status, body, a := m.ask(who, query+cursor)
		if status != http.StatusOK {
			m.Fatalf("%s: %d %s", query, status, body)
		}
		for _, h := range a.Hits {
			all = append(all, h.Record)
		}
		if a.Next == "" {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(a.Next)
	}
}

// clean fails when an answer to the role shows what is hidden; said is what the
// request itself says.
func (m *maskedSearch) clean(what, said, body string) {
	m.Helper()
	for _, s := range m.secrets {
		if strings.Contains(body, s) && !strings.Contains(said, s) {
			m.Errorf("%s shows %q", what, s)
			return
		}
	}
}

func sids(records []map[string]any) (all []string) {
	for _, r := range records {
		all = append(all, fmt.Sprint(r["sid"]))
	}
	return all
}

func TestMaskedSearch(t *testing.T) {
	t.Parallel()
	m := newMaskedSearch(t)
	m.finds()
	m.refused()
	m.exports()
	m.others()
}

// finds: what is hidden is found as little as what never was, and what is not
// hidden is found, counted and sorted, and nothing else.
func (m *maskedSearch) finds() {
	const never = "zyxzyxzyxzyx"
	run := sample.OneIn(m.T, 8)
	for i, text := range m.secrets {
		if len(m.secrets) > 60 && i%(len(m.secrets)/60) != 0 {
			continue // they are of a few sorts
		}
		for _, form := range []string{text, `"` + text + `"`, text + "*", "id:" + text, "-" + text} {
			if form[0] == '+' || strings.HasPrefix(form, `"+`) || strings.HasPrefix(form, "id:+") || strings.HasPrefix(form, "-+") {
				continue // it names a number: refused asks so
			}
			if !run() {
				continue
			}
			gave, body, _ := m.ask(lookSome, "facets=true&limit=20&q="+url.QueryEscape(form))
			want, other, _ := m.ask(lookSome, "facets=true&limit=20&q="+url.QueryEscape(strings.ReplaceAll(form, text, never)))
			if body, other = strings.ReplaceAll(body, text, never), strings.ReplaceAll(other, text, never); gave != want || alikeQuery(body) != alikeQuery(other) {
				m.Errorf("%s: %d %.300s\nand of what never was: %d %.300s", form, gave, body, want, other)
			}
			m.clean(form, form, body)
		}
	}
	for kind, seen := range m.seen {
		if len(seen) < 5 {
			m.Fatalf("only %d %s may be found", len(seen), kind)
		}
		in := "q=" + url.QueryEscape("kind:"+kind)
		want := sids(seen)
		if got := sids(m.walk(lookSome, in+"&limit=7")); !slices.Equal(got, want) {
			m.Errorf("%s: %d found, want %d", kind, len(got), len(want))
		}
		slices.Reverse(want)
		if got := sids(m.walk(lookSome, in+"&limit=7&sort=oldest")); !slices.Equal(got, want) {
			m.Errorf("%s, oldest first: %d found, want %d", kind, len(got), len(want))
		}
		for _, sort := range []string{"rank", "status", "-sid", "date_created"} {
			got := sids(m.walk(lookSome, in+"&limit=7&sort="+sort))
			slices.Sort(got)
			if all := slices.Sorted(slices.Values(want)); !slices.Equal(got, all) {
				m.Errorf("%s by %s: %d found, want %d", kind, sort, len(got), len(all))
			}
		}
		_, body, a := m.ask(lookSome, in+"&facets=true&limit=500")
		m.clean(in, "", body)
		if a.Total == nil || a.Total.N != len(seen) {
			m.Errorf("%s: counted %+v, want %d", kind, a.Total, len(seen))
		}
		for _, f := range a.Facets {
			count := map[string]int{}
			for _, r := range seen {
				if text := fmt.Sprint(r[f.Name]); r[f.Name] != nil && text != "" {
					count[text]++
				}
			}
			if slices.Contains([]string{"price", "body", "to", "from", "caller_name", "forwarded_from"}, f.Name) {
				m.Errorf("%s: %s is counted", kind, f.Name)
			}
			for _, v := range f.Values {
				if n := count[v.Value]; f.Name != "kind" && f.Name != "day" && f.Name != "month" && n != v.N {
					m.Errorf("%s: %s is %s in %d, counted %d", kind, f.Name, v.Value, n, v.N)
				}
			}
		}
		for _, h := range a.Hits {
			for _, field := range []string{"body", "to", "from"} {
				if text, ok := h.Record[field].(string); ok && (field == "body" || strings.HasPrefix(text, "+")) {
					m.Errorf("%s of %s is %q", field, h.ID, text)
				}
			}
			if kind == "calls" && h.Record["price"] != nil {
				m.Errorf("price of %s is %v", h.ID, h.Record["price"])
			}
		}
	}
}

// alikeQuery is an answer without what it says of its own query.
func alikeQuery(body string) string {
	_, rest, _ := strings.Cut(body, `"hits"`)
	return sealed.ReplaceAllString(rest, "SEALED")
}

// refused: a query may not name a hidden field in any form, for any content.
func (m *maskedSearch) refused() {
	held := m.seen["calls"][0]
	for _, query := range []string{
		"q=body:hello", "q=has:body", "q=no:body", "q=body:*", "q=-body:hello", "q=body=x+OR+status:busy", "sort=body", "q=kind:messages&sort=-body",
		"q=kind:calls+price<0", "q=kind:calls+price:" + fmt.Sprint(held["price"]), "q=kind:calls+has:price", "q=kind:calls&sort=price", "q=kind:calls&sort=-price", "q=kind:calls+price:*",
		"q=from:" + url.QueryEscape(fmt.Sprint(held["from"])), "q=to=" + url.QueryEscape(fmt.Sprint(held["to"])), "q=number:" + url.QueryEscape(fmt.Sprint(held["from"])), "q=" + url.QueryEscape(fmt.Sprint(held["from"])),
		"q=number:%2B15550000000", "q=%2B15550000000", "q=has:from", "sort=from", "sort=-to", "kind=recordings", "q=kind:recordings", "kind=recordings&q=duration>1",
	} {
		for _, more := range []string{"", "&facets=true&limit=1", "&format=jsonl", "&format=xml"} {
			r := rig.Get(m.T, lookSome, m.web+"/-/search?"+query+more)
			if strings.Contains(more, "format") && strings.Contains(query, "sort=") && r.Status == http.StatusForbidden {
				continue
			}
			if r.Status != http.StatusForbidden || r.Header.Get("Next") != "" {
				m.Errorf("%s%s: %d %.200s", query, more, r.Status, r.Body)
			}
			m.clean(query, query+fmt.Sprint(held["from"], held["to"]), string(r.Body))
		}
	}
	for _, path := range []string{"/twilio/calls?understudy.sort=price", "/twilio/calls.csv?understudy.sort=-price", "/twilio/messages?understudy.q=body:x", "/twilio/messages.jsonl?understudy.q=has:body", "/twilio/calls.json?understudy.narrow=price:*", "/twilio/calls?To=%2B15550000000", "/twilio/recordings.csv"} {
		if r := rig.Get(m.T, lookSome, m.web+path); r.Status != http.StatusForbidden {
			m.Errorf("%s: %d", path, r.Status)
		}
	}
}

// exports: each form has what the role finds, as it sees it, and all of it.
func (m *maskedSearch) exports() {
	for kind, seen := range m.seen {
		for path, rows := range map[string]func(body string) int{
			"/-/search?format=jsonl&q=kind:" + kind: func(body string) int { return strings.Count(body, "\n") },
			"/-/search?format=xml&q=kind:" + kind:   func(body string) int { return strings.Count(body, "<doc>") },
			"/search.jsonl?q=kind:" + kind:          func(body string) int { return strings.Count(body, "\n") },
			"/search.json?q=kind:" + kind:           func(body string) int { return strings.Count(body, `"understudy.kind"`) },
			"/search.csv?q=kind:" + kind:            csvRows,
			"/twilio/" + kind + ".csv":              csvRows,
			"/twilio/" + kind + ".csv?understudy.sort=-date_created&understudy.columns=sid,from,to,price,status": csvRows,
			"/twilio/" + kind + ".jsonl?understudy.columns=sid,from,to,price,status":                             func(body string) int { return strings.Count(body, "\n") },
		} {
			r := rig.Get(m.T, lookSome, m.web+path)
			if n := rows(string(r.Body)); r.Status != http.StatusOK || n != len(seen) {
				m.Errorf("%s: %d, %d rows, want %d: %.200s", path, r.Status, n, len(seen), r.Body)
			}
			m.clean(path, "", string(r.Body))
			for _, one := range seen[:min(3, len(seen))] {
				if price, ok := one["price"].(string); ok && kind == "calls" && strings.Contains(string(r.Body), `"`+price+`"`) {
					m.Errorf("%s shows the price %s", path, price)
				}
			}
		}
	}
}

func csvRows(body string) int {
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil {
		return -1
	}
	return len(rows) - 1
}

// others: neither a cursor of another role nor a search another has kept opens
// what is hidden.
func (m *maskedSearch) others() {
	for _, query := range []string{"q=kind:calls&limit=3", "q=kind:calls&limit=3&sort=duration"} {
		for from, to := range map[string]string{lookAll: lookSome, lookSome: lookAll} {
			_, _, a := m.ask(from, query)
			if status, body, _ := m.ask(to, query+"&cursor="+url.QueryEscape(a.Next)); a.Next == "" || status != http.StatusBadRequest {
				m.Errorf("%s: a cursor of another role: %d %.200s", query, status, body)
			}
		}
	}
	for name, text := range map[string]string{"telling": "kind:calls price<0", "bodies": "body:secretplan", "plain": "kind:messages status:delivered"} {
		r, err := rig.Ask(http.MethodPost, lookAll, m.web+"/-/search/saved", fmt.Sprintf(`{"name":%q,"q":%q,"shared":true}`, name, text), "Content-Type", "application/json")
		if err != nil || r.Status != http.StatusNoContent {
			m.Fatalf("%d %s %v", r.Status, r.Body, err)
		}
	}
	for _, path := range []string{"/-/search/saved", "/search"} {
		body := string(rig.Get(m.T, lookSome, m.web+path).Body)
		checktest.Lacks(m, body, "telling", "body")
		checktest.Lacks(m, body, "secretplan", "body")
		checktest.Contains(m, body, "plain", "body")
	}
	if r, err := rig.Ask(http.MethodDelete, lookSome, m.web+"/-/search/saved/plain", ""); err != nil || r.Status != http.StatusNotFound {
		m.Errorf("another's saved search is deleted: %d, %v", r.Status, err)
	}
}
