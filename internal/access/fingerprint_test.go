// Standing: equal where policies decide alike of a caller, different wherever
// they may not.

package access

import (
	"testing"
	"time"

	"understudy"
	"understudy/spec"
)

func TestStanding(t *testing.T) {
	grant := understudy.Grant{Role: "r", IssuedBy: "config"}
	caller := understudy.Caller{Name: "ann", Source: "twilio", Grant: &grant, Flow: 1}
	type policy struct {
		Options
		caller understudy.Caller
	}
	standing := func(change func(*policy)) string {
		t.Helper()
		p := policy{caller: caller, Options: Options{
			Specs: map[string]*spec.Spec{"twilio": twilio(t), "forge": forge(t)},
			Roles: Roles{"r": {"twilio": {"*": "see", "phone": "last4"}}, "other": {"twilio": {"*": "hide"}}},
			Rows: map[string]map[string]RowRules{"r": {"twilio": {"calls": {Age: time.Hour,
				Where: map[string]Match{"status": {In: []string{"busy"}}}}}}},
			Users: map[string]string{"twilio": "AC1"},
		}}
		g := grant
		p.caller.Grant = &g
		change(&p)
		gate, err := NewWith(p.Options)
		if err != nil {
			t.Fatal(err)
		}
		return gate.PolicyFingerprint(p.caller)
	}
	was := standing(func(*policy) {})
	if was == "" {
		t.Fatal("who has a role has no standing")
	}
	for name, change := range map[string]func(*policy){
		"nothing":            func(*policy) {},
		"another's role":     func(p *policy) { p.Roles["other"] = map[string]map[string]string{"forge": {"*": "see"}} },
		"a role more":        func(p *policy) { p.Roles["third"] = map[string]map[string]string{"twilio": {"*": "see"}} },
		"a role less":        func(p *policy) { delete(p.Roles, "other") },
		"another's rows":     func(p *policy) { p.Rows["other"] = map[string]RowRules{"twilio": {"calls": {Word: FindAll}}} },
		"the cache":          func(p *policy) { p.Cache = -1 },
		"where it waits":     func(p *policy) { p.caller.Flow = 2 },
		"the same end, here": func(p *policy) { p.caller.Grant.Expires = time.Time{}.Local() },
	} {
		if standing(change) != was {
			t.Errorf("%s: another standing", name)
		}
	}
	stale, other := time.Second, understudy.Allow{Method: "POST", Path: "/x"}
	for name, change := range map[string]func(*policy){
		"a level":        func(p *policy) { p.Roles["r"]["twilio"]["phone"] = "see" },
		"a field hidden": func(p *policy) { p.Roles["r"]["twilio"]["calls.price"] = "hide" },
		"a subject less": func(p *policy) { delete(p.Roles["r"]["twilio"], "phone") },
		"another source": func(p *policy) { p.Roles["r"]["forge"] = map[string]string{"*": "see"} },
		"an age":         func(p *policy) { p.Rows["r"]["twilio"] = RowRules{"calls": {Age: 2 * time.Hour}} },
		"a value": func(p *policy) {
			p.Rows["r"]["twilio"]["calls"].Where["status"] = Match{In: []string{"busy", "failed"}}
		},
		"no rows":            func(p *policy) { delete(p.Rows, "r") },
		"rows of a kind":     func(p *policy) { p.Rows["r"]["twilio"]["messages"] = RowRule{Word: FindNone} },
		"the user":           func(p *policy) { p.Users["twilio"] = "AC2" },
		"a user more":        func(p *policy) { p.Users["forge"] = "x" },
		"the role":           func(p *policy) { p.caller.Grant.Role = "other" },
		"the role all":       func(p *policy) { p.caller.Grant.Role = understudy.RoleAll },
		"the end":            func(p *policy) { p.caller.Grant.Expires = start },
		"how old":            func(p *policy) { p.caller.Grant.MaxStale = &stale },
		"what it may send":   func(p *policy) { p.caller.Grant.Allow = []understudy.Allow{other} },
		"by whom":            func(p *policy) { p.caller.Grant.IssuedBy = "demo" },
		"the name":           func(p *policy) { p.caller.Name = "bob" },
		"every source":       func(p *policy) { p.caller.Source = "" },
		"the role is gone":   func(p *policy) { delete(p.Roles, "r"); delete(p.Rows, "r") },
		"no grant":           func(p *policy) { p.caller.Grant = nil },
		"a grant of no role": func(p *policy) { p.caller.Grant.Role = "" },
	} {
		if standing(change) == was {
			t.Errorf("%s: the same standing", name)
		}
	}
	all := func(p *policy) { p.caller.Grant.Role = understudy.RoleAll }
	if a, b := standing(all), standing(func(p *policy) { all(p); p.Roles["r"]["twilio"]["phone"] = "see" }); a != b || a == "" {
		t.Error("another's role changes what the role all sees")
	}
}

// What is asked of a gate after it was made, of maps that have changed since, is
// of the policy it was made of.
func TestStandingIsOfThePolicy(t *testing.T) {
	roles := Roles{"r": {"twilio": {"*": "see"}}}
	g := gate(t, roles)
	c := understudy.Caller{Name: "ann", Grant: &understudy.Grant{Role: "r"}}
	was := g.PolicyFingerprint(c)
	delete(roles, "r")
	if g.PolicyFingerprint(c) != was {
		t.Error("a map of the caller's changes a policy")
	}
}
