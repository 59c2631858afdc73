// Changes: what a role learns of one.

package access

import (
	"errors"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/upstream"
)

func changeGate(t *testing.T) *Gate {
	t.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(map[string]*spec.Spec{"twilio": sp}, Roles{
		"open":    {"twilio": {"*": "see"}},
		"deaf":    {"twilio": {"*": "see", "recordings.audio": "hide"}},
		"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
		"blind":   {"twilio": {"*": "see", "calls.sid": "last4"}},
		"half":    {"twilio": {"*": "see", "participants.call_sid": "hide"}},
		"within":  {"twilio": {"calls.sid": "see", "calls.subresource_uris.recordings": "see", "calls.from": "last4"}},
		"derived": {"twilio": {"calls": "see", "calls.from": "hide", "calls.from_formatted": "see"}},
		"nothing": {"twilio": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestChange(t *testing.T) {
	g := changeGate(t)
	for _, c := range []struct {
		role, kind string
		what       understudy.ChangeType
		fields     []string
		shown      bool
		left       []string
	}{
		{"all", "calls", understudy.Changed, []string{"x_new", "from"}, true, []string{"from", "x_new"}},
		{"all", "calls", understudy.Changed, nil, true, nil},
		{"open", "calls", understudy.Changed, []string{"x_new", "from"}, true, []string{"from"}},
		{"open", "calls", understudy.Changed, []string{"x_new"}, true, nil},
		{"deaf", "calls", understudy.Changed, []string{"x_new"}, false, nil},
		{"support", "messages", understudy.Appeared, nil, true, nil},
		{"support", "messages", understudy.Deleted, nil, true, nil},
		{"support", "messages", understudy.Changed, []string{"body"}, false, nil},
		{"support", "messages", understudy.Changed, nil, false, nil},
		{"support", "messages", understudy.Changed, []string{"body", "status", "to"}, true, []string{"status", "to"}},
		{"support", "messages", understudy.Changed, []string{`\u0062ody`, `st\u0061tus`}, true, []string{`st\u0061tus`}},
		{"support", "calls", understudy.Changed, []string{"subresource_uris.x_new"}, false, nil},
		{"support", "calls", understudy.Changed, []string{"subresource_uris.recordings", "status.deep", "", ".", "status."}, true,
			[]string{"subresource_uris.recordings"}},
		{"blind", "calls", understudy.Appeared, nil, false, nil},
		{"blind", "messages", understudy.Appeared, nil, true, nil},
		{"half", "participants", understudy.Appeared, nil, false, nil},
		{"within", "calls", understudy.Changed, []string{"subresource_uris"}, true, []string{"subresource_uris"}},
		{"within", "calls", understudy.Changed, []string{"subresource_uris.events", "status"}, false, nil},
		{"within", "calls", understudy.Changed, []string{"from", "from_formatted"}, true, []string{"from"}},
		{"within", "messages", understudy.Appeared, nil, false, nil},
		{"derived", "calls", understudy.Changed, []string{"from_formatted"}, false, nil},
		{"nothing", "calls", understudy.Appeared, nil, false, nil},
		{"unknown", "calls", understudy.Appeared, nil, false, nil},
		{"", "calls", understudy.Appeared, nil, false, nil},
		{"all", "calls", understudy.Appeared, nil, true, nil},
		{"open", "nowhere", understudy.Appeared, nil, false, nil},
	} {
		ch := understudy.Change{N: 7, Source: "twilio", Kind: c.kind, ID: "X", Type: c.what, Record: 8, Version: 9,
			Fields: understudy.NewNames(c.fields...)}
		caller := understudy.Caller{Name: c.role, Grant: &understudy.Grant{Role: c.role}}
		got, shown := g.RedactChange(caller, ch)
		if shown != c.shown || shown && got.Fields != understudy.NewNames(c.left...) {
			t.Errorf("%s, %v %s %q: %v %q; want %v %q", c.role, c.what, c.kind, c.fields, shown, got.Fields, c.shown, c.left)
		}
		counts := c.role == "all" || c.role == "open"
		checktest.True(t, !(shown && (got.N == 7) != counts),
			"shown && (got.N == 7) != counts, counts is %v", counts)
		checktest.True(t, !(shown && (got.Version == 9) != counts),
			"shown && (got.Version == 9) != counts, counts is %v", counts)
		checktest.True(t, !(shown && (got.Record == 8) != counts),
			"shown && (got.Record == 8) != counts, counts is %v", counts)
		if g.CanSeeAll(caller, "twilio") != counts {
			t.Errorf("%s sees everything: %v", c.role, !counts)
		}
		if elsewhere := (understudy.Caller{Source: "forge", Grant: caller.Grant}); g.CanSeeAll(elsewhere, "twilio") {
			t.Errorf("%s of another source sees everything", c.role)
		} else if _, shown := g.RedactChange(elsewhere, ch); shown {
			t.Errorf("%s of another source sees a change", c.role)
		}
	}
}

func TestField(t *testing.T) {
	g := changeGate(t)
	for _, c := range []struct {
		role, kind, field string
		may               bool
	}{
		{"all", "calls", "x_new", true}, {"open", "calls", "x_new", false}, {"support", "calls", "from", true},
		{"support", "messages", "body", false}, {"within", "calls", "subresource_uris", true}, {"support", "calls", "", false},
		{"derived", "calls", "from_formatted", false}, {"blind", "calls", "from", true}, {"nothing", "calls", "from", false},
	} {
		err := g.CheckChangeField(understudy.Caller{Name: c.role, Grant: &understudy.Grant{Role: c.role}}, "twilio", c.kind, c.field)
		if c.may != (err == nil) || err != nil && !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s may ask for %s.%s: %v, want %v", c.role, c.kind, c.field, err, c.may)
		}
	}
}
