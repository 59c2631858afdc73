// Levels: which rule decides, and what a policy may say.

package access

import (
	"errors"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

func TestLevels(t *testing.T) {
	for _, test := range []struct {
		name  string
		rules map[string]string
		want  map[string]Level // by kind.field
	}{
		{"nothing covered", map[string]string{}, map[string]Level{"calls.sid": Hide, "calls.from": Hide}},
		{"everything", map[string]string{"*": "see"}, map[string]Level{"calls.sid": See, "calls.from": See, "calls.unheard_of": Hide,
			"accounts.auth_token": Hide}},
		{"class over *", map[string]string{"*": "see", "phone": "last4"},
			map[string]Level{"calls.sid": See, "calls.from": Last4, "calls.from_formatted": Last4}},
		{"class opens under *", map[string]string{"*": "hide", "price": "see"}, map[string]Level{"calls.price": See, "calls.sid": Hide}},
		{"kind over *", map[string]string{"*": "see", "messages": "hide"}, map[string]Level{"messages.sid": Hide, "calls.sid": See}},
		{"kind alone", map[string]string{"calls": "see"}, map[string]Level{"calls.from": See, "messages.sid": Hide}},
		{"a kind does not open a class", map[string]string{"*": "see", "phone": "last4", "calls": "see"},
			map[string]Level{"calls.from": Last4, "calls.sid": See}},
		{"a class does not open a kind", map[string]string{"phone": "see", "calls": "hide"},
			map[string]Level{"calls.from": Hide, "messages.from": See}},
		{"the stricter of class and kind", map[string]string{"phone": "see", "calls": "last4"},
			map[string]Level{"calls.from": Last4, "calls.sid": Last4}},
		{"field over class", map[string]string{"*": "see", "phone": "hide", "calls.to": "see"},
			map[string]Level{"calls.to": See, "calls.to_formatted": Hide, "calls.from": Hide}},
		{"field over kind", map[string]string{"calls": "hide", "calls.sid": "see"}, map[string]Level{"calls.sid": See, "calls.status": Hide}},
		{"field hides", map[string]string{"*": "see", "calls.price": "hide"}, map[string]Level{"calls.price": Hide, "messages.price": See}},
		{"derived follows", map[string]string{"*": "see", "calls.from": "hide"},
			map[string]Level{"calls.from_formatted": Hide, "calls.to_formatted": See}},
		{"derived is not opened by name", map[string]string{"phone": "last4", "calls.from_formatted": "see"},
			map[string]Level{"calls.from_formatted": Last4}},
		{"what tells of a field follows (L13)", map[string]string{"*": "see", "body": "hide"},
			map[string]Level{"messages.price": Hide, "messages.num_segments": Hide, "messages.num_media": See, "calls.price": See}},
		{"what tells of a field is opened by name", map[string]string{"*": "see", "body": "hide", "messages.price": "see"},
			map[string]Level{"messages.price": See, "messages.num_segments": Hide}},
		{"URLs follow numbers (L12)", map[string]string{"*": "see", "phone": "last4"},
			map[string]Level{"incoming_phone_numbers.voice_url": Last4, "applications.sms_url": Last4}},
		{"URLs follow numbers of their kind", map[string]string{"incoming_phone_numbers": "see", "phone": "hide"},
			map[string]Level{"incoming_phone_numbers.voice_url": Hide, "applications.sms_url": Hide}},
		{"URLs are opened by class or name", map[string]string{"*": "see", "phone": "last4", "url": "see"},
			map[string]Level{"incoming_phone_numbers.voice_url": See}},
		{"nested under kind", map[string]string{"messages": "see"}, map[string]Level{"messages.subresource_uris": See,
			"messages.subresource_uris.media": See}},
		{"nested named", map[string]string{"messages": "see", "messages.subresource_uris.media": "hide"},
			map[string]Level{"messages.subresource_uris.media": Hide, "messages.subresource_uris.feedback": See}},
		{"an object covers what is in it", map[string]string{"messages": "see", "messages.subresource_uris": "hide"},
			map[string]Level{"messages.subresource_uris.media": Hide}},
		{"named inside a hidden object", map[string]string{"messages.sid": "see", "messages.subresource_uris": "hide",
			"messages.subresource_uris.media": "see"}, map[string]Level{"messages.subresource_uris.media": See, "messages.subresource_uris": Hide}},
		{"country and hash", map[string]string{"*": "see", "phone": "country", "body": "hash"}, map[string]Level{"calls.from": Country,
			"messages.body": Hash, "messages.sid": See}},
		{"what is derived from a hash or a country is hidden", map[string]string{"*": "see", "phone": "hash", "calls.to": "country",
			"calls.from_formatted": "see"}, map[string]Level{"calls.from": Hash, "calls.from_formatted": Hide, "calls.to_formatted": Hide}},
		{"what tells of a hash is hidden", map[string]string{"*": "see", "body": "hash", "messages.price": "see"},
			map[string]Level{"messages.num_segments": Hide, "messages.price": See}},
		{"URLs beside hashes are hidden", map[string]string{"*": "see", "phone": "hash"},
			map[string]Level{"incoming_phone_numbers.voice_url": Hide, "incoming_phone_numbers.phone_number": Hash}},
		{"URLs beside countries are hidden", map[string]string{"*": "see", "phone": "country"},
			map[string]Level{"applications.sms_url": Hide}},
		{"URLs have their own hash", map[string]string{"*": "see", "phone": "hash", "url": "hash"},
			map[string]Level{"incoming_phone_numbers.voice_url": Hash}},
		{"hash and last4 have nothing in common", map[string]string{"phone": "hash", "calls": "last4"},
			map[string]Level{"calls.from": Hide, "calls.sid": Last4, "messages.from": Hash}},
		{"country and last4 have nothing in common", map[string]string{"phone": "last4", "calls": "country"},
			map[string]Level{"calls.from": Hide, "calls.sid": Country}},
		{"hash and hash", map[string]string{"phone": "hash", "calls": "hash"}, map[string]Level{"calls.from": Hash}},
		{"secrets never", map[string]string{"*": "see", "accounts": "see", "accounts.auth_token": "see", "secret": "hide"},
			map[string]Level{"accounts.auth_token": Hide, "accounts.sid": See}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := gate(t, Roles{"r": {"twilio": test.rules}})
			for name, want := range test.want {
				kind, field, _ := strings.Cut(name, ".")
				if got := g.Level(as("r"), "twilio", kind, field); got != want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
		})
	}
}

func TestLevelsOfNestedAndDerived(t *testing.T) {
	for _, test := range []struct {
		name  string
		rules map[string]string
		want  map[string]Level
	}{
		{"chain of derived", map[string]string{"*": "see", "phone": "last4"},
			map[string]Level{"phone_pretty": Last4, "phone_link": Last4, "links": Last4, "links.self": Last4}},
		{"chain cut in the middle", map[string]string{"*": "see", "people.phone_pretty": "hide"},
			map[string]Level{"phone": See, "phone_link": Hide, "links.self": See}},
		{"class of the object around", map[string]string{"*": "see", "name": "hide"},
			map[string]Level{"profile.first": Hide, "profile.card": Hide, "profile.card.number": Hide}},
		{"own class first", map[string]string{"*": "see", "name": "see", "phone": "hide"},
			map[string]Level{"profile.card.number": Hide, "profile.first": See}},
		{"nearest named object", map[string]string{"people.profile": "see", "people.profile.card": "hide"},
			map[string]Level{"profile.first": See, "profile.card.number": Hide}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := gate(t, Roles{"r": {"forge": test.rules}})
			for field, want := range test.want {
				if got := g.Level(as("r"), "forge", "people", field); got != want {
					t.Errorf("%s is %v, want %v", field, got, want)
				}
			}
		})
	}
}

func TestDerivedInACircleHides(t *testing.T) {
	s := readSpec(t, []byte("name: x\nhosts: [{url: \"https://x.example\"}]\nauth: {style: none}\nkinds: [{name: k, lists: [{path: /k, "+
		"key: k}], fields: [{name: a, from: b}, {name: b, from: a}, {name: c}]}]"))
	g, err := New(map[string]*spec.Spec{"x": s}, Roles{"r": {"x": {"*": "see"}}})
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]Level{"a": Hide, "b": Hide, "c": See} {
		if got := g.Level(as("r"), "x", "k", field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
}

func TestWhoSeesAnything(t *testing.T) {
	g := gate(t, Roles{"support": support, "half": {"twilio": {"calls": "see"}}, "nothing": {"twilio": {"*": "hide"}}})
	with := func(c understudy.Caller, change func(*understudy.Caller)) understudy.Caller { change(&c); return c }
	for _, test := range []struct {
		name         string
		c            understudy.Caller
		source, kind string
		want         bool
	}{
		{"all", as("all"), "twilio", "calls", true},
		{"all, unknown source", as("all"), "nowhere", "calls", false},
		{"support", as("support"), "twilio", "messages", true},
		{"support, a source the role does not name", as("support"), "forge", "people", false},
		{"half sees its kind", as("half"), "twilio", "calls", true},
		{"half, another kind", as("half"), "twilio", "messages", false},
		{"all hidden", as("nothing"), "twilio", "calls", false},
		{"no role", as(""), "twilio", "calls", false},
		{"unknown role", as("nobody"), "twilio", "calls", false},
		{"no grant", understudy.Caller{Name: "x"}, "twilio", "calls", false},
		{"credential of the source", with(as("all"), func(c *understudy.Caller) { c.Source = "twilio" }), "twilio", "calls", true},
		{"credential of another source", with(as("all"), func(c *understudy.Caller) { c.Source = "forge" }), "twilio", "calls", false},
		{"expired", with(as("all"), func(c *understudy.Caller) { c.Grant.Expires = start }), "twilio", "calls", false},
		{"not yet expired", with(as("all"), func(c *understudy.Caller) { c.Grant.Expires = start.Add(time.Second) }), "twilio", "calls", true},
		{"unknown kind", as("support"), "twilio", "letters", false},
	} {
		if got := g.CanSee(test.c, test.source, test.kind); got != test.want {
			t.Errorf("%s: sees is %v, want %v", test.name, got, test.want)
		}
		_, err := g.MakeView(test.c, page(test.source, test.kind, true, 200, `{}`))
		if (err == nil) != test.want || err != nil && !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s: view error is %v", test.name, err)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	specs := map[string]*spec.Spec{"twilio": twilio(t)}
	for want, roles := range map[string]Roles{
		`the level "lats4" is not known; write see, last4, country, hash or hide; did you mean "last4"?`: {"r": {"twilio": {"*": "lats4"}}},
		`the level "" is not known`:                                   {"r": {"twilio": {"*": ""}}},
		`no source "twillio"; did you mean "twilio"?`:                 {"r": {"twillio": {"*": "see"}}},
		`the subject "phones" is not known`:                           {"r": {"twilio": {"phones": "see"}}},
		`; did you mean "phone"?`:                                     {"r": {"twilio": {"phones": "see"}}},
		`did you mean "calls"?`:                                       {"r": {"twilio": {"callz": "see"}}},
		`unknown field "prise" of calls; did you mean "calls.price"?`: {"r": {"twilio": {"calls.prise": "see"}}},
		`roles.r.twilio: `:                                            {"r": {"twilio": {"calls.": "see"}}},
		`secrets are shown to nobody`:                                 {"r": {"twilio": {"secret": "see"}}},
		`"all" is built in`:                                           {"all": {"twilio": {"*": "see"}}},
		`a role cannot be called ""`:                                  {"": {"twilio": {"*": "see"}}},
	} {
		_, err := New(specs, roles)
		checktest.MustTrue(t, err != nil, "%v: err is nil", roles)
		checktest.Contains(t, err.Error(), want, "%v: err.Error()", roles)
		checktest.True(t, strings.HasPrefix(err.Error(), "access: "), "%v: err.Error() is %q", roles, err.Error())
	}
}

func TestKnown(t *testing.T) {
	g := gate(t, Roles{"support": support})
	for _, role := range []string{"all", "support", ""} {
		if err := g.CheckRole(role); err != nil {
			t.Errorf("%q: %v", role, err)
		}
	}
	if err := g.CheckRole("suport"); err == nil || !strings.Contains(err.Error(), `did you mean "support"?`) {
		t.Errorf("got %v", err)
	}
}

func TestPolicyVersion(t *testing.T) {
	a, b := gate(t, Roles{"r": support}), gate(t, Roles{"r": support})
	if a.Policy() != b.Policy() || len(a.Policy()) != 16 {
		t.Errorf("equal policies are %s and %s", a.Policy(), b.Policy())
	}
	c := gate(t, Roles{"r": {"twilio": {"*": "see", "phone": "see", "body": "hide"}}})
	if a.Policy() == c.Policy() {
		t.Error("another level, the same policy version")
	}
	if d := gate(t, nil); d.Policy() == a.Policy() || d.Policy() == "" {
		t.Error("no roles, the same policy version")
	}
}
