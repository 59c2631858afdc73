// Tests of lists without names: the events of calls.
package kinds_test

import (
	"fmt"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestCallEvents(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 200})
	rows, pages := 0, 0
	for _, one := range r.Page(root + "/Calls.json?PageSize=100").Records {
		target := root + "/Calls/" + one["sid"].(string) + "/Events.json"
		all := r.Walk(target, nil)
		rows += len(all)
		by1 := r.Walk(target+"?PageSize=1", func() { pages++ })
		if fmt.Sprint(by1) != fmt.Sprint(all) {
			t.Fatalf("%s by 1: %v, want %v", target, by1, all)
		}
		for _, event := range all {
			request, response := event["request"].(record), event["response"].(record)
			told := request["parameters"].(record)
			checktest.MustTrue(t, event["sid"] == nil, `event["sid"] is %v`, event["sid"])
			checktest.MustEqual(t, told["from"], one["from"], `told["from"]`)
			checktest.MustEqual(t, told["to"], one["to"], `told["to"]`)
			checktest.MustTrue(t, response["response_code"].(float64) >= 200,
				`response["response_code"].(float64) is %v, want >= 200`, response["response_code"].(float64))
			checktest.MustTrue(t, response["date_created"] != nil, `response["date_created"] is nil`)
		}
		if over := one["end_time"] != nil; over != strings.Contains(fmt.Sprint(all), "call_duration") {
			t.Errorf("a call that ended: %v; %v", over, all)
		}
	}
	if rows < 150 || pages < 40 {
		t.Errorf("%d events, %d further pages", rows, pages)
	}
	if p := r.Page(root + "/Calls/" + r.Page(root + "/Calls.json?Status=completed&PageSize=1").Records.SIDs()[0] + "/Events.json?PageSize=" +
		"1"); !strings.HasSuffix(*p.Next, "&Page=1&PageToken=APMQ%3D%3D") {
		t.Errorf("next %s", *p.Next)
	}
}
