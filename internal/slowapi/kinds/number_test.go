// Tests of owned numbers, and of accounts.
package kinds_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestNumberPatterns(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	all := r.Page(root + "/IncomingPhoneNumbers.json").Records
	for pattern, like := range map[string]string{
		"+1415": `^\+1415`, "415*": `415\d`, "+1***22": `\+1\d\d\d22`, "*******": `\d{7}`, "888": `888`, "+44*0": `\+44\d0`, "++": `\+\+`,
	} {
		var want []string
		for _, one := range all {
			if regexp.MustCompile(like).MatchString(one["phone_number"].(string)) {
				want = append(want, one["sid"].(string))
			}
		}
		got := r.Page(root + "/IncomingPhoneNumbers.json?PhoneNumber=" + url.QueryEscape(pattern)).Records.SIDs()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
	sorts := 0
	for _, path := range []string{"Local", "Mobile", "TollFree"} {
		sorts += len(r.Page(root + "/IncomingPhoneNumbers/" + path + ".json").Records)
	}
	if sorts != 8 || len(all) != 8 {
		t.Errorf("%d numbers in the three lists, %d in all, want 8", sorts, len(all))
	}
}

func TestNumberAndAccountWrites(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	made := r.Write("POST", root+"/IncomingPhoneNumbers.json", url.Values{"PhoneNumber": {"+18005550100"},
		"VoiceUrl": {"https://example.com/v"}}, 201)
	checktest.Equal(t, made["type"], "toll-free", `made: made["type"]`)
	checktest.Equal(t, made["friendly_name"], "(800) 555-0100", `made: made["friendly_name"]`)
	checktest.Equal(t, made["voice_url"], "https://example.com/v", `made: made["voice_url"]`)
	at := root + "/IncomingPhoneNumbers/" + made["sid"].(string) + ".json"
	got := r.Write("POST", at, url.Values{"FriendlyName": {"Desk <7>"}, "VoiceCallerIdLookup": {"true"}, "SmsMethod": {"GET"}}, 200)
	checktest.Equal(t, got["friendly_name"], "Desk <7>", `updated: got["friendly_name"]`)
	checktest.Equal(t, got["voice_caller_id_lookup"], true, `updated: got["voice_caller_id_lookup"]`)
	checktest.Equal(t, got["sms_method"], "GET", `updated: got["sms_method"]`)
	checktest.Equal(t, got["voice_url"], made["voice_url"], `updated: got["voice_url"]`)
	if p := r.Page(root + "/IncomingPhoneNumbers/TollFree.json?FriendlyName=Desk%20%3C7%3E"); len(p.Records) != 1 {
		t.Errorf("by its name: %d", len(p.Records))
	}
	if got := r.Write("POST", root+"/IncomingPhoneNumbers/Mobile.json", url.Values{"PhoneNumber": {"+12025550100"}},
		201); got["type"] != "mobile" {
		t.Errorf("to Mobile: %v", got["type"])
	}
	if got := r.Write("POST", root+"/IncomingPhoneNumbers.json", url.Values{"AreaCode": {"503"}}, 201); !strings.HasPrefix(got["phone_num"+
		"ber"].(string), "+1503") {
		t.Errorf("by area: %v", got["phone_number"])
	}
	r.Write("DELETE", at, nil, 204)
	if p := r.Page(root + "/IncomingPhoneNumbers.json"); len(p.Records) != 10 {
		t.Errorf("%d numbers, want 10", len(p.Records))
	}

	account := r.Write("POST", "/2010-04-01/Accounts.json", url.Values{"FriendlyName": {"Third"}}, 201)
	below := "/2010-04-01/Accounts/" + account["sid"].(string)
	r.Write("POST", below+"/Calls.json", url.Values{"To": {"+1500"}, "From": {"+1501"}}, 201)
	if p := r.Page(below + "/Calls.json"); len(p.Records) != 1 {
		t.Errorf("%d calls in the new account", len(p.Records))
	}
	if got := r.Write("POST", below+".json", url.Values{"FriendlyName": {"3rd"}, "Status": {"closed"}}, 200); got["friendly_name"] != "3rd" ||
		got["status"] != "closed" {
		t.Errorf("updated: %v", got)
	}
	if p := r.Page("/2010-04-01/Accounts.json?Status=closed&FriendlyName=3rd"); len(p.Records) != 1 {
		t.Errorf("by its status: %d", len(p.Records))
	}
}
