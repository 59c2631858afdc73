// Tests of conferences and of who takes part in them.
package kinds_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

func TestConferences(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	all := r.Walk(root+"/Conferences.json", nil)
	if len(all) != 20 {
		t.Fatalf("%d conferences, want 20", len(all))
	}
	for i, one := range all {
		want := "completed"
		if i < 4 {
			want = []string{"init", "init", "in-progress", "in-progress"}[i]
		}
		list := r.Page(one["subresource_uris"].(record)["participants"].(string)).Records
		if one["status"] != want || (one["reason_conference_ended"] == nil) != (i < 4) {
			t.Errorf("conference %d is %v, ended by %v, want %s", i, one["status"], one["reason_conference_ended"], want)
		}
		if over := want == "completed"; over && len(list) != 0 || !over && (len(list) < 2 || len(list) > 5) {
			t.Errorf("%s, and %d participants", want, len(list))
		}
		for _, who := range list {
			call := r.One(root + "/Calls/" + who["call_sid"].(string) + ".json")
			early := slowapitest.ParseTime(t, call["date_created"]).Before(slowapitest.ParseTime(t, one["date_created"]))
			checktest.Equal(t, who["conference_sid"], one["sid"], `participant: who["conference_sid"]`)
			checktest.MustTrue(t, call["start_time"] != nil, `participant: call["start_time"] is nil`)
			checktest.True(t, !early, "participant: early is true")
		}
		if call, ended := one["call_sid_ending_conference"].(string); ended {
			r.Get(root + "/Calls/" + call + ".json")
		}
	}
}

func TestConferencesLife(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 100})
	if got := r.Control("/-/advance", `{"conferences":3,"seconds":60}`, 200); !strings.Contains(got, `"created":{"conferences":3}`) {
		t.Error(got)
	}
	new := r.Page(root + "/Conferences.json?PageSize=3").Records
	callers := map[any]int{}
	for _, one := range new {
		if one["status"] != "init" || one["date_created"] != "Mon, 01 Jun 2026 12:01:00 +0000" {
			t.Errorf("new: %v %v", one["status"], one["date_created"])
		}
		who := r.Page(root + "/Conferences/" + one["sid"].(string) + "/Participants.json").Records
		if len(who) < 2 {
			t.Errorf("%d participants in a new conference", len(who))
		}
		for _, p := range who {
			callers[p["call_sid"]]++
			if p["start_conference_on_enter"] != false {
				t.Error("a host is there before the conference began")
			}
		}
	}
	for call, n := range callers {
		if n != 1 {
			t.Errorf("call %v takes part in %d conferences", call, n)
		}
	}
	at := root + "/Conferences/" + new[0]["sid"].(string)
	// More calls at the same second change nothing for those who are there.
	before := string(r.Get(at + "/Participants.json"))
	r.Write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}}, 201)
	if string(r.Get(at+"/Participants.json")) != before {
		t.Error("a new call changed who takes part in a conference")
	}
	r.Control("/-/advance", `{"seconds":60}`, 200)
	hosts := 0
	for _, p := range r.Page(at + "/Participants.json").Records {
		if p["start_conference_on_enter"] == true {
			hosts++
		}
	}
	if got := r.One(at + ".json"); got["status"] != "in-progress" || hosts != 1 {
		t.Errorf("a minute later: %v, %d hosts", got["status"], hosts)
	}
	r.Write("POST", at+".json", url.Values{"AnnounceUrl": {"https://example.com"}}, 200)
	got := r.Write("POST", at+".json", url.Values{"Status": {"completed"}}, 200)
	checktest.Equal(t, got["status"], "completed", `ended: got["status"]`)
	checktest.Equal(t, got["reason_conference_ended"], kinds.EndedViaAPI, `ended: got["reason_conference_ended"]`)
	checktest.MustTrue(t, got["call_sid_ending_conference"] == nil, `ended: got["call_sid_ending_conference"] is %v`,
		got["call_sid_ending_conference"])
	checktest.Equal(t, got["date_updated"], "Mon, 01 Jun 2026 12:02:00 +0000", `ended: got["date_updated"]`)
	if left := r.Page(at + "/Participants.json").Records; len(left) != 0 {
		t.Errorf("%d participants after the end", len(left))
	}
	for _, form := range []url.Values{{"Status": {"completed"}}, {"Status": {"in-progress"}}} {
		if status, body, _ := r.Ask("POST", at+".json", form); status != 400 || !strings.Contains(string(body), `"code":20001`) {
			t.Errorf("%v: %d %s", form, status, body)
		}
	}
	if got := r.Page(root + "/Conferences.json?DateUpdated=2026-06-01&Status=completed").Records; !slices.Contains(got.SIDs(),
		new[0]["sid"].(string)) {
		t.Error("not found by when it was updated")
	}
	r.Control("/-/advance", `{"seconds":864000}`, 200)
	r.Write("POST", root+"/Conferences/"+new[1]["sid"].(string)+".json", url.Values{"Status": {"completed"}}, 400)
	if got := r.Page(root + "/Conferences.json?DateUpdated%3E=2026-06-05").Records.SIDs(); !slices.Contains(got, new[1]["sid"].(string)) {
		t.Error("one that ended ten days later is not found by that")
	}
}

func TestParticipants(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 2000})
	var at string
	var who record
	for _, room := range r.Page(root + "/Conferences.json?PageSize=4").Records {
		for _, one := range r.Page(root + "/Conferences/" + room["sid"].(string) + "/Participants.json").Records {
			if one["label"] != nil {
				at, who = root+"/Conferences/"+room["sid"].(string)+"/Participants/", one
			}
		}
	}
	if who == nil {
		t.Fatal("nobody has a label")
	}
	call, label := at+who["call_sid"].(string)+".json", at+who["label"].(string)+".json"
	if string(r.Get(call)) != string(r.Get(label)) || !strings.Contains(string(r.Get(strings.TrimSuffix(at, "/")+".json")),
		string(r.Get(call))) {
		t.Error("by label, by SID and in the list they differ")
	}
	for _, form := range []url.Values{{"Muted": {"true"}, "Hold": {"False"}}, {"Muted": {"false"}, "Hold": {"true"}}} {
		got := r.Write("POST", label, form, 200)
		if got["muted"] != (form.Get("Muted") == "true") || got["hold"] != (form.Get("Hold") == "true") {
			t.Errorf("%v: %v", form, got)
		}
	}
	got := r.Write("POST", call, url.Values{"Coaching": {"true"}, "CallSidToCoach": {who["call_sid"].(string)}}, 200)
	if got["coaching"] != true || got["call_sid_to_coach"] != who["call_sid"] {
		t.Errorf("coaching: %v", got)
	}
	if got := r.Write("POST", call, url.Values{"Coaching": {"false"}}, 200); got["call_sid_to_coach"] != nil {
		t.Errorf("not coaching: %v", got)
	}
	for _, form := range []url.Values{{"Muted": {"maybe"}}, {"CallSidToCoach": {"CA1"}}} {
		r.Write("POST", call, form, 400)
	}
	list := strings.TrimSuffix(at, "/") + ".json"
	n := len(r.Page(list).Records)
	r.Write("DELETE", call, nil, 204)
	for _, gone := range []string{call, label, at + "nobody.json", at + ".json"} {
		if status, _, _ := r.Ask("GET", gone, nil); status != 404 {
			t.Errorf("%s: %d", gone, status)
		}
	}
	if left := r.Page(list).Records; len(left) != n-1 {
		t.Errorf("%d of %d are left", len(left), n)
	}
}

// TestParticipantsOfTheLongGone looks at every conference, with the quirk that
// keeps who took part.
func TestParticipantsOfTheLongGone(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 3000, Quirks: []string{world.ParticipantsKept}})
	labels, sizes := 0, map[int]int{}
	for _, room := range r.Walk(root+"/Conferences.json?PageSize=1000", nil) {
		list := r.Page(root + "/Conferences/" + room["sid"].(string) + "/Participants.json").Records
		sizes[len(list)]++
		seen := map[any]bool{}
		for _, one := range list {
			if seen[one["call_sid"]] {
				t.Fatalf("%v takes part twice", one["call_sid"])
			}
			seen[one["call_sid"]] = true
			if one["label"] != nil {
				labels++
			}
			if (one["status"] == "complete") != (room["status"] == "completed") {
				t.Fatalf("%v in a conference that is %v", one["status"], room["status"])
			}
		}
		if end := room["call_sid_ending_conference"]; end != nil && !seen[end] {
			t.Errorf("%v ended a conference without taking part", end)
		}
	}
	checktest.MustEqual(t, len(sizes), 4, "sizes: len(sizes)")
	checktest.True(t, sizes[2] != 0, "sizes: sizes[2] is 0")
	checktest.True(t, sizes[5] != 0, "sizes: sizes[5] is 0")
	checktest.True(t, labels != 0, "sizes: labels is 0")
}
