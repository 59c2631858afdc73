// Names, types and times: what conditions mean, and errors about them.

package lang_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/spec"
	"understudy/spec/spectest"
)

// language reads queries as roles do that see some of the built-in source twilio.
type language struct {
	gate    *access.Gate
	source  *spec.Source
	callers map[string]understudy.Caller
}

func newLanguage(t testing.TB) *language {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	roles := access.Roles{
		"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
		"billing": {"twilio": {"calls": "see", "messages": "see", "phone": "last4", "messages.body": "hide", "calls.caller_name": "hide",
			"calls.status": "hide"}},
		"texts": {"twilio": {"messages.body": "see", "messages.status": "see", "messages.date_sent": "see", "messages.date_created": "see"}},
	}
	g, err := access.New(map[string]*spec.Spec{"twilio": sp}, roles)
	if err != nil {
		t.Fatal(err)
	}
	l := &language{gate: g, source: &spec.Source{Name: "twilio", Spec: sp}, callers: map[string]understudy.Caller{}}
	for _, role := range []string{"all", "support", "billing", "texts"} {
		l.callers[role] = understudy.Caller{Name: role + "er", Grant: &understudy.Grant{Role: role}}
	}
	return l
}

// gated is the gate as searches ask it.
type gated struct{ *access.Gate }

func (g gated) CanSeeField(c understudy.Caller, source, kind, field string) bool {
	return g.Level(c, source, kind, field) == access.See
}

func (g gated) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.Gate.MakeView(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: 200, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}

// bind reads a query as a role. It is the first of June 2026, noon.
func (l *language) bind(role, text string) (*lang.BoundQuery, error) {
	tree, err := lang.Parse(text)
	if err != nil {
		return nil, err
	}
	c := l.callers[role]
	var views []*lang.KindView
	every := func(yield func(*spec.Kind, bool) bool) {
		for _, k := range l.source.Spec.Kinds {
			if len(k.ID) > 0 && !yield(k, l.gate.CanSee(c, "twilio", k.Name)) {
				return
			}
		}
	}
	for k, sees := range every {
		if sees {
			v := lang.NewKindView(gated{l.gate}, c, l.source, k, lang.TextRuleOf(k))
			v.Equal = func(field, hash string) (query.Equality, bool) { return l.gate.Equal(c, "twilio", k.Name, field, hash) }
			views = append(views, v)
		}
	}
	return lang.Bind(text, tree, views, every, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
}

func TestErrorsPointAtNames(t *testing.T) {
	l := newLanguage(t)
	for _, c := range []struct {
		role, text, at, why string
		kind                error
	}{
		{"all", "kind:calls stauts:failed", "stauts", `did you mean "status"?`, understudy.ErrInvalid},
		{"all", "héllo durations>5", "durations", `did you mean "duration"?`, understudy.ErrInvalid},
		{"all", "kind:messages duration>5", "duration", "it is one of calls", understudy.ErrInvalid},
		{"all", "duration>x", "x", "is a number", understudy.ErrInvalid},
		{"all", "duration:5*", "5*", "is a number", understudy.ErrInvalid},
		{"all", "date>2026-13", "2026-13", "is not a time", understudy.ErrInvalid},
		{"all", "date:tomorrow", "tomorrow", "a time is 2026", understudy.ErrInvalid},
		{"all", "age>5", "5", "a length of time", understudy.ErrInvalid},
		{"all", "age:5d", "age:5d", "an age is compared", understudy.ErrInvalid},
		{"all", "status>failed", "status>failed", "has no order", understudy.ErrInvalid},
		{"all", "kind>calls", "kind>calls", "no order", understudy.ErrInvalid},
		{"all", "kind:phone", "phone", "There is ", understudy.ErrInvalid},
		{"all", "has:prize", "prize", `did you mean "price"?`, understudy.ErrInvalid},
		{"all", "has:price*", "price*", "takes no star", understudy.ErrInvalid},
		{"all", "number:+1415*", "+1415*", "write the beginning of one alone", understudy.ErrInvalid},
		{"all", "duration:60..10", "60..10", "write duration:10..60", understudy.ErrInvalid},
		{"all", "price:-0.1..-0.5", "-0.1..-0.5", "ends before it begins", understudy.ErrInvalid},
		{"all", "x date:2026-06..2026-05", "2026-06..2026-05", "write date:2026-05..2026-06", understudy.ErrInvalid},
		{"all", "date:-1d..-7d", "-1d..-7d", "write date:-7d..-1d", understudy.ErrInvalid},
		{"all", "age:7d..1d", "7d..1d", "write age:1d..7d", understudy.ErrInvalid},
		{"all", "number:abc", "abc", "not a phone number", understudy.ErrInvalid},
		{"all", "recordings.audio:x", "recordings.audio", "there is no field", understudy.ErrInvalid},
		{"all", "kind:recordings audio:x", "audio", "is a file", understudy.ErrInvalid},
		{"all", "kind:calls subresource_uris:x", "subresource_uris:x", "contains other fields", understudy.ErrInvalid},
		{"all", `"!!!"`, `"!!!"`, "there is no word", understudy.ErrInvalid},
		{"all", `body:"!!!"`, `"!!!"`, "there is no word", understudy.ErrInvalid},
		{"all", "auth_token:x", "auth_token", "in full", understudy.ErrForbidden},
		{"all", "muted:maybe", "maybe", "true or false", understudy.ErrInvalid},
		{"all", "from:+15550100123,anna", "+15550100123,anna", "OR between them", understudy.ErrInvalid},
		{"support", "x body:hello", "body", "can't see body", understudy.ErrForbidden},
		{"support", "-(x OR has:from)", "from", "can't see from", understudy.ErrForbidden},
		{"support", "number:+15550100123", "number:+15550100123", "can't search by phone number", understudy.ErrForbidden},
		{"billing", "kind:conferences", "conferences", "can't see conferences", understudy.ErrForbidden},
		{"billing", "status:failed", "status", "or search only messages with kind:messages", understudy.ErrForbidden},
		{"billing", "muted:true", "muted", "records that your role can't see", understudy.ErrForbidden},
		{"texts", "sid:SM1", "sid", "can't see sid", understudy.ErrForbidden},
		{"texts", "id:SM1", "id:SM1", "can't see ids", understudy.ErrForbidden},
		{"texts", "price<0", "price", "can't see price", understudy.ErrForbidden},
	} {
		_, err := l.bind(c.role, c.text)
		var e *query.SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("%s asks %s: %v", c.role, c.text, err)
			continue
		}
		{
			at := e.Text[e.At:e.End]
			checktest.Equal(t, at, c.at, "%s asks %s: at", c.role, c.text)
			checktest.Contains(t, e.Why, c.why, "%s asks %s: e.Why", c.role, c.text)
			checktest.True(t, errors.Is(err, c.kind), "%s asks %s: err is %v, want c.kind", c.role, c.text, err)
			checktest.Equal(t, e.Character, len([]rune(c.text[:e.At])), "%s asks %s: e.Character", c.role, c.text)
		}
	}
	for _, text := range []string{"kind:messages status:failed", "kind:calls price<0 -kind:messages",
		"kind:calls OR kind:messages status:failed", "voice:true", "in:call", "date:2030..-7d", "date:-7d..2000", "date:2026-05..2026-05",
		"age:1d..1d", "kind:calls price:1..1"} {
		role := map[bool]string{true: "all", false: "billing"}[text == "voice:true" || strings.Contains(text, "..")]
		if _, err := l.bind(role, text); err != nil {
			t.Errorf("%s asks %s: %v", role, text, err)
		}
	}
}

// A length of time and a cost are found as pages show them, 1:00 and $0.50; with a minus a cost is what the API wrote.
func TestNumbersAreFoundAsTheyAreShown(t *testing.T) {
	l := newLanguage(t)
	record := &understudy.Record{Source: "twilio", Kind: "calls", Shape: "calls", ID: "CA00000000000000000000000000000001",
		Body: []byte(`{"sid":"CA00000000000000000000000000000001","duration":"84","price":"-0.50"}`)}
	for text, want := range map[string]bool{
		"price:0.5": true, "price=$0.50": true, "price:-0.5": true, "price:0.1,0.5": true,
		"price>0": true, "price<0": false, "price>0.5": false, "price>=0.5": true, "price<=0.5": true,
		"price<0.51": true,
		"price<0.02": false, "price:0.1..1": true, "price:0.51..1": false, "price:..0.5": true, "price:0.51..": false,
		"price:-1..0.1": true, "price>-0.6": true, "kind:calls duration:1:24": true, "kind:calls duration:1:23": false,
		"kind:calls duration>1:00": true, "kind:calls duration<=0:01:24": true, "kind:calls duration:0:30..1:30": true,
		"kind:calls duration:84,0:10": true, "kind:calls duration>1:00:00": false,
	} {
		q, err := l.bind("all", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, v := range q.Views {
			var c lang.Candidate
			if v.Kind.Name == "calls" && v.Read(&c, record) && q.Cond.Match(&c) != want {
				t.Errorf("%s holds: %v", text, !want)
			}
		}
	}
	for _, text := range []string{"duration:1:60", "duration:1:5", "duration::24", "duration:1:00:00:00", "price:0:24",
		"duration:1:30..0:30"} {
		if _, err := l.bind("all", "kind:calls "+text); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A bound condition holds for a record or does not, and its opposite the other way round.
func TestConditionsHoldForARecord(t *testing.T) {
	l := newLanguage(t)
	const id = "CA00000000000000000000000000000001"
	record := &understudy.Record{Source: "twilio", Kind: "calls", Shape: "calls", ID: id, Body: []byte(`{"sid":"` + id + `",` +
		`"from":"+15550100123","status":"failed","duration":"60","price":"-0.5","start_time":"Mon, 01 Jun 2026 10:00:00 +0000",` +
		`"caller_name":"hello, world"}`)}
	for text, want := range map[string]bool{
		"status:failed": true, "status:busy": false, "status:busy,failed": true, "duration>59": true, "duration>60": false,
		"duration:30..60": true, "price<-0": true, "price>-0.5": false, "date:2026-06-01": true, "date:2026-05": false, "age<3h": true,
		"age>1d": false, "has:caller_name": true, "no:caller_name": false, "has:parent_call_sid": false, "hello": true,
		`"hello world"`: true, `"world hello"`: false, "hel*": true, "hullo": false, "from:+15550100123": true, "number:+15550100124": false,
		"start_time>=2026-06-01T10:00": true, "start_time>2026-06-01T10:00": false, "status=Failed": false,
		"status:FAILED": true, "id:" + id: true, "status:busy OR duration:60": true, "status:failed price>-0": false,
		"(status:busy OR hello) price<-0": true,
	} {
		q, err := l.bind("all", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, v := range q.Views {
			var c lang.Candidate
			if v.Kind.Name != "calls" || !v.Read(&c, record) {
				continue
			}
			if got := q.Cond.Match(&c); got != want {
				t.Errorf("%s holds: %v", text, got)
			}
			if got := (&lang.Cond{Op: lang.OpNot, Of: []*lang.Cond{q.Cond}}).Match(&c); got == want {
				t.Errorf("the opposite of %s holds: %v", text, got)
			}
		}
	}
}
