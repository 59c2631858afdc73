// Tests of recordings and transcriptions: what they are of, and their shapes.
package kinds_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

func TestRecordingsOfCallsAndConferences(t *testing.T) {
	t.Parallel()
	r := slowapitest.Start(t, slowapi.Options{Records: 415})
	all := r.Walk(root+"/Recordings.json?PageSize=1000", nil)
	byCall, byRoom, statuses := map[string][]string{}, map[string][]string{}, map[any]int{}
	for _, one := range all {
		sid := one["sid"].(string)
		byCall[one["call_sid"].(string)] = append(byCall[one["call_sid"].(string)], sid)
		if room, of := one["conference_sid"].(string); of {
			byRoom[room] = append(byRoom[room], sid)
		}
		statuses[one["status"]]++
		if one["media_url"] != r.Web.URL+strings.TrimSuffix(one["uri"].(string), ".json") {
			t.Fatalf("media_url %v", one["media_url"])
		}
		if done := one["status"] == "completed"; done != (one["duration"] != nil) {
			t.Errorf("%v lasts %v", one["status"], one["duration"])
		}
	}
	checktest.MustEqual(t, len(all), 83, "%d recordings of %d conferences: len(all)", len(all), len(byRoom))
	checktest.MustEqual(t, len(byRoom), 20, "%d recordings of %d conferences: len(byRoom)", len(all), len(byRoom))
	checktest.True(t, statuses["in-progress"] != 0, `%d recordings of %d conferences: statuses["in-progress"] is 0`,
		len(all), len(byRoom))
	checktest.True(t, statuses["processing"] != 0, `%d recordings of %d conferences: statuses["processing"] is 0`,
		len(all), len(byRoom))
	checktest.True(t, statuses["completed"] >= 70,
		`%d recordings of %d conferences: statuses["completed"] is %v, want >= 70`, len(all), len(byRoom),
		statuses["completed"])
	agree(r, "/Calls", "CallSid", byCall)
	agree(r, "/Conferences", "ConferenceSid", byRoom)
}

// agree wants each record's list, and the filter for it, to show what the list
// of all recordings says.
func agree(r slowapitest.API, list, filter string, want map[string][]string) {
	r.T.Helper()
	for _, owner := range r.Walk(root+list+".json?PageSize=1000", nil).SIDs() {
		below := r.Walk(root+list+"/"+owner+"/Recordings.json?PageSize=1", nil)
		narrowed := r.Page(root + "/Recordings.json?" + filter + "=" + owner).Records.SIDs()
		if !slices.Equal(below.SIDs(), want[owner]) || !slices.Equal(narrowed, want[owner]) {
			r.T.Errorf("%s %s: %v below it, %v by filter, want %v", list, owner, below.SIDs(), narrowed, want[owner])
		}
		for _, one := range below {
			if again := r.One(one["uri"].(string)); !maps.EqualFunc(again, one, func(a, b any) bool { return a == b }) {
				r.T.Errorf("%v is not the row of its list", one["uri"])
			}
		}
	}
}

func TestRecordingShapes(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	for _, alone := range r.Page(root + "/Recordings.json?PageSize=60").Records[40:] {
		sid := alone["sid"].(string)
		for path, differ := range map[string][2][]string{ // what is missing below, and what is added
			"/Calls/" + alone["call_sid"].(string): {{"media_url", "subresource_uris"}, {"track"}},
		} {
			below := r.One(root + path + "/Recordings/" + sid + ".json")
			for name, value := range alone {
				got, there := below[name]
				switch {
				case slices.Contains(differ[0], name):
					if there {
						t.Errorf("%s has %s", path, name)
					}
				case name == "price" && value != nil:
					if number, _ := json.Marshal(got); "-0.0"+strings.TrimPrefix(string(number), "-0.0") != string(number) ||
						!strings.HasPrefix(value.(string), string(number)) {
						t.Errorf("price %v alone, %v below", value, got)
					}
				case name == "uri":
					if got != root+path+"/Recordings/"+sid+".json" {
						t.Errorf("uri %v", got)
					}
				case got != value:
					t.Errorf("%s: %s is %v, and %v alone", path, name, got, value)
				}
			}
			for _, name := range differ[1] {
				if below[name] == nil {
					t.Errorf("%s has no %s", path, name)
				}
			}
		}
		if room, of := alone["conference_sid"].(string); of {
			below := r.One(root + "/Conferences/" + room + "/Recordings/" + sid + ".json")
			checktest.MustEqual(t, len(below), len(alone)-2, "below a conference: len(below)")
			checktest.Equal(t, below["price"], alone["price"], `below a conference: below["price"]`)
			checktest.True(t, below["media_url"] == nil, `below a conference: below["media_url"] is %v`,
				below["media_url"])
		}
		other := r.Page(root + "/Conferences.json").Records[19]["sid"].(string)
		if status, _, _ := r.Ask("GET", root+"/Conferences/"+other+"/Recordings/"+sid+".json", nil); (status == 200) != (alone["conference_s"+
			"id"] == other) {
			t.Errorf("%s is found below another's conference: %d", sid, status)
		}
	}
}

func TestRecordingsStayInSightForAWhile(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	before := r.Walk(root+"/Recordings.json", nil).SIDs()
	gone := before[40]
	at := root + "/Recordings/" + gone
	uri := r.One(at + ".json")["call_sid"].(string)
	r.Control("/-/advance", `{"seconds":100}`, 200)
	r.Write("DELETE", root+"/Calls/"+uri+"/Recordings/"+gone+".json", nil, 204)
	r.Write("DELETE", at+".json", nil, 404)
	for _, path := range []string{at + ".json", at + ".json?IncludeSoftDeleted=false", at + ".wav?IncludeSoftDeleted=true", at + ".mp3", at} {
		if status, _, _ := r.Ask("GET", path, nil); status != 404 {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	one := r.One(at + ".json?IncludeSoftDeleted=True")
	if one["status"] != "deleted" || one["date_updated"] != "Mon, 01 Jun 2026 12:01:40 +0000" {
		t.Errorf("deleted: %v", one)
	}
	if got := r.Walk(root+"/Recordings.json?PageSize=7", nil).SIDs(); slices.Contains(got, gone) || len(got) != 79 {
		t.Errorf("%d are listed", len(got))
	}
	if got := r.Walk(root+"/Recordings.json?PageSize=7&IncludeSoftDeleted=true", nil).SIDs(); !slices.Equal(got, before) {
		t.Errorf("%d are listed with those deleted", len(got))
	}
	if status, _, _ := r.Ask("GET", root+"/Recordings.json?IncludeSoftDeleted=perhaps", nil); status != 400 {
		t.Errorf("perhaps: %d", status)
	}
	r.Control("/-/advance", `{"seconds":3456000}`, 200)
	if got := r.Walk(root+"/Recordings.json?IncludeSoftDeleted=true", nil).SIDs(); !slices.Contains(got, gone) {
		t.Error("forgotten on the fortieth day")
	}
	r.Control("/-/advance", `{"seconds":1}`, 200)
	if got := r.Walk(root+"/Recordings.json?IncludeSoftDeleted=true", nil).SIDs(); slices.Contains(got, gone) {
		t.Error("still in sight after forty days")
	}
	if status, _, _ := r.Ask("GET", at+".json?IncludeSoftDeleted=true", nil); status != 404 {
		t.Errorf("after forty days: %d", status)
	}
}

func TestRecordingsEndWithWhatTheyAreOf(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	live := 0
	for _, room := range r.Page(root + "/Conferences.json?Status=in-progress").Records[:1] {
		list := root + "/Conferences/" + room["sid"].(string) + "/Recordings.json"
		for _, one := range r.Page(list).Records {
			live++
			checktest.Equal(t, one["status"], "in-progress", `of a slowapitest.API conference: one["status"]`)
			checktest.MustTrue(t, one["duration"] == nil, `of a slowapitest.API conference: one["duration"] is %v`,
				one["duration"])
			checktest.Equal(t, one["date_updated"], one["date_created"],
				`of a slowapitest.API conference: one["date_updated"]`)
			if status, _, _ := r.Ask("GET", strings.TrimSuffix(one["uri"].(string), ".json"), nil); status != 404 {
				t.Errorf("to be heard already: %d", status)
			}
		}
		r.Write("POST", root+"/Conferences/"+room["sid"].(string)+".json", map[string][]string{"Status": {"completed"}}, 200)
		for range 4 {
			r.Control("/-/advance", `{"seconds":60}`, 200)
		}
		for _, one := range r.Page(list).Records {
			checktest.Equal(t, one["status"], "completed", `of a conference that ended: one["status"]`)
			checktest.MustTrue(t, one["duration"] != nil, `of a conference that ended: one["duration"] is nil`)
			checktest.True(t, one["price"] != nil, `of a conference that ended: one["price"] is nil`)
		}
	}
	if live == 0 {
		t.Error("no slowapitest.API conference is recorded")
	}
}

func TestTranscriptions(t *testing.T) {
	t.Parallel()
	r := slowapitest.Start(t, slowapi.Options{Records: 2000})
	all := r.Walk(root+"/Transcriptions.json", nil)
	statuses, of := map[any]int{}, map[string]string{}
	for _, one := range all {
		statuses[one["status"]]++
		of[one["recording_sid"].(string)] = one["sid"].(string)
		if spoken := one["transcription_text"] != nil; spoken != (one["status"] == "completed") {
			t.Errorf("%v says %v", one["status"], one["transcription_text"])
		}
		if _, number := one["price"].(float64); !number && one["price"] != nil {
			t.Errorf("price %v", one["price"])
		}
		if string(r.Get(one["uri"].(string))) == "" {
			t.Error("nothing")
		}
	}
	checktest.MustEqual(t, len(all), 40, "%d transcriptions of %d recordings: len(all)", len(all), len(of))
	checktest.MustEqual(t, len(of), 40, "%d transcriptions of %d recordings: len(of)", len(all), len(of))
	checktest.True(t, statuses["completed"] >= 30,
		`%d transcriptions of %d recordings: statuses["completed"] is %v, want >= 30`, len(all), len(of),
		statuses["completed"])
	checktest.True(t, statuses["failed"] != 0, `%d transcriptions of %d recordings: statuses["failed"] is 0`,
		len(all), len(of))
	checktest.True(t, statuses["in-progress"] != 0,
		`%d transcriptions of %d recordings: statuses["in-progress"] is 0`, len(all), len(of))
	for _, recording := range r.Walk(root+"/Recordings.json?PageSize=1000", nil).SIDs() {
		below := r.Page(root + "/Recordings/" + recording + "/Transcriptions.json").Records.SIDs()
		checktest.MustTrue(t, len(below) <= 1, "%s: len(below) is %v, want <= 1", recording, len(below))
		checktest.True(t, !(len(below) == 1 && below[0] != of[recording]),
			"%s: len(below) == 1 && below[0] != of[recording]; len(below) is %v", recording, len(below))
		checktest.True(t, !(len(below) == 0 && of[recording] != ""),
			`%s: len(below) == 0 && of[recording] != ""; len(below) is %v`, recording, len(below))
	}
	r.Write("DELETE", all[7]["uri"].(string), nil, 204)
	if got := r.Walk(root+"/Transcriptions.json", nil); len(got) != 39 {
		t.Errorf("%d after one was deleted", len(got))
	}
}

// TestDerivedTimesNeverFall holds for any size: lists and windows of time count
// on it. And a recording does not begin before its call.
func TestDerivedTimesNeverFall(t *testing.T) {
	for _, n := range []int{1, 4, 5, 19, 20, 23, 39, 40, 415, 5000, 9_000_000} {
		w := slowapitest.NewWorld(int64(n), 5, time.Unix(2e9, 0))
		for k, want := range map[*world.Kind]int64{kinds.Conferences: int64(n / 20), kinds.Recordings: int64(n / 5),
			kinds.Transcriptions: int64(n / 50)} {
			s := w.Sequences[0][k]
			if s.SeededCount != want {
				t.Errorf("%d records: %d of %s, want %d", n, s.SeededCount, k.Name, want)
			}
			for i := max(s.SeededCount-3000, 0); i+1 < s.SeededCount; i++ {
				if s.CreationTime(i) > s.CreationTime(i+1) {
					t.Fatalf("%d records: %s %d is younger than the one after it", n, k.Name, i)
				}
			}
			if s.SeededCount > 0 && s.CreationTime(s.SeededCount-1) > w.Epoch.Unix() {
				t.Errorf("%d records: the newest of %s is of the future", n, k.Name)
			}
		}
		s := w.Sequences[0][kinds.Recordings]
		for i := max(s.SeededCount-3000, 0); i < s.SeededCount; i++ {
			of := kinds.SubjectOf(s, i)
			if of.Since < w.Sequences[0][kinds.Calls].CreationTime(of.Call) && of.Conference < 0 {
				t.Fatalf("%d records: recording %d begins before its call", n, i)
			}
			if c := kinds.RecordingsOfCall(w, s, of.Call); i < c.Lo || i > c.Hi {
				t.Fatalf("%d records: recording %d is not among %d to %d, those of its call", n, i, c.Lo, c.Hi)
			}
		}
	}
}
