// Tests of writes and of what becomes of records afterwards.
package slowapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"understudy/internal/slowapi/format"
)

func TestCallsLife(t *testing.T) {
	r := start(t, Options{Records: 40})
	form := url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Url": {"https://example.com/voice"}}
	made := r.write("POST", root+"/Calls.json", form, 201)
	for field, want := range (record{
		"status": "queued", "direction": "outbound-api", "to": "+15005550006", "to_formatted": "(500) 555-0006",
		"from": "+15005550001", "price": nil, "price_unit": "USD", "duration": nil, "start_time": nil, "end_time": nil,
		"date_created": nil, "date_updated": nil, "account_sid": mainSID, "parent_call_sid": nil,
	}) {
		if made[field] != want {
			t.Errorf("%s is %v, want %v", field, made[field], want)
		}
	}
	sid := made["sid"].(string)
	if first := r.page(root + "/Calls.json?PageSize=1").records[0]; first["sid"] != sid || first["date_created"] == nil {
		t.Errorf("the newest call is %v, created %v", first["sid"], first["date_created"])
	}
	if got := sids(r.page(root + "/Calls.json?To=%2B15005550006").records); !slices.Equal(got, []string{sid}) {
		t.Errorf("by its To: %v", got)
	}
	for _, step := range []struct{ status, price, duration any }{
		{"ringing", nil, nil}, {"in-progress", nil, nil}, {"completed", nil, "60"}, {"completed", "-0.01400", "60"}, {"completed", "-0.01400",
			"60"},
	} {
		r.control("/-/advance", `{"seconds":60}`, 200)
		now := r.one(root + "/Calls/" + sid + ".json")
		if now["status"] != step.status || now["price"] != step.price || now["duration"] != step.duration {
			t.Errorf("%v %v %v, want %v", now["status"], now["price"], now["duration"], step)
		}
	}
	now := r.one(root + "/Calls/" + sid + ".json")
	if now["start_time"] != "Mon, 01 Jun 2026 12:02:00 +0000" || now["end_time"] != "Mon, 01 Jun 2026 12:03:00 +0000" ||
		now["date_updated"] != "Mon, 01 Jun 2026 12:04:00 +0000" {
		t.Errorf("times: %v %v %v", now["start_time"], now["end_time"], now["date_updated"])
	}
	if got := sids(r.page(root + "/Calls.json?StartTime=2026-06-01T12:02:00Z").records); !slices.Equal(got, []string{sid}) {
		t.Errorf("by its StartTime: %v", got)
	}
	r.write("DELETE", root+"/Calls/"+sid+".json", nil, 204)
	r.write("DELETE", root+"/Calls/"+sid+".json", nil, 404)
	r.write("POST", root+"/Calls/"+sid+".json", form, 404)
	if got := r.page(root + "/Calls.json?To=%2B15005550006").records; len(got) != 0 {
		t.Error("a deleted call is still listed")
	}
}

func TestEveryRecordReachesItsEnd(t *testing.T) {
	r := start(t, Options{Records: 100})
	r.control("/-/advance", `{"calls":30,"messages":30}`, 200)
	for range 8 {
		r.control("/-/advance", `{"seconds":20}`, 200)
	}
	if got := r.control("/-/advance", `{"seconds":20}`, 200); !strings.Contains(got, `"moved":0`) {
		t.Errorf("after nine steps: %s", got)
	}
	for _, list := range []string{"/Calls.json", "/Messages.json"} {
		for _, one := range r.walk(root+list, nil) {
			switch status := one["status"].(string); status {
			case "completed", "received", "sent", "delivered", "undelivered", "read", "partially_delivered":
				if one["price"] == nil {
					t.Errorf("%v is %s and has no price", one["sid"], status)
				}
			case "busy", "no-answer", "failed", "canceled":
				if one["price"] != nil {
					t.Errorf("%v is %s and has a price", one["sid"], status)
				}
			default:
				t.Errorf("%v is still %s", one["sid"], status)
			}
		}
	}
}

func TestAdvanceMovesWhatIsNotFinal(t *testing.T) {
	r := start(t, Options{Records: 100})
	before := string(r.get(root + "/Calls.json?PageSize=1000"))
	if again := string(r.get(root + "/Calls.json?PageSize=1000")); again != before {
		t.Fatal("the world does not stand still")
	}
	live := 0
	for _, one := range r.page(root + "/Calls.json").records {
		if s := one["status"]; s == "queued" || s == "ringing" || s == "in-progress" {
			live++
		}
	}
	got := r.control("/-/advance", `{"calls":2,"messages":3,"seconds":3600}`, 200)
	if !strings.Contains(got, `"clock":"2026-06-01T13:00:00Z"`) || !strings.Contains(got, `"created":{"calls":2,"messages":3}`) || live == 0 {
		t.Errorf("%d live calls: %s", live, got)
	}
	p := r.page(root + "/Calls.json?PageSize=2")
	for _, one := range p.records {
		if one["date_created"] != "Mon, 01 Jun 2026 13:00:00 +0000" {
			t.Errorf("created %v", one["date_created"])
		}
	}
	for _, bad := range []string{``, `[]`, `{"calls":-1}`, `{"calls":1.5}`, `{"calls":100001}`, `{"seconds":-1}`, `{"seconds":1e12}`,
		`{"alerts":-1}`, `{"call":1}`, `{} {}`, `{"calls":"1"}`, `null x`} {
		if got := r.control("/-/advance", bad, 400); !strings.Contains(got, `{"error":"`) {
			t.Errorf("%s: %s", bad, got)
		}
	}
	if got := r.page(root + "/Calls.json?PageSize=2"); !slices.Equal(sids(got.records), sids(p.records)) {
		t.Error("a refused advance did something")
	}
	r.control("/-/advance", `{"conferences":0,"alerts":0}`, 200)
}

// TestLateRecordsAreFoundByTime moves records long after their creation, where
// windows of time do not look by themselves.
func TestLateRecordsAreFoundByTime(t *testing.T) {
	r := start(t, Options{Records: 1000})
	r.control("/-/advance", `{"calls":5,"seconds":60}`, 200)
	for range 5 {
		r.control("/-/advance", fmt.Sprintf(`{"seconds":%d}`, 5*86400), 200)
	}
	for _, key := range []string{"StartTime", "EndTime"} {
		field := fieldOf[key]
		all := r.walk(root+"/Calls.json?PageSize=1000", nil)
		for _, after := range []string{"2026-06-02", "2026-06-06T12:01:00Z", "2026-06-11T12:00:00Z"} {
			from, _ := format.ParseDate(after)
			var want []string
			for _, one := range all {
				if one[field] != nil && when(t, one[field]).Unix() >= from.From {
					want = append(want, one["sid"].(string))
				}
			}
			got := r.walk(root+"/Calls.json?PageSize=3&"+key+"%3E="+after, nil)
			if !slices.Equal(sids(got), want) || len(want) == 0 {
				t.Errorf("%s>=%s: %d, want %d", key, after, len(got), len(want))
			}
			if len(want) > 3 {
				p := r.page(root + "/Calls.json?PageSize=3&" + key + "%3E=" + after)
				if back := r.page(*r.page(*p.Next).Previous); !slices.Equal(sids(back.records), want[:3]) {
					t.Errorf("%s>=%s: back to %v, want %v", key, after, sids(back.records), want[:3])
				}
			}
		}
	}
}

func TestCallUpdates(t *testing.T) {
	r := start(t, Options{Records: 5})
	make := func() string {
		return root + "/Calls/" + r.write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}},
			201)["sid"].(string) + ".json"
	}
	queued := make()
	if got := r.write("POST", queued, url.Values{"Status": {"canceled"}}, 200); got["status"] != "canceled" || got["start_time"] != nil ||
		got["price"] != nil {
		t.Errorf("canceled: %v", got)
	}
	r.write("POST", queued, url.Values{"Status": {"completed"}}, 400)
	talking := make()
	r.control("/-/advance", `{}`, 200)
	r.control("/-/advance", `{"seconds":5}`, 200)
	r.write("POST", talking, url.Values{"Status": {"canceled"}}, 400)
	r.write("POST", talking, url.Values{"Url": {"https://example.com"}}, 200)
	r.write("POST", talking, url.Values{"Status": {"busy"}}, 400)
	r.control("/-/advance", `{"seconds":0,"calls":0}`, 200) // completes by itself
	hung := make()
	r.control("/-/advance", `{}`, 200)
	r.control("/-/advance", `{}`, 200)
	if got := r.write("POST", hung, url.Values{"Status": {"completed"}}, 200); got["status"] != "completed" || got["end_time"] == nil ||
		got["price"] != nil {
		t.Errorf("hung up: %v", got)
	}
	r.control("/-/advance", `{}`, 200)
	if got := r.one(hung); got["price"] == nil {
		t.Error("a call hung up has no price a step later")
	}
}

func TestRefusedWrites(t *testing.T) {
	r := start(t, Options{Records: 5})
	sms := root + "/Messages/" + sids(r.page(root + "/Messages.json?PageSize=20").records)[9] + ".json"
	number := root + "/IncomingPhoneNumbers/" + sids(r.page(root + "/IncomingPhoneNumbers.json").records)[0] + ".json"
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
		{root + "/Messages.json", url.Values{"To": {"+1500"}, "Body": {strings.Repeat("x", maxForm)}}, 413, 20413},
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
		status, body, _ := r.ask("POST", c.target, c.form)
		if status != c.status || !strings.Contains(string(body), fmt.Sprintf(`{"code":%d,`, c.code)) {
			t.Errorf("POST %s: %d %s, want %d %d", c.target, status, body, c.status, c.code)
		}
	}
}

func TestMessageWrites(t *testing.T) {
	r := start(t, Options{Records: 5})
	text := "שלום \"you\" <b>&</b>\n\\o/ 👍" + strings.Repeat("x", 100)
	made := r.write("POST", root+"/Messages.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Body": {text}}, 201)
	if made["body"] != text || made["status"] != "queued" || made["num_segments"] != "2" || made["date_sent"] != nil || made["price"] != nil ||
		made["num_media"] != "0" {
		t.Errorf("made: %v", made)
	}
	at := root + "/Messages/" + made["sid"].(string) + ".json"
	if got := r.write("POST", at, url.Values{"Body": {""}}, 200); got["body"] != "" || got["num_segments"] != "2" {
		t.Errorf("emptied: %v", got)
	}
	if got := r.write("POST", at, url.Values{"Status": {"canceled"}}, 200); got["status"] != "canceled" {
		t.Errorf("canceled: %v", got)
	}
	// One the seed made.
	old := root + "/Messages/" + sids(r.page(root + "/Messages.json").records)[9] + ".json"
	was := r.one(old)
	got := r.write("POST", old, url.Values{"Body": {""}}, 200)
	if got["body"] != "" || got["num_segments"] != was["num_segments"] || got["price"] != was["price"] ||
		got["date_updated"] == was["date_updated"] {
		t.Errorf("emptied: %v, was %v", got, was)
	}
	service := "MG" + strings.Repeat("a", 32)
	for form, want := range map[*url.Values]string{
		{"To": {"+1500"}, "MessagingServiceSid": {service}}:                            "accepted",
		{"To": {"+1500"}, "MessagingServiceSid": {service}, "ScheduleType": {"fixed"}}: "scheduled",
	} {
		got := r.write("POST", root+"/Messages.json", *form, 201)
		if got["status"] != want || got["messaging_service_sid"] != service || got["from"] != nil {
			t.Errorf("by a service: %v", got)
		}
	}
	media := r.write("POST", root+"/Messages.json", url.Values{"To": {"+1500"}, "MediaUrl": {"https://example.com/1",
		"https://example.com/2"}}, 201)
	if media["num_media"] != "2" || !strings.HasPrefix(media["sid"].(string), "MM") {
		t.Errorf("with media: %v", media)
	}
	r.get(root + "/Messages/" + media["sid"].(string) + ".json")
	r.write("DELETE", old, nil, 204)
	if status, _, _ := r.ask("GET", old, nil); status != 404 {
		t.Errorf("a deleted message: %d", status)
	}
}

func TestNumberAndAccountWrites(t *testing.T) {
	r := start(t, Options{Records: 5})
	made := r.write("POST", root+"/IncomingPhoneNumbers.json", url.Values{"PhoneNumber": {"+18005550100"},
		"VoiceUrl": {"https://example.com/v"}}, 201)
	if made["type"] != "toll-free" || made["friendly_name"] != "(800) 555-0100" || made["voice_url"] != "https://example.com/v" {
		t.Errorf("made: %v", made)
	}
	at := root + "/IncomingPhoneNumbers/" + made["sid"].(string) + ".json"
	got := r.write("POST", at, url.Values{"FriendlyName": {"Desk <7>"}, "VoiceCallerIdLookup": {"true"}, "SmsMethod": {"GET"}}, 200)
	if got["friendly_name"] != "Desk <7>" || got["voice_caller_id_lookup"] != true || got["sms_method"] != "GET" ||
		got["voice_url"] != made["voice_url"] {
		t.Errorf("updated: %v", got)
	}
	if p := r.page(root + "/IncomingPhoneNumbers/TollFree.json?FriendlyName=Desk%20%3C7%3E"); len(p.records) != 1 {
		t.Errorf("by its name: %d", len(p.records))
	}
	if got := r.write("POST", root+"/IncomingPhoneNumbers/Mobile.json", url.Values{"PhoneNumber": {"+12025550100"}},
		201); got["type"] != "mobile" {
		t.Errorf("to Mobile: %v", got["type"])
	}
	if got := r.write("POST", root+"/IncomingPhoneNumbers.json", url.Values{"AreaCode": {"503"}}, 201); !strings.HasPrefix(got["phone_num"+
		"ber"].(string), "+1503") {
		t.Errorf("by area: %v", got["phone_number"])
	}
	r.write("DELETE", at, nil, 204)
	if p := r.page(root + "/IncomingPhoneNumbers.json"); len(p.records) != 10 {
		t.Errorf("%d numbers, want 10", len(p.records))
	}

	account := r.write("POST", "/2010-04-01/Accounts.json", url.Values{"FriendlyName": {"Third"}}, 201)
	below := "/2010-04-01/Accounts/" + account["sid"].(string)
	r.write("POST", below+"/Calls.json", url.Values{"To": {"+1500"}, "From": {"+1501"}}, 201)
	if p := r.page(below + "/Calls.json"); len(p.records) != 1 {
		t.Errorf("%d calls in the new account", len(p.records))
	}
	if got := r.write("POST", below+".json", url.Values{"FriendlyName": {"3rd"}, "Status": {"closed"}}, 200); got["friendly_name"] != "3rd" ||
		got["status"] != "closed" {
		t.Errorf("updated: %v", got)
	}
	if p := r.page("/2010-04-01/Accounts.json?Status=closed&FriendlyName=3rd"); len(p.records) != 1 {
		t.Errorf("by its status: %d", len(p.records))
	}
}
