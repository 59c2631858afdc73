// Tests of notifications and of the events of calls.
package slowapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestNotifications(t *testing.T) {
	r := start(t, Options{Records: 2000})
	all := r.walk(root+"/Notifications.json?PageSize=9", nil)
	if len(all) != 40 {
		t.Fatalf("%d notifications, want 40", len(all))
	}
	more := []string{"request_variables", "response_body", "response_headers"}
	logs, numbers := map[any]int{}, 0
	for i, row := range all {
		sid, call := row["sid"].(string), row["call_sid"].(string)
		if i > 0 && when(t, row["message_date"]).After(when(t, all[i-1]["message_date"])) {
			t.Fatal("not the newest first")
		}
		logs[row["log"]]++
		if row["uri"] != root+"/Notifications/"+sid+".json" {
			t.Fatalf("uri %v", row["uri"])
		}
		whole := r.one(row["uri"].(string))
		for _, field := range more {
			if _, there := row[field]; there || whole[field] == nil {
				t.Fatalf("%s in a row, or not in an instance: %v", field, whole)
			}
		}
		below := root + "/Calls/" + call + "/Notifications"
		if got := r.page(below + ".json").records; !slices.Equal(sids(got), []string{sid}) || got[0]["uri"] != below+"/"+sid+".json" {
			t.Fatalf("of its call: %v", got)
		}
		if got := r.one(below + "/" + sid + ".json"); got["request_variables"] != whole["request_variables"] ||
			got["uri"] != below+"/"+sid+".json" {
			t.Fatalf("below its call: %v", got)
		}
		of := r.one(root + "/Calls/" + call + ".json")
		if gap := when(t, row["message_date"]).Sub(when(t, of["date_created"])).Seconds(); gap < 0 || gap > 2 {
			t.Fatalf("%v seconds after its call", gap)
		}
		if strings.Contains(fmt.Sprint(whole["request_variables"]), "From="+url.QueryEscape(of["from"].(string))) {
			numbers++
		}
	}
	if len(logs) != 2 || numbers != 40 {
		t.Errorf("logs %v, %d tell who called", logs, numbers)
	}
}

func TestNotificationsOfOtherCalls(t *testing.T) {
	r := start(t, Options{Records: 500})
	one := r.page(root + "/Notifications.json").records[0]
	own := one["call_sid"].(string)
	var other string
	for _, sid := range sids(r.page(root + "/Calls.json?PageSize=2").records) {
		if sid != own {
			other = sid
		}
	}
	if got := r.page(root + "/Calls/" + other + "/Notifications.json"); len(got.records) != 0 {
		t.Errorf("%d of another call", len(got.records))
	}
	made := r.write("POST", root+"/Calls.json", url.Values{"To": {"+1500"}, "From": {"+1501"}}, 201)["sid"].(string)
	if got := r.page(root + "/Calls/" + made + "/Notifications.json"); len(got.records) != 0 {
		t.Errorf("%d of a new call", len(got.records))
	}
	for target, want := range map[string]int{
		root + "/Calls/" + other + "/Notifications/" + one["sid"].(string) + ".json": 404,
		root + "/Calls/CA1/Notifications.json":                                       404,
		root + "/Notifications/" + other + ".json":                                   404,
		root + "/Calls/" + own + "/Notifications/" + one["sid"].(string) + ".json":   200,
	} {
		if status, body, _ := r.ask("GET", target, nil); status != want {
			t.Errorf("%s: %d %s", target, status, body)
		}
	}
	for _, target := range []string{"/Notifications.json", "/Calls/" + own + "/Notifications.json"} {
		r.write("POST", root+target, url.Values{"Log": {"0"}}, 405)
	}
	r.write("DELETE", root+"/Notifications/"+one["sid"].(string)+".json", nil, 405)
	r.write("DELETE", root+"/Calls/"+own+".json", nil, 204)
	if status, _, _ := r.ask("GET", root+"/Calls/"+own+"/Notifications.json", nil); status != 404 {
		t.Errorf("of a deleted call: %d", status)
	}
}

func TestCallEvents(t *testing.T) {
	r := start(t, Options{Records: 200})
	rows, pages := 0, 0
	for _, one := range r.page(root + "/Calls.json?PageSize=100").records {
		target := root + "/Calls/" + one["sid"].(string) + "/Events.json"
		all := r.walk(target, nil)
		rows += len(all)
		by1 := r.walk(target+"?PageSize=1", func() { pages++ })
		if fmt.Sprint(by1) != fmt.Sprint(all) {
			t.Fatalf("%s by 1: %v, want %v", target, by1, all)
		}
		for _, event := range all {
			request, response := event["request"].(record), event["response"].(record)
			told := request["parameters"].(record)
			if event["sid"] != nil || told["from"] != one["from"] || told["to"] != one["to"] || response["response_code"].(float64) < 200 ||
				response["date_created"] == nil {
				t.Fatalf("%v", event)
			}
		}
		if over := one["end_time"] != nil; over != strings.Contains(fmt.Sprint(all), "call_duration") {
			t.Errorf("a call that ended: %v; %v", over, all)
		}
	}
	if rows < 150 || pages < 40 {
		t.Errorf("%d events, %d further pages", rows, pages)
	}
	if p := r.page(root + "/Calls/" + sids(r.page(root + "/Calls.json?Status=completed&PageSize=1").records)[0] + "/Events.json?PageSize=" +
		"1"); !strings.HasSuffix(*p.Next, "&Page=1&PageToken=APMQ%3D%3D") {
		t.Errorf("next %s", *p.Next)
	}
}
