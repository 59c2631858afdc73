// Sums over HTTP: parameters, JSON and CSV, and what is said of one that is not complete.

package search

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/search/columns"
)

func TestServeSums(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	url := r.serve(r.s).URL
	for _, c := range []struct {
		query, who string
		status     int
		says       string
	}{
		{"sum=price&by=day&kind=messages", "all", 200, `"complete":true`},
		{"sum=price&by=day,status&kind=messages", "open", 200, `"by":["day","status"]`},
		{"sum=count&by=status&by=direction&kind=calls&limit=2", "all", 200, `"others":[{"count":`},
		{"sum=price&kind=messages", "support", 403, `can't see price`},
		{"sum=count&by=to&kind=messages", "support", 403, `can't see to`},
		{"sum=count&by=to.country&kind=messages", "support", 403, `can't see to`},
		{"sum=count&kind=conferences", "billing", 403, `can't see conferences`},
		{"sum=prise&kind=messages", "all", 400, `did you mean \"price\"?`},
		{"sum=prise&kind=messages", "support", 400, `Write one of count, delivery,`},
		{"sum=count&by=stauts&kind=messages", "all", 400, `did you mean \"status\"?`},
		{"sum=count&by=day,day&kind=messages", "all", 400, `two different`},
		{"sum=count&by=body&kind=messages", "all", 400, `is not possible`},
		{"sum=count&sort=oldest", "all", 400, `unknown parameter`},
		{"sum=count&zone=Europe/Berlinn", "all", 400, `name of a time zone`},
		{"sum=count&zone=Local", "all", 400, `name of a time zone`},
		{"sum=", "all", 400, `sum is empty`},
		{"sum=count&limit=1001", "all", 400, `write a number from 1 to 1000`},
		{"sum=count&format=xml", "all", 400, `a sum is json or csv`},
		{"sum=count&q=x+(", "all", 400, `"at":2`},
		{"sum=count", "", 401, `unknown caller`},
	} {
		resp, body := get(t, "GET", url+"/-/search?"+c.query, c.who, "")
		if resp.StatusCode != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s as %s: %d %s, want %d and %s", c.query, c.who, resp.StatusCode, body, c.status, c.says)
		}
	}
	resp, body := get(t, "GET", url+"/-/search?sum=price&by=month,status&kind=messages&format=csv&limit=3", "all", "")
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	checktest.MustNoError(t, err, "%v %v; body %s", err, resp.Header, body)
	checktest.MustEqual(t, resp.Header.Get("Content-Type"), "text/csv; charset=utf-8; header=present",
		`%v %v: resp.Header.Get("Content-Type"); body %s`, err, resp.Header, body)
	checktest.MustEqual(t, len(rows), 5, "%v %v: len(rows); body %s", err, resp.Header, body)
	if got := strings.Join(rows[0], " "); got != "month status unit count values sum mean p50 p95" || rows[4][0] != "(others)" {
		t.Errorf("%q", rows)
	}
}

// What is offered to a role, and named by an error, can be asked by it: over all kinds, too.
func TestNamesOfSumsCanBeAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	for role := range roles {
		for _, kinds := range [][]string{nil, {"messages"}, {"messages", "calls"}} {
			search := query.SearchRequest{Kinds: kinds}
			sums, by, err := r.s.SumNames(as(role), search)
			if err != nil {
				continue // it does not see one of the kinds
			}
			for _, sum := range sums {
				if err := r.s.CheckSum(as(role), query.SumRequest{Search: search, Sum: sum}); err != nil {
					t.Errorf("%s of %v: sum=%s: %v", role, kinds, sum, err)
				}
			}
			for _, name := range by {
				if err := r.s.CheckSum(as(role), query.SumRequest{Search: search, Sum: query.SumCount, By: []string{name}}); err != nil {
					t.Errorf("%s of %v: by=%s: %v", role, kinds, name, err)
				}
			}
		}
	}
}

// Each group leads to just its matches: a search by its term finds as many.
func TestTermsOfSumsFindTheirMatches(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones here")
	}
	for _, by := range [][]string{{"day"}, {"week", "direction"}, {"month"}, {"hour"}, {"status"}, {"error_code"}, {"from"}, {"to.country"}} {
		q := query.SumRequest{Search: query.SearchRequest{Kinds: []string{"messages"}}, Sum: "count", By: by, Zone: zone}
		for _, row := range r.summed(r.s, "open", q).Rows[:3] {
			if by[0] == "to.country" && row.Key[0] == "" {
				continue // no condition says that a number has no country
			}
			one := query.SumRequest{Search: query.SearchRequest{Text: row.Term, Kinds: q.Search.Kinds}, Sum: "count"}
			got := r.summed(r.s, "open", one).Totals
			checktest.True(t, row.Term != "", "by %q: row.Term is empty; got %+v", by, got)
			checktest.MustEqual(t, len(got), 1, "by %q: len(got)", by)
			checktest.Equal(t, got[0].Count, row.Count, "by %q: got[0].Count", by)
		}
	}
}

// What does not fit in memory is not in a sum, which says so, and is right for what it has.
func TestSumsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	set := columns.NewSet(r.store, 1, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = set.Close() })
	s := r.with(func(o *Options) { o.Columns = set })
	for _, text := range []string{"", "your"} {
		q := query.SumRequest{Search: query.SearchRequest{Text: text, Kinds: []string{"messages"}}, Sum: "count", Wait: time.Minute}
		out, err := s.Sum(t.Context(), as("open"), q)
		checktest.MustNoError(t, err, "%q; out %+v", text, out)
		checktest.True(t, !out.Complete, "%q: out.Complete is true", text)
		checktest.MustEqual(t, len(out.Notes), 1, "%q: len(out.Notes)", text)
		checktest.Contains(t, out.Notes[0], "search.columns", "%q: out.Notes[0]", text)
	}
	url := r.serve(s).URL
	resp, body := get(t, "GET", url+"/-/search?sum=count&kind=messages&format=csv", "open", "")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	set.SetLimit(0) // more memory holds at once, under the next policy
	more := r.with(func(o *Options) { o.Columns = set })
	q := query.SumRequest{Search: query.SearchRequest{Kinds: []string{"messages"}}, Sum: "count", Wait: time.Minute}
	if out, err := more.Sum(t.Context(), as("open"), q); err != nil || !out.Complete {
		t.Errorf("with more memory: %+v, %v", out, err)
	}
}

// Two kinds share the memory: the one that was used last has it.
func TestColumnsShareTheirMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	set := columns.NewSet(r.store, 50_000, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = set.Close() })
	s := r.with(func(o *Options) { o.Columns = set })
	for range 3 {
		for _, kind := range []string{"messages", "calls"} {
			q := query.SumRequest{Search: query.SearchRequest{Kinds: []string{kind}}, Sum: "count", By: []string{"status"}}
			if got, want := groupsIn(r.summed(s, "open", q)), r.naive("open", q); !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", kind, got, want)
			}
		}
	}
}

// A field that turns out to hold what no column can keep is summed up from the records.
func TestSumsOfOddValues(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	q := query.SumRequest{Search: query.SearchRequest{Text: "has:price status:delivered,failed", Kinds: []string{"messages"}}, Sum: "price",
		By: []string{"status"}}
	check := func(when string) {
		t.Helper()
		for _, role := range []string{"open", "all"} {
			if got, want := groupsIn(r.summed(r.s, role, q)), r.naive(role, q); !maps.Equal(got, want) {
				t.Errorf("%s as %s: %v, want %v", when, role, got, want)
			}
		}
	}
	check("before")
	r.saveMessage(map[string]any{"sid": fmt.Sprintf("SM%032x", 1), "status": "failed", "price": "free"})
	r.saveMessage(map[string]any{"sid": fmt.Sprintf("SM%032x", 2), "status": "failed", "price": "-1.5", "price_unit": "USD"})
	check("with a price that is no number")
	r.saveMessage(map[string]any{"sid": fmt.Sprintf("SM%032x", 1), "status": "failed", "price": "-0.000000000001", "price_unit": "USD"})
	check("with a very small price")
}

// Sums that move with the time are made anew within a minute.
func TestSumsMoveWithTheTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	at := epoch
	s := r.with(func(o *Options) { o.Now = func() time.Time { return at } })
	sent := epoch.Add(-59 * time.Minute).Format(time.RFC1123Z)
	r.saveMessage(map[string]any{"sid": fmt.Sprintf("SM%032x", 1), "date_sent": sent})
	count := func() int {
		out := r.summed(s, "open", query.SumRequest{Search: query.SearchRequest{Text: "date:-1h", Kinds: []string{"messages"}}, Sum: "count"})
		return len(out.Totals)
	}
	if count() != 1 {
		t.Error("the message of the last hour is not there")
	}
	if at = at.Add(2 * time.Minute); count() != 0 {
		t.Error("a message of an hour ago is still there")
	}
}

// Own numbers are idle that no call and no message names for so long; a role that does not see
// all of these is not told.
func TestIdleNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	idle := func(q string) (ids []string) { return r.all("open", query.SearchRequest{Text: q}) }
	every := idle("kind:incoming_phone_numbers")
	for _, days := range []int{1, 30, 3650} {
		since := epoch.AddDate(0, 0, -days)
		used := map[string]bool{}
		_, err := r.s.Export(t.Context(), as("open"), query.SearchRequest{Kinds: []string{"calls", "messages"},
			Text: fmt.Sprintf("date>=%s", since.Format("2006-01-02T15:04:05Z"))}, func(h *query.SearchHit) error {
			var body map[string]any
			err := json.Unmarshal(h.Body, &body)
			for _, field := range []string{"from", "to"} {
				if number, ok := body[field].(string); ok {
					used[understudy.ParsePhone(number).Digits] = true
				}
			}
			return err
		}, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		own := query.SearchRequest{Kinds: []string{"incoming_phone_numbers"}}
		_, err = r.s.Export(t.Context(), as("open"), own, func(h *query.SearchHit) error {
			var body map[string]any
			err := json.Unmarshal(h.Body, &body)
			if number, _ := body["phone_number"].(string); !used[understudy.ParsePhone(number).Digits] {
				want = append(want, "incoming_phone_numbers/"+h.ID)
			}
			return err
		}, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		got := idle(fmt.Sprintf("idle:%dd", days))
		if !slices.Equal(got, want) {
			t.Errorf("%d days: %q, want %q", days, got, want)
		}
		if rest := idle(fmt.Sprintf("kind:incoming_phone_numbers -idle:%dd", days)); len(rest)+len(got) != len(every) {
			t.Errorf("%d days: %d idle and %d others of %d", days, len(got), len(rest), len(every))
		}
	}
	for role, want := range map[string]error{"support": understudy.ErrForbidden, "failed": understudy.ErrForbidden,
		"texts": understudy.ErrInvalid, "partial": understudy.ErrForbidden} {
		if err := r.s.Check(as(role), query.SearchRequest{Text: "idle:30d"}); !errors.Is(err, want) {
			t.Errorf("%s: %v", role, err)
		}
	}
	for _, wrong := range []string{"idle:x", "idle>30d", "idle:*", "kind:calls idle:30d"} {
		if err := r.s.Check(as("open"), query.SearchRequest{Text: wrong}); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A ready search is told to those alone who may see all that is in it.
func TestReadySearches(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	for role, want := range map[string]string{"open": "delivery-funnel idle-numbers", "all": "delivery-funnel idle-numbers",
		"support": "delivery-funnel", "failed": "delivery-funnel", "texts": "delivery-funnel", "partial": "", "nobody": ""} {
		var names []string
		for _, one := range r.s.PredefinedSearches(as(role)) {
			names = append(names, one.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", role, got, want)
		}
	}
}
