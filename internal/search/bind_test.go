// Names, types and times: what conditions mean, and errors about them.

package search

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/upstream"
)

func TestErrorsPointAtNames(t *testing.T) {
	r := newRig(t, false)
	for _, c := range []struct {
		role, text, at, why string
		kind                error
	}{
		{"all", "kind:calls stauts:failed", "stauts", `did you mean "status"?`, understudy.ErrInvalid},
		{"all", "héllo durations>5", "durations", `did you mean "duration"?`, understudy.ErrInvalid},
		{"all", "kind:messages duration>5", "duration", "it is one of calls", understudy.ErrInvalid},
		{"all", "duration>x", "x", "is a number", understudy.ErrInvalid},
		{"all", "duration:5*", "5*", "is a number", understudy.ErrInvalid},
		{"all", "date>2026-13", "2026-13", "is no time", understudy.ErrInvalid},
		{"all", "date:tomorrow", "tomorrow", "a time is 2026", understudy.ErrInvalid},
		{"all", "age>5", "5", "a length of time", understudy.ErrInvalid},
		{"all", "age:5d", "age:5d", "an age is compared", understudy.ErrInvalid},
		{"all", "status>failed", "status>failed", "not ordered", understudy.ErrInvalid},
		{"all", "kind>calls", "kind>calls", "no order", understudy.ErrInvalid},
		{"all", "kind:phone", "phone", "There is ", understudy.ErrInvalid},
		{"all", "has:prize", "prize", `did you mean "price"?`, understudy.ErrInvalid},
		{"all", "has:price*", "price*", "takes no star", understudy.ErrInvalid},
		{"all", "number:+1415*", "+1415*", "write the beginning of one by itself", understudy.ErrInvalid},
		{"all", "duration:60..10", "60..10", "write duration:10..60", understudy.ErrInvalid},
		{"all", "price:-0.1..-0.5", "-0.1..-0.5", "ends before it begins", understudy.ErrInvalid},
		{"all", "x date:2026-06..2026-05", "2026-06..2026-05", "write date:2026-05..2026-06", understudy.ErrInvalid},
		{"all", "date:-1d..-7d", "-1d..-7d", "write date:-7d..-1d", understudy.ErrInvalid},
		{"all", "age:7d..1d", "7d..1d", "write age:1d..7d", understudy.ErrInvalid},
		{"all", "number:abc", "abc", "no phone number", understudy.ErrInvalid},
		{"all", "recordings.audio:x", "recordings.audio", "no field is called", understudy.ErrInvalid},
		{"all", "kind:recordings audio:x", "audio", "is a content", understudy.ErrInvalid},
		{"all", "kind:calls subresource_uris:x", "subresource_uris:x", "holds other fields", understudy.ErrInvalid},
		{"all", `"!!!"`, `"!!!"`, "there is no word", understudy.ErrInvalid},
		{"all", `body:"!!!"`, `"!!!"`, "there is no word", understudy.ErrInvalid},
		{"all", "auth_token:x", "auth_token", "does not fully see", understudy.ErrForbidden},
		{"all", "muted:maybe", "maybe", "true or false", understudy.ErrInvalid},
		{"all", "from:+15550100123,anna", "+15550100123,anna", "OR between them", understudy.ErrInvalid},
		{"support", "x body:hello", "body", "does not fully see body", understudy.ErrForbidden},
		{"support", "-(x OR has:from)", "from", "does not fully see from", understudy.ErrForbidden},
		{"support", "number:+15550100123", "number:+15550100123", "fully sees no phone number", understudy.ErrForbidden},
		{"billing", "kind:conferences", "conferences", "does not see conferences", understudy.ErrForbidden},
		{"billing", "status:failed", "status", "or look in messages alone with kind:messages", understudy.ErrForbidden},
		{"billing", "muted:true", "muted", "what your role does not see", understudy.ErrForbidden},
		{"texts", "sid:SM1", "sid", "does not fully see sid", understudy.ErrForbidden},
		{"texts", "id:SM1", "id:SM1", "sees no ids", understudy.ErrForbidden},
		{"texts", "price<0", "price", "does not fully see price", understudy.ErrForbidden},
	} {
		_, err := r.s.Find(t.Context(), as(c.role), query.SearchRequest{Text: c.text})
		var e *query.SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("%s asks %s: %v", c.role, c.text, err)
			continue
		}
		if at := e.Text[e.At:e.End]; at != c.at || !strings.Contains(e.Why, c.why) || !errors.Is(err, c.kind) ||
			e.Character != len([]rune(c.text[:e.At])) {
			t.Errorf("%s asks %s: at %q: %s (%v)", c.role, c.text, at, e.Why, e.Kind)
		}
	}
	for _, text := range []string{"kind:messages status:failed", "kind:calls price<0 -kind:messages",
		"kind:calls OR kind:messages status:failed", "voice:true", "in:call", "date:2030..-7d", "date:-7d..2000", "date:2026-05..2026-05",
		"age:1d..1d", "kind:calls price:1..1"} {
		if role := map[bool]string{true: "all", false: "billing"}[text == "voice:true" || strings.Contains(text, "..")]; r.s.Check(as(role),
			query.SearchRequest{Text: text}) != nil {
			t.Errorf("%s asks %s: %v", role, text, r.s.Check(as(role), query.SearchRequest{Text: text}))
		}
	}
}

// Any text, as any role, is an error that points or a query that can be asked,
// and each record either fulfils it or its opposite.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		`hello -x OR status:a`, `price<-0.5 date:-7d`, `has:price no:body,price`, `kind:calls (from:+1 555 010 0123 OR number:12345)`,
		`age:1d..2d`,
		`voice:true`, `id:CA1*`, `CA00000000000000000000000000000001`, `date:..2026`, `duration:1..`, `status:*`, `body:a,b`, `uri:x`,
		`error_code=1e3`,
		`CF00000000000000000000000000000001~CA00000000000000000000000000000001`, `from_formatted:anna`, `start_time:1969`,
	} {
		f.Add(seed, uint8(0))
	}
	spec, err := upstream.BuiltIn("twilio")
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
			if !errors.As(err, &e) || e.At < 0 || e.At > e.End || e.End > len(text) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, one := range q.Plan() {
			for _, term := range one.Query.Predicates {
				if len(term.Any) == 0 && term.Number == "" && term.From == 0 && term.To == 0 || term.Field == "" && len(term.Any) > 0 ||
					slices.Contains(term.Any, "") {
					t.Fatalf("%q: a term that asks for nothing: %+v", text, term)
				}
			}
		}
		for _, s := range q.Views {
			var c lang.Candidate
			if s.Kind.Name == "calls" && s.See(&c, record) {
				holds := q.Cond.Holds(&c)
				if (&lang.Cond{Op: lang.OpNot, Of: []*lang.Cond{q.Cond}}).Holds(&c) == holds {
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
	target, err := r.o.Sources[1].Spec.Target("github", "/repos/acme/tracker/issues", "")
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
