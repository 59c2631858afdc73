package access

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
)

// doGate is a gate with roles that may do something.
func doGate(t *testing.T, does Permissions) (*Gate, error) {
	t.Helper()
	sp := twilio(t)
	return NewWith(Options{Specs: map[string]*spec.Spec{"twilio": sp}, Roles: Roles{
		"support": {"twilio": {"*": "see", "calls": "hide"}}, "reader": {"twilio": {"*": "see"}},
	}, Do: does})
}

func TestWhatRolesMayDo(t *testing.T) {
	g, err := doGate(t, Permissions{"support": {"twilio": {"messages.send", "calls.cancel", "purge"}}})
	if err != nil {
		t.Fatal(err)
	}
	sp := g.specs["twilio"]
	list := target(t, sp, "twilio", "/2010-04-01/Accounts/AC1/Messages.json", "")
	one := target(t, sp, "twilio", "/2010-04-01/Accounts/AC1/Messages/SM1.json", "")
	call := target(t, sp, "twilio", "/2010-04-01/Accounts/AC1/Calls/CA1.json", "")
	person := func(role string) understudy.Caller {
		return understudy.Caller{Name: "anna", Grant: &understudy.Grant{Role: role}}
	}
	program := understudy.Caller{Name: "p", Source: "twilio", Grant: &understudy.Grant{Role: understudy.RoleAll, Allow: []understudy.Allow{
		{Method: "POST", Path: "/2010-04-01/Accounts/*/Messages.json"}}}}
	for _, c := range []struct {
		who    understudy.Caller
		target *spec.Target
		action string
		may    bool
	}{
		{person("support"), list, "send", true},
		{person("support"), one, "redact", false},  // its do does not name it
		{person("support"), call, "cancel", false}, // named, and the kind is hidden
		{person("reader"), list, "send", false},
		{person(understudy.RoleAll), list, "send", true},
		{person(understudy.RoleAll), one, "delete", true},
		{person(""), list, "send", false},
		{program, list, "send", true},
		{program, one, "delete", false}, // whatever its role sees
	} {
		a := c.target.Kind.Action(c.action)
		err := g.CheckAction(c.who, c.target, a)
		if (err == nil) != c.may || err != nil && !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s as %q, %s: %v", c.who.Name, c.who.Role(), c.action, err)
		}
	}
	for word, may := range map[string]bool{PermitSync: false, PermitPurge: true, PermitErase: false} {
		if err := g.CheckPermission(person("support"), "twilio", word); (err == nil) != may {
			t.Errorf("support, %s: %v", word, err)
		}
		if err := g.CheckPermission(person(understudy.RoleAll), "twilio", word); err != nil {
			t.Errorf("all, %s: %v", word, err)
		}
		if err := g.CheckPermission(program, "twilio", word); err == nil {
			t.Errorf("a credential may %s", word)
		}
	}
}

func TestUnknownActionsAreNamed(t *testing.T) {
	for _, c := range []struct {
		does Permissions
		want string
	}{
		{Permissions{"support": {"twilio": {"messages.sendd"}}}, `there is no action "messages.sendd"; did you mean "messages.send"?`},
		{Permissions{"support": {"twilio": {"erased"}}}, `"erased"; did you mean "erase"?`},
		{Permissions{"support": {"other": {"sync"}}}, "it may do something and may see nothing"},
		{Permissions{"nobody": {"twilio": {"sync"}}}, `"nobody" has a list of actions but is not a role`},
	} {
		if _, err := doGate(t, c.does); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.does, err, c.want)
		}
	}
}

// A role that may do something else is another policy.
func TestActionsArePartOfThePolicy(t *testing.T) {
	a, err := doGate(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := doGate(t, Permissions{"support": {"twilio": {"sync"}}})
	if err != nil {
		t.Fatal(err)
	}
	who := func(role string) understudy.Caller {
		return understudy.Caller{Name: "anna", Grant: &understudy.Grant{Role: role}}
	}
	if a.Policy() == b.Policy() || a.PolicyFingerprint(who("support")) == b.PolicyFingerprint(who("support")) {
		t.Error("the policy is the same")
	}
	if a.PolicyFingerprint(who("reader")) != b.PolicyFingerprint(who("reader")) {
		t.Error("it is another for a role that may do the same")
	}
}

// lookupGate is a gate with a role that sees some numbers in part, and may look them up.
func lookupGate(t *testing.T, levels map[string]string, rows map[string]map[string]RowRules) (*Gate, error) {
	t.Helper()
	return NewWith(Options{Specs: map[string]*spec.Spec{"twilio": twilio(t)}, Roles: Roles{
		"support": {"twilio": levels}, "reader": {"twilio": {"*": "see", "phone": "last4"}},
	}, Rows: rows, Do: Permissions{"support": {"twilio": {PermitLookup}}}})
}

func TestWhoMayLookUpNumbers(t *testing.T) {
	g, err := lookupGate(t, map[string]string{"*": "see", "phone": "last4"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	person := func(role string) understudy.Caller {
		return understudy.Caller{Name: "anna", Grant: &understudy.Grant{Role: role}}
	}
	program, other := person("support"), person("support")
	program.Source, other.Source = "twilio", "github"
	for who, may := range map[*understudy.Caller]bool{
		new(person("support")): true, &program: true, &other: false, new(person("reader")): false, new(person("")): false,
		new(person(understudy.RoleAll)): false,
	} {
		if err := g.CheckPermission(*who, "twilio", PermitLookup); (err == nil) != may || err != nil && !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s of source %q as %q: %v, want %v", who.Name, who.Source, who.Role(), err, may)
		}
	}
	if g.CheckPermission(person("support"), "github", PermitLookup) == nil {
		t.Error("a source that the role does not name")
	}
	if g.Level(person("support"), "twilio", "calls", "from") != Last4 {
		t.Error("who may look up a number is shown it")
	}
}

func TestLookupIsRefusedWhereItFindsNothing(t *testing.T) {
	for _, c := range []struct {
		levels map[string]string
		want   string
	}{
		{map[string]string{"*": "see"}, "the role can see every phone number"},
		{map[string]string{"accounts": "see"}, "can't see any phone numbers"},
		{map[string]string{"*": "see", "phone": "hide"}, ""},
		{map[string]string{"*": "see", "phone": "hash"}, ""},
		{map[string]string{"*": "see", "calls.from": "country"}, ""},
	} {
		_, err := lookupGate(t, c.levels, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.levels, err, c.want)
		}
	}
	rows := map[string]map[string]RowRules{"support": {"twilio": {Everything: {Word: FindNone}, "accounts": {Word: FindAll}}}}
	_, err := lookupGate(t, map[string]string{"*": "see", "phone": "last4"}, rows)
	if err == nil || !strings.Contains(err.Error(), "any phone numbers") {
		t.Errorf("numbers in kinds of which nothing is found: %v", err)
	}
}
