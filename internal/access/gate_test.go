// Gate: what may be asked and sent.

package access

import (
	"errors"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/spec"
)

func TestRead(t *testing.T) {
	roles := Roles{
		"support": {"twilio": support["twilio"], "forge": {"*": "see", "phone": "last4"}},
		"open":    {"twilio": {"*": "see"}, "forge": {"*": "see"}},
		"nocalls": {"twilio": {"*": "see", "calls": "hide"}},
	}
	g := gate(t, roles)
	const base = "/2010-04-01/Accounts/" + account
	for _, test := range []struct {
		role, source, path, query string
		want                      string // part of the refusal, "" = passes
	}{
		{"all", "twilio", base + "/Calls.json", "To=%2B1415&Unknown=1", ""},
		{"support", "twilio", base + "/Calls.json", "", ""},
		{"support", "twilio", base + "/Calls.json", "PageSize=5&Page=1&PageToken=PACA1", ""},
		{"support", "twilio", base + "/Calls.json", "Status=busy&StartTime%3E=2026-01-01", ""},
		{"support", "twilio", base + "/Calls.json", "StartTime>=2026-01-01", ""},
		{"support", "twilio", base + "/Calls.json", "To=%2B14155551234", "parameter To: it reads to"},
		{"support", "twilio", base + "/Calls.json", "%54o=%2B14155551234", "parameter To"},
		{"support", "twilio", base + "/Calls.json", "Status=busy&From=1", "parameter From"},
		{"support", "twilio", base + "/Calls.json", "From", "parameter From"},
		{"support", "twilio", base + "/Calls.json", "to=x", "parameter to: it could reveal"},
		{"support", "twilio", base + "/Calls.json", "Nonsense=x", "could reveal hidden fields"},
		{"support", "twilio", base + "/Calls/CA1.json", "", ""},
		{"support", "twilio", base + "/Calls/CA1.json", "To=1", "parameter To"},
		{"support", "twilio", base + "/IncomingPhoneNumbers.json", "PhoneNumber=415*", "parameter PhoneNumber"},
		{"support", "twilio", base + "/Calls.json", "understudy.wait=1", ""},
		{"open", "twilio", base + "/Calls.json", "To=%2B14155551234", ""},
		{"open", "twilio", base + "/Calls.json", "Nonsense=x", "could reveal hidden fields"},
		{"nocalls", "twilio", base + "/Calls.json", "", "can't see calls"},
		{"nocalls", "twilio", base + "/Calls/CA1.json", "", "can't see calls"},
		{"nocalls", "twilio", base + "/Messages.json", "", ""},
		{"nocalls", "forge", "/people", "", "can't see anything of forge"},
		{"support", "forge", "/people", "pretty=x", "parameter pretty"},
		{"support", "forge", "/people", "odd=x", "reads fields that the role can't see"},
		{"open", "forge", "/people", "odd=x", ""},
		{"support", "forge", "/people", "tag=x&status=y&after=z&per_page=3", ""},
		{"all", "twilio", base + "/SIP/Domains.json", "", "can't read this path"},
		{"support", "twilio", base + "/SIP/Domains.json", "", "can't read this path"},
		{"", "twilio", base + "/Calls.json", "", "has no role"},
	} {
		s := g.specs[test.source]
		err := g.CheckRead(as(test.role), target(t, s, test.source, test.path, test.query))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s %s?%s: %v", test.role, test.path, test.query, err)
		case test.want != "" && (!errors.Is(err, understudy.ErrForbidden) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s %s?%s: got %v, want %q", test.role, test.path, test.query, err, test.want)
		}
	}
}

func TestReadTellsNothingByExistence(t *testing.T) {
	g := gate(t, Roles{"nocalls": {"twilio": {"*": "see", "calls": "hide"}}})
	s := g.specs["twilio"]
	a := g.CheckRead(as("nocalls"), target(t, s, "twilio", "/2010-04-01/Accounts/"+account+"/Calls/CA1.json", ""))
	b := g.CheckRead(as("nocalls"), target(t, s, "twilio", "/2010-04-01/Accounts/"+account+"/Calls/CA2.json", ""))
	if a.Error() != b.Error() {
		t.Errorf("%v differs from %v", a, b)
	}
}

func TestWrite(t *testing.T) {
	g := gate(t, Roles{"support": support})
	s := g.specs["twilio"]
	const base = "/2010-04-01/Accounts/" + account
	post := understudy.Allow{Method: "POST", Path: "/2010-04-01/Accounts/*/Messages.json"}
	queues := understudy.Allow{Method: "GET", Path: "/2010-04-01/Accounts/*/Queues.json"}
	for _, test := range []struct {
		role, method, path string
		allow              []understudy.Allow
		want               bool
	}{
		{"all", "POST", base + "/Messages.json", nil, false},
		{"all", "POST", base + "/Messages.json", []understudy.Allow{post}, true},
		{"support", "POST", base + "/Messages.json", []understudy.Allow{post}, true},
		{"", "POST", base + "/Messages.json", []understudy.Allow{post}, false},
		{"nobody", "POST", base + "/Messages.json", []understudy.Allow{post}, false},
		{"all", "DELETE", base + "/Messages.json", []understudy.Allow{post}, false},
		{"all", "post", base + "/Messages.json", []understudy.Allow{post}, false},
		{"all", "POST", base + "/%4Dessages.json", []understudy.Allow{post}, true},
		{"all", "POST", base + "/Messages.json/x", []understudy.Allow{post}, false},
		{"all", "POST", base + "/x/Messages.json", []understudy.Allow{post}, false},
		{"all", "GET", base + "/Queues.json", []understudy.Allow{queues}, true},
		{"all", "HEAD", base + "/Queues.json", []understudy.Allow{queues}, true},
		{"all", "POST", base + "/Queues.json", []understudy.Allow{queues}, false},
		{"all", "GET", base + "/Calls.json", nil, true},
		{"all", "PUT", base + "/Calls.json", nil, false},
	} {
		err := g.CheckWrite(as(test.role, test.allow...), target(t, s, "twilio", test.path, ""), test.method)
		if (err == nil) != test.want || err != nil && !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%q %s %s: %v, want %v", test.role, test.method, test.path, err, test.want)
		}
	}
}

// A GraphQL document gives a hidden field any name, so that a role that does not see
// everything may not send one, whatever its grant allows.
func TestGraphQLNeedsTheRoleAll(t *testing.T) {
	s := forge(t)
	s.GraphQL, s.PassThrough = "/graphql", []string{"/about"}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	g, err := NewWith(Options{Specs: map[string]*spec.Spec{"forge": s}, Now: func() time.Time { return start }, Roles: Roles{
		"masked": {"forge": {"*": "see", "body": "hide"}}, "named": {"forge": {"*": "see"}}}})
	if err != nil {
		t.Fatal(err)
	}
	post := understudy.Allow{Method: "POST", Path: "/graphql"}
	for _, test := range []struct {
		role, method, path string
		allow              []understudy.Allow
		want               string // in the refusal; "": there is none
	}{
		{"all", "GET", "/graphql", nil, ""},
		{"all", "POST", "/graphql", nil, "allow list"},
		{"all", "POST", "/graphql", []understudy.Allow{post}, ""},
		{"masked", "GET", "/graphql", nil, "your role (masked) can't use GraphQL"},
		{"masked", "POST", "/graphql", []understudy.Allow{post}, "your role (masked) can't use GraphQL"},
		{"named", "POST", "/%67raphql", []understudy.Allow{post}, "your role (named) can't use GraphQL"},
		{"all", "GET", "/about", nil, ""},
		{"all", "POST", "/about", nil, "allow list"},
		{"masked", "GET", "/about", nil, "can't read this path"},
		{"all", "GET", "/other", nil, "can't read this path"},
	} {
		err := g.CheckWrite(as(test.role, test.allow...), target(t, s, "forge", test.path, ""), test.method)
		if (err == nil) != (test.want == "") {
			t.Errorf("%s %s %s: %v, want %q", test.role, test.method, test.path, err, test.want)
			continue
		}
		if err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s %s: %v, want %q", test.role, test.method, test.path, err, test.want)
		}
	}
}

func TestErrorShape(t *testing.T) {
	s := twilio(t)
	for _, test := range []struct {
		f    Failure
		want string
	}{
		{Failure{Word: Unauthorized, Status: 401}, `{"code":20003,"message":"Authenticate",` +
			`"more_info":"https://www.twilio.com/docs/errors/20003","status":401}`},
		{Failure{Word: NotFound, Status: 404, Path: `/{status}/"x"{message}`},
			`{"code":20404,"message":"The requested resource /{status}/\"x\"{message} was not found",` +
				`"more_info":"https://www.twilio.com/docs/errors/20404","status":404}`},
		{Failure{Word: Server, Status: 504, Message: "outcome\nunknown"},
			`{"code":20500,"message":"outcome\nunknown","more_info":"https://www.twilio.com/docs/errors/20500","status":504}`},
		{Failure{Word: "unheard of", Status: 418}, `{"code":418,"message":"I'm a teapot","more_info":"https://www.twilio.com/docs/errors/418",` +
			`"status":418}`},
	} {
		body, contentType := Error(s, test.f)
		if string(body) != test.want || contentType != "application/json" {
			t.Errorf("got %s, want %s", body, test.want)
		}
	}
	body, contentType := Error(&spec.Spec{}, Failure{Word: Forbidden, Status: 403})
	if string(body) != `{"code":403,"message":"Forbidden","status":403}` || contentType != "application/json" {
		t.Errorf("a spec that says nothing: %s", body)
	}
	words := &spec.Spec{Errors: spec.Errors{
		Template: `{"error":{"code":{code},"message":{message}}}`, Codes: map[string]string{NotFound: `resource "missing"`, Limited: "29"},
		Meanings: map[string]string{"card_declined": "The card was declined"},
	}}
	shape := newErrorShape(words)
	for of, want := range map[string]string{
		`{"error":{"code":"card_declined"}}`:        `"card_declined"`,
		`{"error":{"code":"resource \"missing\""}}`: `"resource \"missing\""`,
		`{"error":{"code":"john_smith"}}`:           "", // it may be a record's
		`{"error":{"code":402}}`:                    "402",
		`{"error":{"code":15005550001}}`:            "",
		`{"error":{"code":4.5}}`:                    "",
		`{"error":{}}`:                              "",
	} {
		if got := shape.read([]byte(of)); got != want {
			t.Errorf("%s: code %s, want %s", of, got, want)
		}
	}
	for word, want := range map[string]string{
		NotFound: `{"error":{"code":"resource \"missing\"","message":"Forbidden"}}`, Limited: `{"error":{"code":29,"message":"Forbidden"}}`,
		Server: `{"error":{"code":403,"message":"Forbidden"}}`,
	} {
		if body, _ := Error(words, Failure{Word: word, Status: 403}); string(body) != want {
			t.Errorf("%s: %s, want %s", word, body, want)
		}
	}
}
