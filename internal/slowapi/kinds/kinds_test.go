// Tests of all kinds: their states, their rows, what they refuse.
package kinds_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

const (
	root    = slowapitest.Root
	mainSID = slowapitest.Account
)

type record = slowapitest.Record

func TestEveryStatusOccurs(t *testing.T) {
	t.Parallel()
	r := slowapitest.Start(t, slowapi.Options{Records: 3000})
	for _, status := range []string{"queued", "ringing", "in-progress", "completed", "busy", "failed", "no-answer", "canceled"} {
		if p := r.Page(root + "/Calls.json?PageSize=1&Status=" + status); len(p.Records) != 1 || p.Records[0]["status"] != status {
			t.Errorf("no call is %s", status)
		}
	}
	seen := map[any]bool{}
	for _, one := range r.Walk(root+"/Messages.json?PageSize=1000", nil) {
		seen[one["status"]] = true
	}
	for _, status := range []string{"queued", "sent", "failed", "delivered", "undelivered", "received", "read", "partially_delivered",
		"canceled"} {
		if !seen[status] {
			t.Errorf("no message is %s; there are %v", status, seen)
		}
	}
}

func TestInstancesAreRows(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 60})
	for _, list := range []string{"/Calls", "/Messages", "/IncomingPhoneNumbers"} {
		all := string(r.Get(root + list + ".json"))
		for _, sid := range r.Page(root + list + ".json").Records.SIDs() {
			if row := string(r.Get(root + list + "/" + sid + ".json")); !strings.Contains(all, row) {
				t.Fatalf("%s is not the row of its list", sid)
			}
		}
	}
	if all := string(r.Get("/2010-04-01/Accounts.json")); !strings.Contains(all, string(r.Get(root+".json"))) || !strings.Contains(all,
		`"auth_token":"slowapitoken"`) {
		t.Error("the account is not the row of its list, or carries no auth_token")
	}
}

func TestRefusedWrites(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	sms := root + "/Messages/" + r.Page(root + "/Messages.json?PageSize=20").Records.SIDs()[9] + ".json"
	number := root + "/IncomingPhoneNumbers/" + r.Page(root + "/IncomingPhoneNumbers.json").Records.SIDs()[0] + ".json"
	for _, c := range []struct {
		target string
		form   url.Values
		status int
		code   int
	}{
		{root + "/Calls.json", url.Values{"From": {"+1500"}}, 400, 21201},
		{root + "/Calls.json", url.Values{"To": {"+1500"}}, 400, 21213},
		{root + "/Calls.json", url.Values{"To": {"+1500x"}, "From": {"+1500"}}, 400, 21211},
		{root + "/Calls.json", url.Values{"To": {"+1500"}, "From": {"+"}}, 400, 21212},
		{root + "/Messages.json", url.Values{"Body": {"x"}}, 400, 21604},
		{root + "/Messages.json", url.Values{"To": {"+abc"}}, 400, 21211},
		{root + "/Messages.json", url.Values{"To": {"+1500"}, "Body": {strings.Repeat("é", 1601)}}, 400, 21617},
		{root + "/Messages.json", url.Values{"To": {"+1500"}, "MessagingServiceSid": {"MG1"}}, 400, 21701},
		{root + "/Messages.json", url.Values{"To": {"+1500"}, "Body": {strings.Repeat("x", 64<<10)}}, 413, 20413},
		{sms, url.Values{"Body": {"other"}}, 400, 20001},
		{sms, url.Values{"Status": {"sent"}}, 400, 20001},
		{sms, url.Values{"Status": {"canceled"}}, 409, 30409},
		{root + "/IncomingPhoneNumbers.json", url.Values{"PhoneNumber": {"123"}}, 400, 21421},
		{root + "/IncomingPhoneNumbers.json", url.Values{"AreaCode": {"12"}}, 400, 21421},
		{number, url.Values{"VoiceMethod": {"PUT"}}, 400, 20001},
		{number, url.Values{"SmsApplicationSid": {"AP1"}}, 400, 20001},
		{number, url.Values{"FriendlyName": {strings.Repeat("x", 65)}}, 400, 21451},
		{root + ".json", url.Values{"Status": {"closed"}}, 400, 20001},
	} {
		status, body, _ := r.Ask("POST", c.target, c.form)
		if status != c.status || !strings.Contains(string(body), fmt.Sprintf(`{"code":%d,`, c.code)) {
			t.Errorf("POST %s: %d %s, want %d %d", c.target, status, body, c.status, c.code)
		}
	}
}
