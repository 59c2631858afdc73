// Address: where pages are, and which list an address means.

package plan_test

import (
	"strings"
	"testing"

	"understudy"
	"understudy/internal/viewer/plan"
	"understudy/spec"
	"understudy/spec/spectest"
)

const (
	account = "AC00000000000000000000000000000001"
	root    = "/2010-04-01/Accounts/" + account
)

func planned(t *testing.T) *plan.Source {
	t.Helper()
	s, err := plan.New(&spec.Source{Name: "twilio", Spec: spectest.BuiltIn(t, "twilio"), User: account})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTargetHasItsPage(t *testing.T) {
	s := planned(t)
	for uri, want := range map[string]string{
		root + "/Calls.json":                                   "/twilio/calls",
		root + "/Calls.json?PageSize=50":                       "/twilio/calls",
		root + "/Calls.json?Status=busy&PageSize=20":           "/twilio/calls?Status=busy&PageSize=20",
		root + "/Calls/CA1.json":                               "/twilio/calls/CA1",
		"/2010-04-01/Accounts/AC2/Calls.json":                  "/twilio/calls?understudy.AccountSid=AC2",
		root + "/IncomingPhoneNumbers/TollFree.json":           "/twilio/incoming_phone_numbers?understudy.list=toll-free",
		root + "/Conferences/CF1/Participants.json?Muted=true": "/twilio/participants?ConferenceSid=CF1&Muted=true",
		root + "/Conferences/CF1/Participants/CA1.json":        "/twilio/participants/CF1~CA1",
		root + "/Calls/CA1/Recordings.json":                    "/twilio/recordings?understudy.list=of-a-call&CallSid=CA1",
		root + "/Messages/SM1/Media/ME1.json":                  "/twilio/media/ME1?MessageSid=SM1",
	} {
		path, query, _ := strings.Cut(uri, "?")
		target, err := s.Spec.Resolve("twilio", path, query)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Place(target); got != want {
			t.Errorf("%s is shown at %s, want %s", uri, got, want)
		}
	}
	if got := s.Place(nil); got != "" {
		t.Errorf("no target is shown at %s", got)
	}
}

func TestAddressMeansTheListThatKnowsItsParameters(t *testing.T) {
	s := planned(t)
	for _, c := range []struct{ kind, slug, name, under string }{
		{"notifications", "", "CallSid", "calls"}, {"participants", "", "ConferenceSid", "conferences"},
		{"recordings", "of-a-call", "CallSid", "calls"}, {"recordings", "", "CallSid", ""}, // a filter of the whole list
		{"media", "", "MessageSid", "messages"},
	} {
		list := s.ByName[c.kind].FindList(c.slug, understudy.Query{{Name: c.name, Value: "XX1"}})
		if list == nil {
			t.Fatalf("no list of %s for %s", c.kind, c.name)
		}
		if c.under == "" {
			if list.Parent.Kind != nil {
				t.Errorf("%s with %s lies under %s", c.kind, c.name, list.Parent.Kind.Spec.Name)
			}
			continue
		}
		if list.Parent.Kind == nil || list.Parent.Kind.Spec.Name != c.under {
			t.Fatalf("%s with %s lies under %v, want %s", c.kind, c.name, list.Parent.Kind, c.under)
		}
		if !list.IsMissing(nil) || list.IsMissing(understudy.Query{{Name: c.name, Value: "XX1"}}) {
			t.Errorf("%s lacks %s when it is given, or not when it is missing", c.kind, c.name)
		}
		fill := list.Parent.Fill([]string{"XX1"})
		if value, ok := fill(c.name); !ok || value != "XX1" {
			t.Errorf("%s of %s: %s is %q", c.kind, c.under, c.name, value)
		}
		if id := list.Parent.Id(fill); id != "XX1" {
			t.Errorf("%s of %s: the id is %q", c.kind, c.under, id)
		}
	}
	if list := s.ByName["calls"].FindList("nothing", nil); list != nil {
		t.Errorf("a slug that no list has means %s", list.Slug)
	}
}

func TestIDOpensAPageWhenAPathCanHoldIt(t *testing.T) {
	s := planned(t)
	for _, c := range []struct {
		kind, id string
		want     bool
	}{
		{"calls", "CA1", true}, {"calls", ".", false}, {"calls", "..", false}, {"calls", "CA1~CA2", false}, {"calls", "", false},
		{"participants", "CF1~CA1", true}, {"participants", "CF1", false}, {"calls", strings.Repeat("CA", 1<<20), false},
	} {
		if got := s.ByName[c.kind].CanOpen(c.id, nil); got != c.want {
			t.Errorf("%s %.40q opens: %t, want %t", c.kind, c.id, got, c.want)
		}
	}
	if id := s.SpellID(strings.ToLower(account)); id != account {
		t.Errorf("an id in small letters is spelt %s", id)
	}
	for text, want := range map[string]string{"+14155550123": "/twilio/number/+14155550123", "client:anna": "", "": ""} {
		if got := s.NumberHref(text); got != want {
			t.Errorf("the number %q is shown at %q, want %q", text, got, want)
		}
	}
}

func TestSourceNameIsPartOfAnAddress(t *testing.T) {
	for _, name := range []string{"", "-", "search", plan.JobsWord, "a/b", "a.b", "a b", "a?b"} {
		if _, err := plan.New(&spec.Source{Name: name, Spec: spectest.BuiltIn(t, "twilio")}); err == nil {
			t.Errorf("a source is named %q", name)
		}
	}
}
