// Tests of routes: paths, methods, accounts.
package slowapi_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
)

func TestPathsAndMethods(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	call := r.Page(root + "/Calls.json").Records.SIDs()[0]
	upper := "CA" + strings.ToUpper(call[2:])
	for _, c := range []struct {
		method, target string
		status, code   int
	}{
		{"GET", "/", 404, 20404},
		{"GET", "/2010-04-01", 404, 20404},
		{"GET", root, 404, 20404},
		{"GET", root + "/Calls", 404, 20404},
		{"GET", root + "/Calls/" + call, 404, 20404},
		{"GET", root + "/Calls/" + upper + ".json", 404, 20404},
		{"GET", root + "/Calls/CAffffffffffffffffffffffffffffffff.json", 404, 20404},
		{"GET", root + "/Calls/SM" + call[2:] + ".json", 404, 20404},
		{"GET", root + "/Messages/" + call + ".json", 404, 20404},
		{"GET", root + "/Calls/.json", 404, 20404},
		{"GET", root + "/Calls/" + call + "/Payments.json", 404, 20404},
		{"GET", root + "/Nothing.json", 404, 20404},
		{"GET", "/2010-04-01/Accounts/AC00000000000000000000000000000002/Calls.json", 404, 20404},
		{"PUT", root + "/Calls.json", 405, 20405},
		{"DELETE", root + "/Calls.json", 405, 20405},
		{"DELETE", root + ".json", 405, 20405},
		{"PATCH", root + "/Calls/" + call + ".json", 405, 20405},
		{"GE", root + "/Calls.json", 405, 20405},
	} {
		status, body, header := r.Ask(c.method, c.target, nil)
		var e struct {
			Code     int    `json:"code"`
			Message  string `json:"message"`
			MoreInfo string `json:"more_info"`
			Status   int    `json:"status"`
		}
		err := format.DecodeStrict(body, &e)
		checktest.MustNoError(t, err, "%s %s; body %s", c.method, c.target, body)
		checktest.Equal(t, status, c.status, "%s %s: status; body %s", c.method, c.target, body)
		checktest.Equal(t, e.Code, c.code, "%s %s: e.Code; body %s", c.method, c.target, body)
		checktest.Equal(t, e.Status, status, "%s %s: e.Status; body %s", c.method, c.target, body)
		checktest.Equal(t, header.Get("Content-Type"), "application/json",
			`%s %s: header.Get("Content-Type"); body %s`, c.method, c.target, body)
		if c.status == 404 && e.Message != "The requested resource "+c.target+" was not found" {
			t.Errorf("%s: %s", c.target, e.Message)
		}
		if c.status == 405 && header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.target)
		}
	}
}

func TestAccountBelow(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	all := r.Page("/2010-04-01/Accounts.json").Records
	below := all[0]["sid"].(string)
	checktest.MustEqual(t, len(all), 2, "accounts: len(all)")
	checktest.MustEqual(t, all[1]["sid"], mainSID, `accounts: all[1]["sid"]`)
	checktest.MustEqual(t, all[0]["owner_account_sid"], mainSID, `accounts: all[0]["owner_account_sid"]`)
	checktest.MustTrue(t, all[0]["auth_token"] != "slowapitoken", `accounts: all[0]["auth_token"] is "slowapitoken"`)
	list := "/2010-04-01/Accounts/" + below + "/Messages.json"
	if p := r.Page(list); len(p.Records) != 0 {
		t.Errorf("%d messages below", len(p.Records))
	}
	made := r.Write("POST", list, url.Values{"To": {"+15005550006"}, "Body": {"hi"}}, 201)
	if made["account_sid"] != below {
		t.Errorf("made in %v", made["account_sid"])
	}
	if got := r.Page(list).Records.SIDs(); len(got) != 1 || got[0] != made["sid"] {
		t.Errorf("below: %v", got)
	}
	if status, _, _ := r.Ask("GET", root+"/Messages/"+made["sid"].(string)+".json", nil); status != 404 {
		t.Errorf("a message of the account below is found above: %d", status)
	}
}

// TestAccountsBelowHaveEverything: each list of an account below the main one
// is there, most are empty, and none of its paths fails.
func TestAccountsBelowHaveEverything(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 300})
	below := r.Page("/2010-04-01/Accounts.json").Records.SIDs()[0]
	for _, one := range slowapi.Routes() {
		if one.Parent != nil || one.Kind == kinds.Accounts || strings.Contains(one.Pattern, "/*/") && strings.Count(one.Pattern, "*") > 1 {
			continue
		}
		target := "/2010-04-01/" + strings.Replace(one.Pattern, "*", below, 1) + ".json"
		want := 200
		if strings.Contains(target, "*") {
			target, want = strings.Replace(target, "*", "XX00000000000000000000000000000000", 1), 404
		} else if one.Allow == "POST" {
			want = 405
		}
		if status, body, _ := r.Ask("GET", target, nil); status != want || !json.Valid(body) {
			t.Errorf("%s: %d %s, want %d", target, status, body, want)
		}
	}
	for _, list := range []string{"/Notifications", "/Queues", "/Applications", "/OutgoingCallerIds", "/Keys", "/SigningKeys", "/Addresses"} {
		if got := r.Page("/2010-04-01/Accounts/" + below + list + ".json").Records; len(got) != 0 {
			t.Errorf("%s of the account below: %d", list, len(got))
		}
	}
	for list, form := range map[string]url.Values{"/Applications": {}, "/Keys": {}, "/Queues": {"FriendlyName": {"q"}},
		"/OutgoingCallerIds": {"PhoneNumber": {"+15005550006"}}} {
		status, body, _ := r.Ask("POST", "/2010-04-01/Accounts/"+below+list+".json", form)
		if status/100 != 2 || len(r.Page("/2010-04-01/Accounts/"+below+list+".json").Records) != 1 {
			t.Errorf("%s: %d %s", list, status, body)
		}
	}
	if got := r.One("/2010-04-01/Accounts/" + below + "/Balance.json"); got["balance"] != "0" {
		t.Errorf("balance %v", got)
	}
}
