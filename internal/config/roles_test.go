// Roles: how row rules are written, and where the settings say they are wrong.

package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/spec"
	"understudy/upstream"
)

const rowsBefore = "sources: {twilio: {spec: twilio}}\nroles:\n  support:\n    twilio:\n      \"*\": see\n      rows:\n"

func TestRowRulesAreRead(t *testing.T) {
	c, err := Parse([]byte(rowsBefore+`        "*": {age: 30d, number: own}
        calls: {age: 36h, number: [own, "+15551234567"]}
        messages: {where: {status: sent, to: [a, b], from: {prefix: "+4"}, sid: {is: "${SID}"}, body: {in: [1, true]}}}
        keys: all
`), func(string) (string, bool) { return "SM1", true })
	if err != nil {
		t.Fatal(err)
	}
	policy := c.Policy()
	roles, rows := policy.Roles, policy.Rows
	if want := (access.Roles{"support": {"twilio": {"*": "see"}}}); !reflect.DeepEqual(roles, want) {
		t.Errorf("roles %v", roles)
	}
	want := access.RowRules{
		"*":     {Age: 720 * time.Hour, Numbers: []string{"own"}},
		"calls": {Age: 36 * time.Hour, Numbers: []string{"own", "+15551234567"}},
		"messages": {Where: map[string]access.Match{
			"status": {In: []string{"sent"}}, "to": {In: []string{"a", "b"}}, "from": {Prefix: "+4"}, "sid": {In: []string{"SM1"}},
			"body": {In: []string{"1", "true"}},
		}},
		"keys": {Word: "all"},
	}
	if got := rows["support"]["twilio"]; !reflect.DeepEqual(got, want) {
		t.Errorf("rows\n%+v, want\n%+v", got, want)
	}
}

func TestRowRulesSayWhereTheyAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		`        calls: {aeg: 30d}`:                              `line 7: unknown setting "aeg"; did you mean "age"?`,
		`        calls: {age: 30x}`:                              `line 7: "30x" is not an age; write 30d or 12h`,
		`        calls: {age: 0d}`:                               `is not an age`,
		`        calls: {age: 99999999999d}`:                     `is not an age`,
		`        calls: {age: [1d]}`:                             `is not an age`,
		`        calls: {where: [a]}`:                            `line 7: write a block of names`,
		`        calls: {where: {to: {prefx: a}}}`:               `line 7: unknown setting "prefx"; did you mean "prefix"?`,
		`        calls: {where: {to: [[a]]}}`:                    `line 7: write a value or a list of values`,
		`        calls: {number: {own: true}}`:                   `line 7: write a value or a list of values`,
		`        calls: [all]`:                                   `line 7: write a block of settings`,
		`        calls: &a {age: 1d}` + "\n        messages: *a": `line 8: aliases (*a) are not read here`,
		"        calls: all\n        calls: none":                `line 8: "calls" appears twice, first in line 7`,
		"        - calls":                                        `line 7: write a block of names`,
	} {
		if _, err := Parse([]byte(rowsBefore+text+"\n"), noEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"roles: {a: {twilio: see}}":          `line 1: write a block of subjects and levels`,
		"roles: {a: {twilio: {calls: [x]}}}": `line 1: calls: write see, last4, country, hash or hide`,
		"roles: {a: {twilio: {x: a, x: b}}}": `"x" appears twice`,
		"roles: {a: {twilio: {do: [[x]]}}}":  `write a value or a list of values`,
	} {
		if _, err := Parse([]byte(text+"\n"), noEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

// What people of a role may do stands beside what the role sees.
func TestActionsAreRead(t *testing.T) {
	c, err := Parse([]byte("sources: {twilio: {spec: twilio}}\n"+
		"roles: {a: {twilio: {calls: see, do: [messages.send, sync]}}, b: {twilio: {calls: see}}}\n"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	policy := c.Policy()
	if want := (access.Permissions{"a": {"twilio": {"messages.send", "sync"}}}); !reflect.DeepEqual(policy.Do, want) {
		t.Errorf("do %v", policy.Do)
	}
	if want := (access.Roles{"a": {"twilio": {"calls": "see"}}, "b": {"twilio": {"calls": "see"}}}); !reflect.DeepEqual(policy.Roles, want) {
		t.Errorf("roles %v", policy.Roles)
	}
}

// A file with rules that are wrong for the API is found by check, too.
func TestTheDocumentedRowRules(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/access.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## Which records")
	_, example, _ := strings.Cut(after, "```yaml\n")
	example, _, ok := strings.Cut(example, "```")
	if !ok {
		t.Fatal("docs/reference/access.md has no example of row rules")
	}
	c, err := Parse([]byte("sources: {twilio: {spec: twilio}}\n"+example), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if g := rowsGate(t, c); len(g.DescribeRules("support", "twilio")) < 20 {
		t.Error("it has no row rules")
	}
}

func rowsGate(t testing.TB, c *Settings) *access.Gate {
	t.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	policy := c.Policy()
	roles, rows := policy.Roles, policy.Rows
	g, err := access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": sp}, Roles: roles, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Whatever stands under rows, it is read or refused; what is read means
// something or is refused by the gate, and a rule that is taken never finds
// more than no rule.
func FuzzRowRules(f *testing.F) {
	for _, seed := range []string{
		`{calls: {age: 30d, number: own}}`, `{"*": {where: {to: {prefix: "+4"}}}}`, `{calls: all, messages: parent, media: none}`,
		`{calls: {number: [own, 5, "+1"]}}`,
		`[]`, `x`, `{calls: {where: {subresource_uris.events: [a, {b: c}]}}}`, `{usage_records: parent, alerts: {age: 1h}}`,
		`{calls: {age: -1d}}`, `{? [a] : b}`,
	} {
		f.Add(seed, `{"from":"+4","start_time":"Sun, 31 May 2026 12:00:00 +0000","call_sid":"CA1"}`)
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rules, body string) {
		c, err := Parse([]byte("sources: {twilio: {spec: twilio}}\nroles:\n  r:\n    twilio:\n      \"*\": see\n      rows: "+rules+"\n"), noEnv)
		if err != nil || c.Roles["r"]["twilio"].rows == nil {
			return
		}
		policy := c.Policy()
		roles, rows := policy.Roles, policy.Rows
		g, err := access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": sp}, Roles: roles, Rows: rows})
		if err != nil {
			return
		}
		who := understudy.Caller{Grant: &understudy.Grant{Role: "r"}}
		for i, k := range sp.Kinds {
			only := g.RecordFilter(who, "twilio", k.Name)
			if word := g.DescribeRules("r", "twilio"); word != nil && (only == nil) != strings.HasSuffix(word[i], ": all") {
				t.Fatalf("%s: %q, and a rule: %v", k.Name, word[i], only != nil)
			}
			if only == nil {
				continue
			}
			found := only(&understudy.Record{Kind: k.Name, Body: []byte(body)})
			if found && (!strings.HasPrefix(strings.TrimSpace(body), "{") || !g.CanSee(who, "twilio", k.Name)) {
				t.Fatalf("%s: %s is found", k.Name, body)
			}
		}
	})
}
