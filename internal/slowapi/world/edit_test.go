// Tests of late changes to single records.
package world_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestEditsOfSingleRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	r := slowapitest.Start(t, slowapi.Options{Records: 60, Journal: path})
	before := r.Walk(root+"/Calls.json?PageSize=20", nil)
	old := before[50]
	index := len(before) - 1 - 50
	if old["status"] == nil || old["price"] == "-7.77" {
		t.Fatalf("%v", old)
	}
	final := slices.IndexFunc(before[20:], func(c record) bool { return c["status"] == "completed" }) + 20
	sid := before[final]["sid"].(string)

	answer := r.Control("/-/edit", fmt.Sprintf(`{"kind":"calls","records":[{"index":%d,"price":"-7.77"},{"sid":%q,"status":"failed"},`+
		`{"index":0,"delete":true}]}`, index, sid), 200)
	if !strings.Contains(answer, old["sid"].(string)) || !strings.Contains(answer, sid) {
		t.Errorf("answered %s", answer)
	}
	after := r.Walk(root+"/Calls.json?PageSize=20", nil)
	if len(after) != len(before)-1 {
		t.Fatalf("%d calls, want %d", len(after), len(before)-1)
	}
	for i, c := range after {
		was := before[i]
		switch {
		case i == 50 && c["price"] != "-7.77":
			t.Errorf("price %v", c["price"])
		case i == final && (c["status"] != "failed" || c["start_time"] != was["start_time"]):
			t.Errorf("status %v, started %v, was %v", c["status"], c["start_time"], was["start_time"])
		case i != 50 && i != final && fmt.Sprint(c) != fmt.Sprint(was):
			t.Errorf("call %d changed: %v, was %v", i, c, was)
		}
	}
	if got := r.Page(root + "/Calls.json?PageSize=60&Status=failed").Records.SIDs(); !slices.Contains(got, sid) {
		t.Error("the filter does not find the new status")
	}
	oldest := before[len(before)-1]
	r.Control("/-/edit", `{"kind":"calls","records":[{"index":0,"restore":true}]}`, 200)
	if back := r.Walk(root+"/Calls.json?PageSize=20", nil); fmt.Sprint(back[len(back)-1]) != fmt.Sprint(oldest) {
		t.Errorf("the oldest is %v, was %v", back[len(back)-1], oldest)
	}
	want := r.Walk(root+"/Calls.json?PageSize=20", nil)
	again := slowapitest.Start(t, slowapi.Options{Records: 60, Journal: path})
	if got := again.Walk(root+"/Calls.json?PageSize=20", nil); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("a restart forgot an edit")
	}
}

func TestARedactedMessageKeepsItsSegments(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 20})
	all := r.Walk(root+"/Messages.json?PageSize=20", nil)
	one := all[len(all)-4]
	r.Control("/-/edit", `{"kind":"messages","records":[{"index":3,"body":""}]}`, 200)
	now := r.One(root + "/Messages/" + one["sid"].(string) + ".json")
	if now["body"] != "" || now["num_segments"] != one["num_segments"] {
		t.Errorf("%v, was %v", now, one)
	}
}

func TestEditsThatCannotBe(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 60})
	r.Write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Url": {"https://example.com/voice"}},
		201)
	for body, want := range map[string]string{
		`{"kind":"cals","records":[]}`:                                          `no kind \"cals\"`,
		`{"kind":"cals","records":[{"index":1}]}`:                               `no kind \"cals\"`,
		`{"kind":"calls","records":[{"index":61}]}`:                             "no such record",
		`{"kind":"calls","records":[{"price":"-1"}]}`:                           "no such record",
		`{"kind":"calls","records":[{"sid":"CA00","price":"-1"}]}`:              "no such record",
		`{"kind":"calls","records":[{"index":1,"restore":true}]}`:               "was not deleted",
		`{"kind":"calls","records":[{"index":1,"delete":true,"restore":true}]}`: "at once",
		`{"kind":"calls","records":[{"index":60,"status":"failed"}]}`:           "final state",
		`{"kind":"calls","records":[{"index":1,"status":"gone"}]}`:              "final state",
		`{"kind":"queues","records":[{"index":1,"price":"1"}]}`:                 "only calls and messages",
		`{"kind":"calls","records":[{"index":1,"colour":"red"}]}`:               "colour",
	} {
		if answer := r.Control("/-/edit", body, 400); !strings.Contains(answer, want) {
			t.Errorf("%s: %s, want %q in it", body, answer, want)
		}
	}
}
