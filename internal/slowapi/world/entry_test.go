// Tests of what happens to records.
package world_test

import (
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestEveryRecordReachesItsEnd(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 100})
	r.Control("/-/advance", `{"calls":30,"messages":30}`, 200)
	for range 8 {
		r.Control("/-/advance", `{"seconds":20}`, 200)
	}
	if got := r.Control("/-/advance", `{"seconds":20}`, 200); !strings.Contains(got, `"moved":0`) {
		t.Errorf("after nine steps: %s", got)
	}
	for _, list := range []string{"/Calls.json", "/Messages.json"} {
		for _, one := range r.Walk(root+list, nil) {
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
	r := slowapitest.Start(t, slowapi.Options{Records: 100})
	before := string(r.Get(root + "/Calls.json?PageSize=1000"))
	if again := string(r.Get(root + "/Calls.json?PageSize=1000")); again != before {
		t.Fatal("the world does not stand still")
	}
	live := 0
	for _, one := range r.Page(root + "/Calls.json").Records {
		if s := one["status"]; s == "queued" || s == "ringing" || s == "in-progress" {
			live++
		}
	}
	got := r.Control("/-/advance", `{"calls":2,"messages":3,"seconds":3600}`, 200)
	checktest.Contains(t, got, `"clock":"2026-06-01T13:00:00Z"`, "%d live calls: got", live)
	checktest.Contains(t, got, `"created":{"calls":2,"messages":3}`, "%d live calls: got", live)
	checktest.True(t, live != 0, "%d live calls: live is 0; got %s", live, got)
	p := r.Page(root + "/Calls.json?PageSize=2")
	for _, one := range p.Records {
		if one["date_created"] != "Mon, 01 Jun 2026 13:00:00 +0000" {
			t.Errorf("created %v", one["date_created"])
		}
	}
	for _, bad := range []string{``, `[]`, `{"calls":-1}`, `{"calls":1.5}`, `{"calls":100001}`, `{"seconds":-1}`, `{"seconds":1e12}`,
		`{"alerts":-1}`, `{"call":1}`, `{} {}`, `{"calls":"1"}`, `null x`} {
		if got := r.Control("/-/advance", bad, 400); !strings.Contains(got, `{"error":"`) {
			t.Errorf("%s: %s", bad, got)
		}
	}
	if got := r.Page(root + "/Calls.json?PageSize=2"); !slices.Equal(got.Records.SIDs(), p.Records.SIDs()) {
		t.Error("a refused advance did something")
	}
	r.Control("/-/advance", `{"conferences":0,"alerts":0}`, 200)
}
