// Reasons: what is said of a record is what is done.

package access

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// explainsAs fails unless the role is told that it finds a record or not, and the reasons
// that hold say the same.
func explainsAs(t *testing.T, rules RowRules, kind, body string, want bool) {
	t.Helper()
	held := maps.Clone(someHeld)
	held[[2]string{kind, "X1"}] = body
	e, err := ruledGate(t, rules, held).ExplainRecord("r", "twilio", kind, "X1")
	if err != nil {
		if want {
			t.Errorf("explain: %v", err)
		}
		return // the body is no record
	}
	missing := slices.ContainsFunc(e.Reasons, func(r Reason) bool { return !r.Holds })
	if e.Found != want || missing == want {
		t.Errorf("explained as found %t, %v; want %t", e.Found, e.Reasons, want)
	}
}

// Each field has the value that the role is shown, its level and its line.
func TestExplainRecord(t *testing.T) {
	held := shelf{{"calls", "CA1"}: `{"sid":"CA1","from":"+15551234567","to":null,"caller_name":"Ada","start_time":"` + young + `"}`}
	g, err := NewWith(Options{
		Specs: ruledGate(t, nil, nil).specs, NewestVersion: held.newest, Now: func() time.Time { return start },
		Roles: Roles{"support": {"twilio": {"*": "see", "phone": "last4", "name": "hide"}}, "clerk": {"twilio": {"messages": "see"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := g.ExplainRecord("support", "twilio", "calls", "CA1")
	checktest.MustNoError(t, err, "")
	checktest.MustTrue(t, e.Found, "e.Found is false")
	checktest.MustEqual(t, len(e.Reasons), 0, "len(e.Reasons)")
	of := map[string]FieldExplanation{}
	for _, f := range e.Fields {
		of[f.Field] = f
	}
	for _, want := range []FieldExplanation{
		{"sid", "", "see", `"*": see`, `"CA1"`}, {"from", "phone", "last4", `"phone": last4`, `"********4567"`},
		{"caller_name", "name", "hide", `"name": hide`, "null"}, {"to", "phone", "last4", `"phone": last4`, "null"},
		{"status", "", "see", `"*": see`, ""},
	} {
		if of[want.Field] != want {
			t.Errorf("%+v, want %+v", of[want.Field], want)
		}
	}
	e, err = g.ExplainRecord("clerk", "twilio", "calls", "CA1")
	checktest.MustNoError(t, err, "a kind that is hidden")
	checktest.True(t, !e.Found, "a kind that is hidden: e.Found is true")
	checktest.MustEqual(t, len(e.Reasons), 1, "a kind that is hidden: len(e.Reasons)")
	checktest.True(t, !e.Reasons[0].Holds, "a kind that is hidden: e.Reasons[0].Holds is true")
	for _, f := range e.Fields {
		if f.Value != "" {
			t.Errorf("a kind that is hidden shows %s", f.Value)
		}
	}
	if _, err = g.ExplainRecord("support", "twilio", "calls", "CA2"); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("a record that is not held: %v", err)
	}
	if _, err = g.ExplainRecord("suport", "twilio", "calls", "CA1"); !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(),
		`did you mean "support"`) {
		t.Errorf("a role that is not there: %v", err)
	}
}
