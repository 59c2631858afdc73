// Tests of what was set by hand: applications, keys, caller ids, addresses.
package kinds_test

import (
	"net/url"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/slowapitest"
)

func TestCards(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	for _, c := range []struct {
		list           string
		begin          int
		make, change   url.Values
		field, was, is string
	}{
		{"/Applications", 6, url.Values{"VoiceUrl": {"https://example.com/v"}}, url.Values{"VoiceMethod": {"GET"}}, "voice_method", "POST",
			"GET"},
		{"/Keys", 3, url.Values{}, url.Values{"FriendlyName": {"new"}}, "friendly_name", "", "new"},
		{"/SigningKeys", 2, url.Values{"FriendlyName": {"old"}}, url.Values{"FriendlyName": {""}}, "friendly_name", "old", ""},
		{"/Addresses", 4, url.Values{"CustomerName": {"c"}, "Street": {"s"}, "City": {"t"}, "Region": {"r"}, "PostalCode": {"p"},
			"IsoCountry": {"US"}}, url.Values{"City": {"Ürümqi"}}, "city", "t", "Ürümqi"},
	} {
		all := r.Walk(root+c.list+".json?PageSize=2", nil)
		if len(all) != c.begin {
			t.Errorf("%s begins with %d, want %d", c.list, len(all), c.begin)
		}
		made := r.Write("POST", root+c.list+".json", c.make, 201)
		at := root + c.list + "/" + made["sid"].(string) + ".json"
		if got := r.One(at); got[c.field] != c.was || c.list != "/Keys" && c.list != "/SigningKeys" && got["uri"] != at {
			t.Errorf("%s: made %v", c.list, got)
		}
		if first := r.Page(root + c.list + ".json").Records.SIDs()[0]; first != made["sid"] {
			t.Errorf("%s: the newest is %v, not %v", c.list, first, made["sid"])
		}
		r.Control("/-/advance", `{"seconds":10}`, 200)
		if got := r.Write("POST", at, c.change, 200); got[c.field] != c.is || got["date_updated"] == got["date_created"] {
			t.Errorf("%s: changed %v", c.list, got)
		}
		// One that the seed made takes changes too.
		old := root + c.list + "/" + all[0]["sid"].(string) + ".json"
		if got := r.Write("POST", old, c.change, 200); c.is != "" && got[c.field] != c.is {
			t.Errorf("%s: changed %v", c.list, got)
		}
		r.Write("DELETE", at, nil, 204)
		r.Write("DELETE", old, nil, 204)
		r.Write("POST", at, c.change, 404)
		if left := r.Page(root + c.list + ".json").Records; len(left) != c.begin-1 {
			t.Errorf("%s: %d left", c.list, len(left))
		}
	}
}

// TestSecretsAreTold: once, in the answer to the creation, and never again.
func TestSecretsAreTold(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	told := map[string]bool{}
	for _, list := range []string{"/Keys", "/SigningKeys"} {
		for range 2 {
			made := r.Write("POST", root+list+".json", url.Values{"FriendlyName": {"x"}}, 201)
			secret, _ := made["secret"].(string)
			if len(secret) != 32 || told[secret] {
				t.Fatalf("%s: secret %q", list, secret)
			}
			told[secret] = true
			at := root + list + "/" + made["sid"].(string) + ".json"
			for _, target := range []string{at, root + list + ".json"} {
				if body := string(r.Get(target)); strings.Contains(body, "secret") || strings.Contains(body, secret) {
					t.Errorf("%s: %s", target, body)
				}
			}
			if got := r.Write("POST", at, url.Values{"FriendlyName": {"y"}}, 200); got["secret"] != nil {
				t.Errorf("an update tells it: %v", got)
			}
		}
	}
	token := r.Write("POST", root+"/Tokens.json", url.Values{"Ttl": {"60"}}, 201)
	password, _ := token["password"].(string)
	checktest.MustTrue(t, len(password) >= 32, "token: len(password) is %v, want >= 32", len(password))
	checktest.Equal(t, token["ttl"], "60", `token: token["ttl"]`)
	checktest.Contains(t, token["ice_servers"].([]any)[1].(record)["credential"].(string), password,
		`token: token["ice_servers"].([]any)[1].(record)["credential"].(string)`)
	r.Write("POST", root+"/Tokens.json", url.Values{"Ttl": {"0"}}, 400)
	r.Write("GET", root+"/Tokens.json", nil, 405)
}

func TestCallerIDs(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	asked := r.Write("POST", root+"/OutgoingCallerIds.json", url.Values{"PhoneNumber": {"+15005550006"}, "FriendlyName": {"Mine"}}, 200)
	checktest.MustEqual(t, len(asked["validation_code"].(string)), 6,
		`asked: len(asked["validation_code"].(string))`)
	checktest.Equal(t, asked["phone_number"], "+15005550006", `asked: asked["phone_number"]`)
	checktest.True(t, format.IsSID(asked["call_sid"].(string), "CA"),
		`asked: format.IsSID(asked["call_sid"].(string), "CA") is false`)
	checktest.True(t, asked["sid"] == nil, `asked: asked["sid"] is %v`, asked["sid"])
	all := r.Page(root + "/OutgoingCallerIds.json").Records
	checktest.MustEqual(t, len(all), 6, "len(all)")
	checktest.MustEqual(t, all[0]["phone_number"], "+15005550006", `all[0]["phone_number"]`)
	checktest.MustEqual(t, all[0]["friendly_name"], "Mine", `all[0]["friendly_name"]`)
	at := all[0]["uri"].(string)
	if got := r.Write("POST", at, url.Values{"FriendlyName": {""}, "PhoneNumber": {"+1999"}}, 200); got["friendly_name"] != "(500) 555-0006" ||
		got["phone_number"] != "+15005550006" {
		t.Errorf("renamed: %v", got)
	}
	if got := r.Page(root + "/OutgoingCallerIds.json?FriendlyName=%28500%29%20555-0006").Records; len(got) != 1 {
		t.Errorf("by the name nobody gave: %d", len(got))
	}
	r.Write("POST", root+"/OutgoingCallerIds.json", url.Values{"PhoneNumber": {"12"}}, 400)
	// An owned number's SID begins with PN too, and is none of these.
	number := r.Page(root + "/IncomingPhoneNumbers.json").Records.SIDs()[0]
	r.Write("GET", root+"/OutgoingCallerIds/"+number+".json", nil, 404)
	r.Write("DELETE", at, nil, 204)
}

func TestRefusedCards(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	for list, form := range map[string]url.Values{
		"/Applications": {"VoiceMethod": {"PUT"}}, "/Keys": {"FriendlyName": {strings.Repeat("é", 65)}},
		"/SigningKeys": {"FriendlyName": {strings.Repeat("x", 65)}}, "/Addresses": {"CustomerName": {"c"}},
	} {
		if got := r.Write("POST", root+list+".json", form, 400); got["code"] == nil {
			t.Errorf("%s: %v", list, got)
		}
	}
}

func TestDependentNumbers(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	rows := 0
	for _, address := range r.Page(root + "/Addresses.json").Records {
		sid := address["sid"].(string)
		for _, one := range r.Walk(root+"/Addresses/"+sid+"/DependentPhoneNumbers.json?PageSize=1", nil) {
			rows++
			if number := r.One(one["uri"].(string)); number["address_sid"] != sid || number["phone_number"] != one["phone_number"] {
				t.Errorf("%v depends on %v, not %s", number["sid"], number["address_sid"], sid)
			}
		}
	}
	if rows != 2 {
		t.Errorf("%d numbers depend on an address, want 2", rows)
	}
	address := root + "/Addresses/" + r.Page(root + "/Addresses.json").Records.SIDs()[0]
	number := root + "/IncomingPhoneNumbers/" + r.Page(root + "/IncomingPhoneNumbers.json").Records.SIDs()[0] + ".json"
	r.Write("POST", number, url.Values{"EmergencyAddressSid": {address[len(address)-34:]}}, 200)
	if got := r.Page(address + "/DependentPhoneNumbers.json").Records; len(got) != 1 ||
		got[0]["emergency_address_sid"] != address[len(address)-34:] {
		t.Errorf("after a write: %v", got)
	}
	r.Write("POST", address+"/DependentPhoneNumbers.json", url.Values{"PhoneNumber": {"+18005550100"}}, 405)
}
