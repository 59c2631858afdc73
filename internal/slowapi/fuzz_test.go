// Fuzzers: whatever comes, the answer is JSON of the right shape.
package slowapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

func FuzzTarget(f *testing.F) {
	s, err := slowapi.New(slowapi.Options{Records: 200})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	w := s.World()
	token := string(w.AppendSID(nil, w.Sequences[0][kinds.Calls], 77))
	for _, seed := range []string{
		root + "/Calls.json?StartTime%3E=2026-05-01&EndTime<=2026&Status=busy&PageSize=3&Page=2",
		root + "/Calls.json?Page=1&PageToken=PA" + token,
		root + "/Calls.json?Page=1&PageToken=PB" + token + "&ParentCallSid=" + token,
		root + "/Calls/" + token + ".json",
		root + "/Messages.json?DateSent=06/11/2019 22:05:25 MST&To&From=",
		root + "/IncomingPhoneNumbers/TollFree.json?PhoneNumber=+1***&Beta=true&Origin=hosted",
		root + "/Recordings.json?CallSid=" + token + "&IncludeSoftDeleted=true&DateCreated%3E=2026",
		root + "/Calls/" + token + "/Recordings.json?DateCreated=2026-05",
		root + "/Recordings/" + string(w.AppendSID(nil, w.Sequences[0][kinds.Recordings], 7)) + ".mp3?RequestedChannels=2",
		root + "/Conferences.json?DateUpdated%3C=2026-05-20&FriendlyName=Board&Status=completed",
		root + "/Conferences/" + string(w.AppendSID(nil, w.Sequences[0][kinds.Conferences], 7)) + "/Participants.json?Muted=true&Pag" +
			"e=1&Pa" +
			"geToken=PACP" + token[2:],
		root + "/Messages/" + token + "/Media/ME.json", root + "/Transcriptions.json?Page=3",
		root + "/Notifications.json?Log=1&MessageDate>=2026-05-01&PageSize=2",
		root + "/Calls/" + token + "/Events.json?Page=1&PageToken=APMQ%3D%3D", root + "/Calls/" + token + "/Notifications.json",
		root + "/Queues/" + string(w.AppendSID(nil, w.Sequences[0][kinds.Queues], 1)) + "/Members/Front.json",
		root + "/Addresses.json?EmergencyEnabled=true&IsoCountry=US&CustomerName=x", root + "/Addresses/AD/DependentPhoneNumbers.json",
		root + "/Usage/Records/Daily.json?Category=sms&StartDate=-30days&EndDate=+1day&IncludeSubaccounts=true&PageToken=APMg==",
		root + "/AvailablePhoneNumbers/US/Local.json?Contains=+4*5$&AreaCode=415&NearLatLong=37.8,-122.4&Distance=9&InRegion=ca&Beta=false",
		root + "/AvailablePhoneNumbers.json", root + "/AvailablePhoneNumbers/DE.json", root + "/Balance.json", root + "/Keys.json",
		root + "/Tokens.json",
		"/v1/Alerts?LogLevel=error&StartDate=2026-05-20&EndDate=2026-06-01T00:00:00Z&ResourceSid=" + token,
		"/v1/Events?EventType=account.updated&SourceIpAddress=203.0.113.9&PageSize=3&Page=1&PageToken=PBAE" + token[2:],
		"/2010-04-01/Accounts.json?FriendlyName=%zz;a=b&&=&=x",
		"/2010-04-01//Accounts/.json", "//", "/%2e%2e/%00", "?", "/-/stats",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		at, err := url.ParseRequestURI(target)
		if err != nil || strings.HasPrefix(at.Path, "/-/") {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL, r.RequestURI = at, target
		r.SetBasicAuth(mainSID, "slowapitoken")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if sort := w.Header().Get("Content-Type"); w.Code == 307 || strings.HasPrefix(sort, "audio/") {
			return // a sound, or the way to a picture
		}
		checkAnswer(t, w.Code, w.Body.Bytes())
	})
}

// checkAnswer wants a page, a record or an error of Twilio's shape.
func checkAnswer(t *testing.T, status int, body []byte) {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil || !utf8.Valid(body) {
		t.Fatalf("%d %q: %v", status, body, err)
	}
	switch status {
	case 200:
		if all["uri"] == nil && all["url"] == nil && all["meta"] == nil && all["balance"] == nil && all["sid"] == nil {
			t.Fatalf("no uri: %s", body)
		}
		if first := all["first_page_uri"]; first != nil {
			checkURI(t, first)
			checkURI(t, all["uri"])
		}
	case 400, 404, 405:
		checktest.MustTrue(t, all["code"] != nil, `all["code"] is nil; body %s`, body)
		checktest.MustTrue(t, all["message"] != nil, `all["message"] is nil; body %s`, body)
		checktest.MustTrue(t, all["more_info"] != nil, `all["more_info"] is nil; body %s`, body)
		checktest.MustTrue(t, all["status"] != nil, `all["status"] is nil; body %s`, body)
	default:
		t.Fatalf("%d %s", status, body)
	}
}

// checkURI wants a URI whose query reads back to itself.
func checkURI(t *testing.T, raw json.RawMessage) {
	t.Helper()
	var uri string
	if err := json.Unmarshal(raw, &uri); err != nil {
		t.Fatal(err)
	}
	if _, err := url.ParseRequestURI(uri); err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
}

// FuzzJournal replays any line: the world refuses it or goes on without harm.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"op":"advance","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","new":{"calls":2}}`))
	f.Add([]byte(`{"op":"create","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"messages","fields":{"To":"+1",` +
		`"MediaUrl":"x"}}`))
	f.Add([]byte(`{"op":"update","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"calls","index":19,"cut":["completed",` +
		`"completed"]}`))
	f.Add([]byte(`{"op":"delete","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"incoming_phone_numbers","index":3}`))
	f.Add([]byte(`{"op":"advance","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","new":{"conferences":2}}`))
	f.Add([]byte(`{"op":"update","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"participants","index":1,` +
		`"fields":{"Muted":"x","CallSidToCoach":"CA"}}`))
	f.Add([]byte(`{"op":"update","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"recordings","index":3,"cut":["absent"]}`))
	f.Add([]byte(`{"op":"delete","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"media","index":160}`))
	f.Add([]byte(`{"op":"advance","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","new":{"alerts":2}}`))
	f.Add([]byte(`{"op":"create","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"queues","fields":{"MaxSize":"x"}}`))
	f.Add([]byte(`{"op":"update","at":"2026-06-01T13:00:00Z","wall":"2026-06-01T13:00:00Z","kind":"addresses","index":3,` +
		`"fields":{"City":"x"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := slowapi.New(slowapi.Options{Records: 20})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var e world.Entry
		if format.DecodeStrict(line, &e) != nil || e.Created["calls"] > 1000 || e.Created["messages"] > 1000 || e.Created["conferences"] > 1000 ||
			e.Created["alerts"] > 1000 {
			return
		}
		if _, err := s.World().Apply(e); err != nil {
			return
		}
		on := httptest.NewRecorder()
		s.ServeHTTP(on, httptest.NewRequest("POST", "/-/advance", strings.NewReader(`{"calls":1,"seconds":5}`)))
		if on.Code != 200 {
			return // its time lies too far away to go on from
		}
		for _, list := range []string{"/2010-04-01/Accounts.json", root + "/Calls.json", root + "/Messages.json",
			root + "/IncomingPhoneNumbers.json", root + "/Conferences.json", root + "/Recordings.json?IncludeSoftDeleted=true",
			root + "/Notifications.json", root + "/Queues.json", root + "/Applications.json", root + "/Keys.json", root + "/OutgoingCallerIds.json",
			root + "/Addresses.json",
			root + "/Usage/Records/Today.json", root + "/Balance.json", "/v1/Alerts", "/v1/Events"} {
			if got := slowapitest.Serve(s, list); got.Code != 200 || !json.Valid(got.Body.Bytes()) {
				t.Fatalf("%s: %d %s", list, got.Code, got.Body)
			}
		}
	})
}
