// Rule: what each kind of row rule finds, and what is refused as a rule.

package access

import (
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/spec"
)

// shelf are the newest versions a gate under test looks up, by kind and id.
type shelf map[[2]string]string

func (s shelf) newest(_, kind, id string) *understudy.Record {
	body, ok := s[[2]string{kind, id}]
	if !ok {
		return nil
	}
	return &understudy.Record{Source: "twilio", Kind: kind, ID: id, Body: []byte(body)}
}

func ruledGate(t testing.TB, rules RowRules, held shelf) *Gate {
	t.Helper()
	g, err := NewWith(Options{
		Specs:       map[string]*spec.Spec{"twilio": twilio(t), "forge": forge(t)},
		Roles:       Roles{"r": {"twilio": {"*": "see"}, "forge": {"*": "see"}}, "free": {"twilio": {"*": "see"}}},
		Rows:        map[string]map[string]RowRules{"r": {"twilio": rules}},
		IsOwnNumber: func(_, number string) bool { return number == "15550000001" },
		// The shelf is asked as the store would be.
		NewestVersion: held.newest, Now: func() time.Time { return start },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const (
	young = "Sun, 31 May 2026 12:00:00 +0000" // a day before start
	old   = "Wed, 01 Apr 2026 12:00:00 +0000"
)

var someHeld = shelf{
	{"calls", "CA1"}:      `{"sid":"CA1","from":"+15550000001","to":"+4477","start_time":"` + young + `"}`,
	{"calls", "CA2"}:      `{"sid":"CA2","from":"+4411111111","to":"+4477","start_time":"` + young + `"}`,
	{"recordings", "RE1"}: `{"sid":"RE1","call_sid":"CA1"}`,
	{"recordings", "RE2"}: `{"sid":"RE2","call_sid":"CA2"}`,
}

func TestRowRules(t *testing.T) {
	day := 24 * time.Hour
	own := RowRules{"calls": {Numbers: []string{OwnNumbers}}}
	for name, test := range map[string]struct {
		rules RowRules
		kind  string
		body  string
		want  bool
	}{
		"young":                   {RowRules{"calls": {Age: 30 * day}}, "calls", `{"start_time":"` + young + `"}`, true},
		"old":                     {RowRules{"calls": {Age: 30 * day}}, "calls", `{"start_time":"` + old + `"}`, false},
		"to the second":           {RowRules{"calls": {Age: day}}, "calls", `{"start_time":"` + young + `"}`, false},
		"clock null, order young": {RowRules{"calls": {Age: 30 * day}}, "calls", `{"start_time":null,"date_created":"` + young + `"}`, true},
		"clock null, order old":   {RowRules{"calls": {Age: 30 * day}}, "calls", `{"start_time":null,"date_created":"` + old + `"}`, false},
		"no time at all":          {RowRules{"calls": {Age: 30 * day}}, "calls", `{"start_time":null}`, false},
		"time that is none":       {RowRules{"calls": {Age: 30 * day}}, "calls", `{"start_time":"soon","date_created":"` + young + `"}`, false},
		"own number":              {own, "calls", `{"from":"+1 (555) 000-0001","to":"x"}`, true},
		"own number, channel":     {own, "calls", `{"from":"x","to":"whatsapp:+15550000001"}`, true},
		"own number in no phone":  {own, "calls", `{"from":"x","to":null,"sid":"+15550000001"}`, false},
		"longer than an own one":  {own, "calls", `{"from":"+155500000011"}`, false},
		"number of the rule":      {RowRules{"calls": {Numbers: []string{"+44 77"}}}, "calls", `{"to":"+4477"}`, true},
		"client of the rule":      {RowRules{"calls": {Numbers: []string{"client:bob7"}}}, "calls", `{"to":"client:bob7"}`, true},
		"subaccount": {RowRules{Everything: {Where: map[string]Match{"account_sid": {In: []string{"ACx", "ACy"}}}}}, "messages",
			`{"account_sid":"ACy"}`, true},
		"another subaccount": {RowRules{Everything: {Where: map[string]Match{"account_sid": {In: []string{"ACx"}}}}}, "messages",
			`{"account_sid":"ACy"}`, false},
		"prefix":         {RowRules{"calls": {Where: map[string]Match{"to": {Prefix: "+44"}}}}, "calls", `{"to":"+4477"}`, true},
		"not the prefix": {RowRules{"calls": {Where: map[string]Match{"to": {Prefix: "+44"}}}}, "calls", `{"to":"+14477"}`, false},
		"a number as text": {RowRules{"messages": {Where: map[string]Match{"error_code": {In: []string{"30005"}}}}}, "messages",
			`{"error_code":30005}`, true},
		"null": {RowRules{"messages": {Where: map[string]Match{"error_code": {In: []string{"null"}}}}}, "messages",
			`{"error_code":null}`, false},
		"escaped name": {RowRules{"calls": {Where: map[string]Match{"to": {In: []string{"x"}}}}}, "calls", `{"t\u006f":"x"}`, true},
		"the last of two": {RowRules{"calls": {Where: map[string]Match{"to": {In: []string{"x"}}}}}, "calls", `{"to":"x","to":"y"}`,
			false},
		"inside an object": {RowRules{"calls": {Where: map[string]Match{"subresource_uris.events": {Prefix: "/2010"}}}}, "calls",
			`{"subresource_uris":{"events":"/2010-x"}}`, true},
		"all must hold": {RowRules{"calls": {Age: 30 * day, Numbers: []string{OwnNumbers}}}, "calls",
			`{"from":"+15550000001","start_time":"` + old + `"}`, false},
		"no document": {own, "calls", `{"from":"+15550000001"`, false},
		"no object":   {own, "calls", `["+15550000001"]`, false},

		"recording of a call it finds":    {own, "recordings", `{"call_sid":"CA1"}`, true},
		"recording of a call it does not": {own, "recordings", `{"call_sid":"CA2"}`, false},
		"recording of an unheld call":     {own, "recordings", `{"call_sid":"CA3"}`, false},
		"recording of both":               {own, "recordings", `{"call_sid":"CA2","conference_sid":"CF1"}`, false},
		"recording of a conference":       {own, "recordings", `{"call_sid":null,"conference_sid":"CF1"}`, true},
		"recording of nothing":            {own, "recordings", `{"call_sid":null,"conference_sid":null}`, false},
		"transcription, two up":           {own, "transcriptions", `{"recording_sid":"RE1"}`, true},
		"transcription, hidden two up":    {own, "transcriptions", `{"recording_sid":"RE2"}`, false},
		"participant in a call":           {own, "participants", `{"conference_sid":"CF1","call_sid":"CA1"}`, true},
		"participant in a hidden call":    {own, "participants", `{"conference_sid":"CF1","call_sid":"CA2"}`, false},
		"alert about a call":              {own, "alerts", `{"resource_sid":"CA1"}`, true},
		"alert about a hidden call":       {own, "alerts", `{"resource_sid":"CA2"}`, false},
		"alert about something else":      {own, "alerts", `{"resource_sid":"SM1"}`, true},
		"alert about nothing":             {own, "alerts", `{"resource_sid":null}`, true},
		"opened again": {RowRules{"calls": own["calls"], "recordings": {Word: FindAll}}, "recordings", `{"call_sid":"CA2"}`,
			true},
		"own rule and the parent's": {RowRules{"calls": own["calls"], "recordings": {Age: 30 * day}}, "recordings",
			`{"call_sid":"CA2","date_created":"` + young + `"}`, false},
		"a common rule it cannot fulfil": {RowRules{Everything: own["calls"]}, "conferences", `{"sid":"CF1"}`, false},
		"a common rule, by the parent":   {RowRules{Everything: own["calls"]}, "recordings", `{"call_sid":"CA1"}`, true},
		"a common rule, no parent named": {RowRules{Everything: own["calls"]}, "alerts", `{"resource_sid":null}`, false},
		"none":                           {RowRules{"calls": {Word: FindNone}}, "calls", `{"sid":"CA1"}`, false},
		"not spoken of":                  {own, "messages", `{"sid":"SM1"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := ruledGate(t, test.rules, someHeld)
			only := g.RecordFilter(as("r"), "twilio", test.kind)
			got := only == nil || only(&understudy.Record{Source: "twilio", Kind: test.kind, Body: []byte(test.body)})
			if got != test.want {
				t.Errorf("found %v, want %v", got, test.want)
			}
			if g.RecordFilter(as("free"), "twilio", test.kind) != nil || g.RecordFilter(as("all"), "twilio", test.kind) != nil {
				t.Error("a rule binds somebody else")
			}
			explainsAs(t, test.rules, test.kind, test.body, test.want)
		})
	}
}

// A kind of which nothing can be found is hidden whole, and no other is.
func TestKindsThatCannotBeFound(t *testing.T) {
	g := ruledGate(t, RowRules{Everything: {Numbers: []string{OwnNumbers}}, "keys": {Word: FindAll}}, nil)
	for kind, want := range map[string]bool{"calls": true, "recordings": true, "call_events": true, "keys": true, "conferences": false,
		"balance": false, "usage_records": false, "accounts": false} {
		if got := g.CanSee(as("r"), "twilio", kind); got != want {
			t.Errorf("sees %s: %v, want %v", kind, got, want)
		}
		if counts := g.CanCount(as("r"), "twilio", kind); counts != (kind == "keys") {
			t.Errorf("may count %s: %v", kind, counts)
		}
	}
	if g.CanSeeAll(as("r"), "twilio") || !g.CanSeeAll(as("free"), "twilio") {
		t.Error("who does not find every record sees the whole")
	}
	if only := g.RecordFilter(as("r"), "twilio", "conferences"); only == nil || only(&understudy.Record{Body: []byte(`{}`)}) {
		t.Error("a record of a hidden kind is found")
	}
}

func TestRowRulesThatAreRefused(t *testing.T) {
	where := func(field string, m Match) RowRule { return RowRule{Where: map[string]Match{field: m}} }
	x := Match{In: []string{"x"}}
	for want, rules := range map[string]RowRules{
		`no kind "cals"; did you mean "calls"?`:                                                {"cals": {Word: FindAll}},
		`the word "parnt" is not known; write all, none, parent or a block of conditions; did`: {"calls": {Word: "parnt"}},
		`rows.calls: calls have no parent record`:                                              {"calls": {Word: FindParent}},
		`rows.calls: the rule is empty`:                                                        {"calls": {}},
		`rows.usage_records: usage_records are stored as whole pages`:                          {"usage_records": {Age: 1}},
		`rows.accounts: number: accounts have no field of class phone`:                         {"accounts": {Numbers: []string{OwnNumbers}}},
		`number: "ownn" is not a phone number; write own or a number`:                          {"calls": {Numbers: []string{"ownn"}}},
		`unknown field "form" of calls; did you mean "from"?`:                                  {"calls": where("form", x)},
		`auth_token of accounts has no value that is kept`:                                     {"accounts": where("auth_token", x)},
		`audio of recordings has no value that is kept`:                                        {"recordings": where("audio", x)},
		`where.to is empty; write a value, a list of values, or {prefix: TEXT}`:                {"calls": where("to", Match{})},
		`where.to has an empty value, or both values and a prefix`:                             {"calls": where("to", Match{In: []string{""}})},
		`rows.*: where: no kind of twilio has a stored field "acount_sid"`:                     {Everything: where("acount_sid", x)},
		`rows.*: none cannot have conditions`:                                                  {Everything: {Word: FindNone, Age: 1}},
		`rows.keys: keys have no parent record`:                                                {"keys": {Word: FindParent}},
		`access: roles.r.twilio.rows.calls: age is negative`:                                   {"calls": {Age: -1}},
	} {
		_, err := NewWith(Options{
			Specs: map[string]*spec.Spec{"twilio": twilio(t)}, Roles: Roles{"r": {"twilio": {"*": "see"}}},
			Rows: map[string]map[string]RowRules{"r": {"twilio": rules}},
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %s", rules, err, want)
		}
	}
	specs := map[string]*spec.Spec{"twilio": twilio(t)}
	for want, o := range map[string]Options{
		`"s" has row rules but is not a role`: {Specs: specs,
			Rows: map[string]map[string]RowRules{"s": {"twilio": {"calls": {Word: FindAll}}}}},
		`roles.r.twilio: it has row rules and nothing it`: {Specs: specs, Roles: Roles{"r": {}},
			Rows: map[string]map[string]RowRules{"r": {"twilio": {"calls": {Word: FindAll}}}}},
	} {
		if _, err := NewWith(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// The policy's name changes with its row rules.
func TestRowRulesArePartOfThePolicy(t *testing.T) {
	a := ruledGate(t, RowRules{"calls": {Age: time.Hour}}, nil)
	b := ruledGate(t, RowRules{"calls": {Age: 2 * time.Hour}}, nil)
	if a.Policy() == b.Policy() {
		t.Error("two policies have one name")
	}
}

func TestRowRulesInWords(t *testing.T) {
	g := ruledGate(t, RowRules{
		Everything: {Age: 30 * 24 * time.Hour}, "keys": {Word: FindAll}, "calls": {Age: 36 * time.Hour, Numbers: []string{OwnNumbers, "+4477"}},
		"messages": {Where: map[string]Match{"to": {Prefix: "+44"}, "status": {In: []string{"sent", "failed"}}}}, "alerts": {Word: FindParent},
	}, nil)
	all := strings.Join(g.DescribeRules("r", "twilio"), "\n")
	for _, want := range []string{
		"keys: all", "balance: none", "calls: younger than 36 h, with one of our own numbers or 4477 as from or to or forwarded_from",
		`messages: status is sent or failed, to begins with "+44"`, "alerts: below a visible record of any kind",
		"media: younger than 30 days, not below a hidden message", "call_events: below a visible call",
	} {
		if !strings.Contains(all+"\n", want+"\n") {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if g.DescribeRules("free", "twilio") != nil || g.DescribeRules("r", "forge") != nil {
		t.Error("words where there is no rule")
	}
}
