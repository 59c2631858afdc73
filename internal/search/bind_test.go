// Queries of any text, and fields whose names are words of the language.

package search

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/upstream"
)

// Any text, as any role, is an error that points or a query that can be asked,
// and each record either fulfils it or its opposite.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		`hello -x OR status:a`, `price<-0.5 date:-7d`, `has:price no:body,price`, `kind:calls (from:+1 555 010 0123 OR number:12345)`,
		`age:1d..2d`,
		`voice:true`, `id:CA1*`, `CA00000000000000000000000000000001`, `date:..2026`, `duration:1..`, `status:*`, `body:a,b`, `uri:x`,
		`error_code=1e3`,
		`CF00000000000000000000000000000001~CA00000000000000000000000000000001`, `from_formatted:anna`, `start_time:1969`,
		`near:37.8,-122.4~25mi`,
	} {
		f.Add(seed, uint8(0))
	}
	spec, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		f.Fatal(err)
	}
	r := fuzzRig(f, spec)
	body := []byte(`{"sid":"CA00000000000000000000000000000001","from":"+15550100123","status":"failed","duration":"60","price":"-0.5",` +
		`"start_time":"Mon, 01 Jun 2026 10:00:00 +0000","caller_name":"hello, world","unnamed":["x",{"y":1}]}`)
	record := &understudy.Record{Source: "twilio", Kind: "calls", Shape: "calls", ID: "CA00000000000000000000000000000001", Body: body}
	f.Fuzz(func(t *testing.T, text string, role uint8) {
		who := as([]string{"all", "support", "billing", "texts", "failed", "partial"}[int(role)%6])
		q, err := r.read(who, &query.SearchRequest{Text: text}, epoch)
		if err != nil {
			var e *query.SyntaxError
			checktest.MustTrue(t, errors.As(err, &e), "%q: errors.As(err, &e) is false", text)
			checktest.MustTrue(t, e.At >= 0, "%q: e.At is %v, want >= 0; %v", text, e.At, err)
			checktest.MustTrue(t, e.At <= e.End, "%q: e.At is %v; %v", text, e.At, err)
			checktest.MustTrue(t, e.End <= len(text), "%q: e.End is %v; %v", text, e.End, err)
			return
		}
		for _, one := range q.Plan() {
			for _, term := range one.Query.Predicates {
				checktest.MustTrue(t, !(len(term.Any) == 0 && term.Number == "" && term.From == 0 && term.To == 0),
					"%q: len(term.Any) is %v", text, len(term.Any))
				checktest.MustTrue(t, !(term.Field == "" && len(term.Any) > 0),
					`%q: term.Field == "" && len(term.Any) > 0; term.Field is %q`, text, term.Field)
				checktest.MustTrue(t, !slices.Contains(term.Any, ""), "%q: term.Any is %v", text, term.Any)
			}
		}
		for _, s := range q.Views {
			var c lang.Candidate
			if s.Kind.Name == "calls" && s.Read(&c, record) {
				holds := q.Cond.Match(&c)
				if (&lang.Cond{Op: lang.OpNot, Of: []*lang.Cond{q.Cond}}).Match(&c) == holds {
					t.Fatalf("%q: neither", text)
				}
				_, _ = snippets(q, &c), score(q, &c)
			}
		}
		_ = q.Cond.Text(q.Views)
	})
}

// A kind with a field called number or id takes nothing from other sources: number: still finds their phone
// numbers, and id: their records.
func TestFieldCalledNumberOrIDHidesNoOtherSource(t *testing.T) {
	r := newRig(t, false, "github", "stripe") // of which one has numbers as ids, and the other texts
	const id, issue = "SM000000000000000000000000000000b1", `{"id":5550100123,"number":77,"title":"a title",` +
		`"url":"https://api.github.com/repos/acme/tracker/issues/77"}`
	r.put("Messages", `{"sid":"`+id+`","date_created":"Mon, 01 Jun 2026 10:00:00 +0000","from":"+15550100123","body":"x"}`)
	target, err := r.o.Sources[1].Spec.Resolve("github", "/repos/acme/tracker/issues", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Save(t.Context(), &understudy.Page{Key: target.Key, Kind: target.Kind.Name, Shape: target.List.Shape, List: true,
		Status: 200, ContentType: "application/json", At: epoch, Body: []byte("[" + issue + "]"),
		Rows: []understudy.Row{{ID: "https://api.github.com/repos/acme/tracker/issues/77", Start: 1, End: 1 + len(issue)}}}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"+15550100123": "messages", "(555) 010-0123": "messages", `number:"+1 555 010 0123"`: "messages", "id:" + id: "messages",
		"kind:messages id:" + id: "messages", "number:77": "issues", "kind:issues number>70": "issues", "id:5550100123": "issues",
		"number:78": "", "id:SM000000000000000000000000000000b2": "",
	} {
		out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var kinds []string
		for _, h := range out.Hits {
			kinds = append(kinds, h.Kind)
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s finds %q, want %q", text, got, want)
		}
	}
	if _, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: "kind:issues number:abc"}); err == nil {
		t.Error("number:abc is a number")
	}
}
