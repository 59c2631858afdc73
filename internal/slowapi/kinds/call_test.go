// Tests of calls: their shape, what becomes of them, and writes.
package kinds_test

import (
	"bytes"
	"compress/gzip"
	"net/url"
	"slices"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestWorldShape(t *testing.T) {
	t.Parallel()
	const n = 6000
	r := slowapitest.Start(t, slowapi.Options{Records: n})
	calls := r.Walk(root+"/Calls.json?PageSize=1000", nil)
	var neverStarted, children, sameSecond, disordered int
	at := map[string]record{}
	for _, one := range calls {
		at[one["sid"].(string)] = one
	}
	for i, one := range calls {
		if one["start_time"] == nil && (one["status"] == "canceled" || one["status"] == "failed") {
			neverStarted++
			if one["end_time"] != nil {
				t.Fatal("a call that never started ended")
			}
		}
		if sid, has := one["parent_call_sid"].(string); has {
			children++
			parent := at[sid]
			checktest.MustTrue(t, parent != nil, "call: parent is nil")
			checktest.MustEqual(t, parent["direction"], "inbound", `call: parent["direction"]`)
			checktest.MustEqual(t, one["direction"], "outbound-dial", `call: one["direction"]`)
		}
		if i > 0 {
			gap := slowapitest.ParseTime(t, calls[i-1]["date_created"]).Sub(slowapitest.ParseTime(t, one["date_created"]))
			if gap == 0 {
				sameSecond++
			}
			if gap < 0 {
				disordered++
			}
		}
		if len(one["subresource_uris"].(record)) != 9 {
			t.Fatal("a call has not nine subresource URIs")
		}
	}
	share := func(name string, got int, want, give float64) {
		if percent := 100 * float64(got) / n; percent < want-give || percent > want+give {
			t.Errorf("%s: %.2f %%, want %v", name, percent, want)
		}
	}
	share("never started", neverStarted, 3, 0.6)
	share("with a parent", children, 20, 0.01)
	share("in one second with the next", sameSecond, 1, 0.4)
	if disordered > 0 {
		t.Errorf("%d calls are older than the one after them", disordered)
	}
	newest, oldest := slowapitest.ParseTime(t, calls[0]["date_created"]), slowapitest.ParseTime(t, calls[n-1]["date_created"])
	if want := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC); !newest.Equal(want) {
		t.Errorf("the newest is of %s, want %s", newest, want)
	}
	if days := newest.Sub(oldest).Hours() / 24; days < 89.9 || days > 90.1 {
		t.Errorf("they lie over %.2f days", days)
	}
}

func TestBenchPage(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	body := r.Get(root + "/Calls.json")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(body)
	_ = z.Close()
	checktest.MustTrue(t, len(body) >= 95_000, "50 calls are: len(body) is %v, want >= 95_000", len(body))
	checktest.MustTrue(t, len(body) <= 110_000, "50 calls are: len(body) is %v, want <= 110_000", len(body))
	checktest.True(t, packed.Len() >= 6_000, "50 calls are: packed.Len() is %v, want >= 6_000", packed.Len())
	checktest.True(t, packed.Len() <= 8_500, "50 calls are: packed.Len() is %v, want <= 8_500", packed.Len())
}

func TestCallsLife(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 40})
	form := url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Url": {"https://example.com/voice"}}
	made := r.Write("POST", root+"/Calls.json", form, 201)
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
	if first := r.Page(root + "/Calls.json?PageSize=1").Records[0]; first["sid"] != sid || first["date_created"] == nil {
		t.Errorf("the newest call is %v, created %v", first["sid"], first["date_created"])
	}
	if got := r.Page(root + "/Calls.json?To=%2B15005550006").Records.SIDs(); !slices.Equal(got, []string{sid}) {
		t.Errorf("by its To: %v", got)
	}
	for _, step := range []struct{ status, price, duration any }{
		{"ringing", nil, nil}, {"in-progress", nil, nil}, {"completed", nil, "60"}, {"completed", "-0.01400", "60"}, {"completed", "-0.01400",
			"60"},
	} {
		r.Control("/-/advance", `{"seconds":60}`, 200)
		now := r.One(root + "/Calls/" + sid + ".json")
		checktest.Equal(t, now["status"], step.status, `now["status"]`)
		checktest.Equal(t, now["price"], step.price, `now["price"]`)
		checktest.Equal(t, now["duration"], step.duration, `now["duration"]`)
	}
	now := r.One(root + "/Calls/" + sid + ".json")
	checktest.Equal(t, now["start_time"], "Mon, 01 Jun 2026 12:02:00 +0000", `times: now["start_time"]`)
	checktest.Equal(t, now["end_time"], "Mon, 01 Jun 2026 12:03:00 +0000", `times: now["end_time"]`)
	checktest.Equal(t, now["date_updated"], "Mon, 01 Jun 2026 12:04:00 +0000", `times: now["date_updated"]`)
	if got := r.Page(root + "/Calls.json?StartTime=2026-06-01T12:02:00Z").Records.SIDs(); !slices.Equal(got, []string{sid}) {
		t.Errorf("by its StartTime: %v", got)
	}
	r.Write("DELETE", root+"/Calls/"+sid+".json", nil, 204)
	r.Write("DELETE", root+"/Calls/"+sid+".json", nil, 404)
	r.Write("POST", root+"/Calls/"+sid+".json", form, 404)
	if got := r.Page(root + "/Calls.json?To=%2B15005550006").Records; len(got) != 0 {
		t.Error("a deleted call is still listed")
	}
}

func TestCallUpdates(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	make := func() string {
		return root + "/Calls/" + r.Write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}},
			201)["sid"].(string) + ".json"
	}
	queued := make()
	{
		got := r.Write("POST", queued, url.Values{"Status": {"canceled"}}, 200)
		checktest.Equal(t, got["status"], "canceled", `canceled: got["status"]`)
		checktest.MustTrue(t, got["start_time"] == nil, `canceled: got["start_time"] is %v`, got["start_time"])
		checktest.True(t, got["price"] == nil, `canceled: got["price"] is %v`, got["price"])
	}
	r.Write("POST", queued, url.Values{"Status": {"completed"}}, 400)
	talking := make()
	r.Control("/-/advance", `{}`, 200)
	r.Control("/-/advance", `{"seconds":5}`, 200)
	r.Write("POST", talking, url.Values{"Status": {"canceled"}}, 400)
	r.Write("POST", talking, url.Values{"Url": {"https://example.com"}}, 200)
	r.Write("POST", talking, url.Values{"Status": {"busy"}}, 400)
	r.Control("/-/advance", `{"seconds":0,"calls":0}`, 200) // completes by itself
	hung := make()
	r.Control("/-/advance", `{}`, 200)
	r.Control("/-/advance", `{}`, 200)
	{
		got := r.Write("POST", hung, url.Values{"Status": {"completed"}}, 200)
		checktest.Equal(t, got["status"], "completed", `hung up: got["status"]`)
		checktest.MustTrue(t, got["end_time"] != nil, `hung up: got["end_time"] is nil`)
		checktest.True(t, got["price"] == nil, `hung up: got["price"] is %v`, got["price"])
	}
	r.Control("/-/advance", `{}`, 200)
	if got := r.One(hung); got["price"] == nil {
		t.Error("a call hung up has no price a step later")
	}
}
