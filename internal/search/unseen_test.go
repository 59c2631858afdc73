// What is not seen does not say how much is read.

package search

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/spec"
)

// world is a store of messages that say in what is hidden what hidden says.
func world(t *testing.T, hidden func(n int) (status, to string)) *rig {
	t.Helper()
	return worldOf(t, 40, hidden)
}

// worldOf is a world of some messages.
func worldOf(t *testing.T, messages int, hidden func(n int) (status, to string)) *rig {
	t.Helper()
	r := newRig(t, false)
	var bodies []string
	for n := range messages {
		at := time.Date(2026, time.June, 1, 10, 0, n, 0, time.UTC).Format(time.RFC1123Z)
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
		w.asked[i].ExpectedRows = 0
	}
	return fmt.Sprintf("%+v", w.asked), fmt.Sprint(w.given)
}

// reading is what the store reads for a search, its counts and a sum, and what is found.
func (r *rig) reading(role string, a query.SearchRequest) string {
	r.Helper()
	space := func() store.Space {
		s, err := r.store.MeasureSpace(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		return s
	}
	before := space()
	out, err := r.s.Find(r.Context(), as(role), a)
	if err != nil {
		r.Fatalf("%s as %s: %v", a.Text, role, err)
	}
	after := space()
	return fmt.Sprintf("%d found, total %v: %d rows, %d of indexes, %d blocks", len(out.Hits), out.Total, after.Read.Rows-before.Read.Rows,
		after.Read.Index-before.Read.Index, after.Read.Blocks-before.Read.Blocks)
}

// settled has everything written to the indexes, and the words of the fields known that a role
// sees: the first search reads those that are few.
func (r *rig) settled(role string) {
	r.Helper()
	if _, _, err := r.store.ForgetRecord(r.Context(), "twilio", "messages", fmt.Sprintf("SM%032x", 5)); err != nil {
		r.Fatal(err)
	}
	r.reading(role, query.SearchRequest{Text: "one"})
}

// A word that stands in one hidden field, beside fields of its class that are seen, takes the
// same reads as a word that stands nowhere.
func TestWordsOfAHiddenFieldReadAsMuchAsUnknownOnes(t *testing.T) {
	r := worldOf(t, 100, func(n int) (string, string) { return fmt.Sprintf("failed hello word%d", n), "+17770200000" })
	r.settled("partial")
	for _, form := range []string{"%s", "%.5s*", `"%s hello"`, "hello %s", "hello -%s", "%s OR plain", "kind:messages %s",
		"error_message:%s"} {
		for _, word := range [][2]string{{"failed", "qzxvwq"}, {"word77", "qzxv77"}, {"17770200000", "17760999999"}} {
			for _, a := range []query.SearchRequest{{}, {Facets: true}, {Sort: "rank"}, {Sort: "oldest"}, {CountOnly: true}} {
				one, other := a, a
				one.Text, other.Text = fmt.Sprintf(form, word[0]), fmt.Sprintf(form, word[1])
				if hidden, never := r.reading("partial", one), r.reading("partial", other); hidden != never {
					t.Errorf("%s %+v\nhidden %s\nnever  %s", one.Text, a, hidden, never)
				}
			}
		}
	}
	seen, never := r.reading("all", query.SearchRequest{Text: "failed"}), r.reading("all", query.SearchRequest{Text: "qzxvwq"})
	if seen == never {
		t.Errorf("a role that sees the field reads %s for both", seen)
	}
}

// A word search by a role that does not see one field reads what it finds, however many other
// records there are.
func TestASearchBesideAHiddenFieldReadsWhatItFinds(t *testing.T) {
	var read [2]string
	for i, records := range []int{300, 3000} {
		r := worldOf(t, records, func(int) (string, string) { return "delivered", "+15550200000" })
		r.settled("partial")
		for _, text := range []string{`"hello 7"`, "qzxvwq", "delivered", "hello error_message:nothing", "1555010000*", "body:17"} {
			for _, a := range []query.SearchRequest{{Text: text}, {Text: text, Sort: "oldest"}, {Text: text, Facets: true}} {
				read[i] += fmt.Sprintf("%+v: %s\n", a, r.reading("partial", a))
			}
		}
	}
	if read[0] != read[1] {
		t.Errorf("of 300 records\n%s\nof 3000\n%s", read[0], read[1])
	}
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
		Rows: map[string]map[string]access.RowRules{"open": rules}, NewestVersion: r.newest})
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
	checktest.MustNoError(t, err, "shown to support; out %+v", out)
	checktest.MustEqual(t, len(out.Hits), 1, "shown to support: len(out.Hits)")
	checktest.True(t, !bytes.Contains(out.Hits[0].Body, []byte("4162364176")),
		`shown to support: bytes.Contains(out.Hits[0].Body, []byte("4162364176")) is true`)
}
