package access

import (
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
	"understudy/upstream"
)

// What is explained is what is done, for every field of every kind, and has a reason.
func TestExplain(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	roles := Roles{
		"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide", "calls": "see", "calls.from": "hide", "recordings.audio": "play"}},
		"narrow":  {"twilio": {"messages.sid": "see", "calls": "last4"}},
		"nothing": {"twilio": {}},
	}
	g, err := New(map[string]*spec.Spec{"twilio": sp}, roles)
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]string{}
	for _, role := range []string{"support", "narrow", "nothing", understudy.RoleAll} {
		c := understudy.Caller{Name: "x", Grant: &understudy.Grant{Role: role}}
		for _, k := range sp.Kinds {
			shown, err := g.Explain(role, "twilio", k.Name)
			if err != nil || len(shown) != len(k.Fields) {
				t.Fatalf("%s of %s: %d fields of %d, %v", k.Name, role, len(shown), len(k.Fields), err)
			}
			for _, s := range shown {
				sees := g.plansSee(c, "twilio", k.Name)
				if want := g.Level(c, "twilio", k.Name, s.Field); sees && s.Level != want || s.Line == "" {
					t.Errorf("%s.%s of %s is explained as %s by %q, and shown as %s", k.Name, s.Field, role, s.Level, s.Line, want)
				}
				why[role+" "+k.Name+"."+s.Field] = s.String() + " by " + s.Line
			}
		}
	}
	for at, want := range map[string]string{
		"support calls.to":             `last4 by "phone": last4`,
		"support calls.from":           `hide by "calls.from": hide`,
		"support calls.from_formatted": `hide by derived from from, "calls.from": hide`,
		"support calls.status":         `see by "calls": see`,
		"support messages.sid":         `see by "*": see`,
		"support messages.body":        `hide by "body": hide`,
		"support recordings.audio":     `play by "recordings.audio": play`,
		"narrow messages.body":         `hide by no setting names it`,
		"nothing calls.sid":            `hide by no setting names it`,
		"all calls.sid":                `see by the role all sees everything`,
		"all accounts.auth_token":      `hide by nobody can see secrets`,
	} {
		if why[at] != want {
			t.Errorf("%s: %s, want %s", at, why[at], want)
		}
	}
	for _, wrong := range [][3]string{{"suport", "twilio", "calls"}, {"support", "twilo", "calls"}, {"support", "twilio", "cals"}} {
		if _, err := g.Explain(wrong[0], wrong[1], wrong[2]); err == nil || !strings.Contains(err.Error(), "no ") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// plansSee reports whether a caller sees anything of a kind.
func (g *Gate) plansSee(c understudy.Caller, source, kind string) bool {
	_, _, err := g.plan(c, source, kind)
	return err == nil
}
