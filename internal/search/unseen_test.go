// What is not seen does not say how much is read.

package search

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/spec"
)

// world is a store of messages that say in what is hidden what hidden says.
func world(t *testing.T, hidden func(n int) (status, to string)) *rig {
	t.Helper()
	r := newRig(t, false)
	var bodies []string
	for n := range 40 {
		at := fmt.Sprintf("Mon, 01 Jun 2026 10:00:%02d +0000", n)
		status, to := hidden(n)
		bodies = append(bodies, fmt.Sprintf(`{"sid":"SM%032x","account_sid":%q,"date_created":%q,"date_sent":%q,"body":"hello %d","status":%q,`+
			`"from":"+1555010%04d","to":%q,"error_message":"plain %d"}`, n, account, at, at, n, status, n, to, n%3))
	}
	r.put("Messages", bodies...)
	return r
}

// given is what a store was asked for a query and what it handed out.
func (r *rig) given(role, text string) (asked, given string) {
	r.Helper()
	s, w := r.watch(func(*Options) {})
	if _, err := s.Find(r.Context(), as(role), query.SearchRequest{Text: text, Facets: true}); err != nil {
		r.Fatalf("%s as %s: %v", text, role, err)
	}
	for i := range w.asked {
		w.asked[i].Want = 0
	}
	return fmt.Sprintf("%+v", w.asked), fmt.Sprint(w.given)
}

// H2: a word or a number that stands in hidden fields alone is read no further than
// one that stands nowhere; what a caller sees is still asked for by an index.
func TestHiddenFieldsDriveNoIndex(t *testing.T) {
	one := world(t, func(int) (string, string) { return "delivered", "+15550200000" })
	other := world(t, func(n int) (string, string) { return "failed", fmt.Sprintf("+1555030%04d", n) })
	for _, text := range []string{"delivered", "fail*", "hello delivered", "kind:messages failed", "-delivered", "delivered OR +15550200000",
		"+15550200000", "number:+15550300007 error_message:plain",
		"+1555020*", "error_message:delivered", "+15550100007", "body:hello", "SM" + fmt.Sprintf("%032x", 7)} {
		a, gave := one.given("partial", text)
		b, gaveOther := other.given("partial", text)
		if gave != gaveOther {
			t.Errorf("%s: %s is asked and gives\n%s\nand, with other hidden values, %s and\n%s", text, a, gave, b, gaveOther)
		}
	}
	for text, most := range map[string]int{"+15550100007": 4, "number:+15550200000": 0, "from:+15550100009": 4,
		"body:hello from:+15550100009": 4, "status:x OR id:SM" + fmt.Sprintf("%032x", 7): 6} {
		s, w := one.watch(func(*Options) {})
		role := "partial"
		if _, err := s.Find(t.Context(), as(role), query.SearchRequest{Text: text, Facets: true}); err != nil {
			role = "all"
		}
		if len(w.given) > most {
			t.Errorf("%s as %s: %d records are read, want no more than %d", text, role, len(w.given), most)
		}
	}
}

// H2: a rule on records is asked for with the query where an index tells it; where
// none does, the query decides nothing of what is read.
func TestHiddenRecordsDriveNoIndex(t *testing.T) {
	rules := map[string]access.RowRule{
		"where":   {Where: map[string]access.Match{"status": {In: []string{"sent"}}}},
		"numbers": {Numbers: []string{"+15550100001", "+15550100002"}},
		"begins":  {Where: map[string]access.Match{"status": {Prefix: "sen"}}},
	}
	mayFind := []string{"messages/SM" + fmt.Sprintf("%032x", 1), "messages/SM" + fmt.Sprintf("%032x", 2)}
	status := func(rest string) func(n int) (string, string) {
		return func(n int) (string, string) {
			if n == 1 || n == 2 {
				return "sent", "+15550200000"
			}
			return rest, "+15550200000"
		}
	}
	one, other := world(t, status("failed")), world(t, status("queued"))
	for of, rule := range rules {
		for _, r := range []*rig{one, other} {
			r.rule(map[string]access.RowRules{"twilio": {"messages": rule, "*": {Word: "all"}}})
		}
		for _, text := range []string{"status:failed", "status:queued", "failed", "hello", "from:+15550100009",
			"error_message:plain status:failed", "-failed", "id:SM" + fmt.Sprintf("%032x", 9)} {
			asked, gave := one.given("open", text)
			if _, gaveOther := other.given("open", text); of != "begins" && gave != gaveOther {
				t.Errorf("%s, %s: %s gives\n%s\nand, with other hidden records,\n%s", of, text, asked, gave, gaveOther)
			}
			s, w := one.watch(func(*Options) {})
			out, err := s.Find(t.Context(), as("open"), query.SearchRequest{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range out.Hits {
				if !slices.Contains(mayFind, h.Kind+"/"+h.ID) {
					t.Errorf("%s, %s: found %s", of, text, h.ID)
				}
			}
			for _, id := range w.given {
				if of != "begins" && !slices.Contains(mayFind, id) {
					t.Errorf("%s, %s: %s is read", of, text, id)
				}
			}
			if of == "begins" && len(w.given) != 40 && len(w.asked) > 0 && len(w.asked[0].IDs) == 0 {
				t.Errorf("%s, %s: %d of 40 records are read", of, text, len(w.given))
			}
		}
	}
}

// rule puts row rules for the role open in force.
func (r *rig) rule(rules map[string]access.RowRules) {
	r.Helper()
	var err error
	r.gate, err = access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": r.spec}, Roles: roles,
		Rows: map[string]map[string]access.RowRules{"open": rules}, Newest: r.newest})
	if err != nil {
		r.Fatal(err)
	}
	r.o.Gate = gated{r.gate}
}

// L12: a role that does not see numbers neither sees nor finds one in a URL.
func TestNumbersInURLsAreNotFound(t *testing.T) {
	r := newRig(t, false)
	r.put("IncomingPhoneNumbers", `{"sid":"PN00000000000000000000000000000001","phone_number":"+14162364176","date_created":"Mon, 01 Jun `+
		`2026 10:00:00 +0000","voice_url":"https://example.com/voice?line=14162364176"}`)
	for _, text := range []string{"14162364176", `"line 14162364176"`, "1416*", "line"} {
		if out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text}); err != nil || len(out.Hits) != 1 {
			t.Errorf("%s as all: %+v, %v", text, out, err)
		}
		if out, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: text}); err == nil && len(out.Hits) > 0 {
			t.Errorf("%s as support: %s", text, out.Hits[0].Body)
		}
	}
	out, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{})
	if err != nil || len(out.Hits) != 1 || bytes.Contains(out.Hits[0].Body, []byte("4162364176")) {
		t.Errorf("shown to support: %+v, %v", out, err)
	}
}
