// Tests of notifications.
package kinds_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestNotifications(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 2000})
	all := r.Walk(root+"/Notifications.json?PageSize=9", nil)
	if len(all) != 40 {
		t.Fatalf("%d notifications, want 40", len(all))
	}
	more := []string{"request_variables", "response_body", "response_headers"}
	logs, numbers := map[any]int{}, 0
	for i, row := range all {
		sid, call := row["sid"].(string), row["call_sid"].(string)
		if i > 0 && slowapitest.ParseTime(t, row["message_date"]).After(slowapitest.ParseTime(t, all[i-1]["message_date"])) {
			t.Fatal("not the newest first")
		}
		logs[row["log"]]++
		if row["uri"] != root+"/Notifications/"+sid+".json" {
			t.Fatalf("uri %v", row["uri"])
		}
		whole := r.One(row["uri"].(string))
		for _, field := range more {
			if _, there := row[field]; there || whole[field] == nil {
				t.Fatalf("%s in a row, or not in an instance: %v", field, whole)
			}
		}
		below := root + "/Calls/" + call + "/Notifications"
		if got := r.Page(below + ".json").Records; !slices.Equal(got.SIDs(), []string{sid}) || got[0]["uri"] != below+"/"+sid+".json" {
			t.Fatalf("of its call: %v", got)
		}
		if got := r.One(below + "/" + sid + ".json"); got["request_variables"] != whole["request_variables"] ||
			got["uri"] != below+"/"+sid+".json" {
			t.Fatalf("below its call: %v", got)
		}
		of := r.One(root + "/Calls/" + call + ".json")
		if gap := slowapitest.ParseTime(t, row["message_date"]).Sub(slowapitest.ParseTime(t, of["date_created"])).Seconds(); gap < 0 || gap > 2 {
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
	r := slowapitest.Start(t, slowapi.Options{Records: 500})
	one := r.Page(root + "/Notifications.json").Records[0]
	own := one["call_sid"].(string)
	var other string
	for _, sid := range r.Page(root + "/Calls.json?PageSize=2").Records.SIDs() {
		if sid != own {
			other = sid
		}
	}
	if got := r.Page(root + "/Calls/" + other + "/Notifications.json"); len(got.Records) != 0 {
		t.Errorf("%d of another call", len(got.Records))
	}
	made := r.Write("POST", root+"/Calls.json", url.Values{"To": {"+1500"}, "From": {"+1501"}}, 201)["sid"].(string)
	if got := r.Page(root + "/Calls/" + made + "/Notifications.json"); len(got.Records) != 0 {
		t.Errorf("%d of a new call", len(got.Records))
	}
	for target, want := range map[string]int{
		root + "/Calls/" + other + "/Notifications/" + one["sid"].(string) + ".json": 404,
		root + "/Calls/CA1/Notifications.json":                                       404,
		root + "/Notifications/" + other + ".json":                                   404,
		root + "/Calls/" + own + "/Notifications/" + one["sid"].(string) + ".json":   200,
	} {
		if status, body, _ := r.Ask("GET", target, nil); status != want {
			t.Errorf("%s: %d %s", target, status, body)
		}
	}
	for _, target := range []string{"/Notifications.json", "/Calls/" + own + "/Notifications.json"} {
		r.Write("POST", root+target, url.Values{"Log": {"0"}}, 405)
	}
	r.Write("DELETE", root+"/Notifications/"+one["sid"].(string)+".json", nil, 405)
	r.Write("DELETE", root+"/Calls/"+own+".json", nil, 204)
	if status, _, _ := r.Ask("GET", root+"/Calls/"+own+"/Notifications.json", nil); status != 404 {
		t.Errorf("of a deleted call: %d", status)
	}
}
