// Tests of usage and of the balance.
package kinds_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
)

// usage reads one of the lists of usage.
func usage(r slowapitest.API, list string) []record {
	r.T.Helper()
	return r.Walk(root+"/Usage/Records"+list, nil)
}

func number64(t *testing.T, value any) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	if err != nil {
		t.Fatalf("%v: %v", value, err)
	}
	return n
}

func TestUsageLists(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 2000})
	every := len(kinds.Categories())
	for list, want := range map[string]struct {
		rows     int
		from, to string // of the first row
	}{
		".json":           {every, "2025-01-16", "2026-06-01"},
		"/AllTime.json":   {every, "2025-01-16", "2026-06-01"},
		"/Today.json":     {every, "2026-06-01", "2026-06-01"},
		"/Yesterday.json": {every, "2026-05-31", "2026-05-31"},
		"/ThisMonth.json": {every, "2026-06-01", "2026-06-01"},
		"/LastMonth.json": {every, "2026-05-01", "2026-05-31"},
		"/Daily.json?StartDate=2026-05-30&PageSize=5":              {3 * every, "2026-06-01", "2026-06-01"},
		"/Daily.json?StartDate=-30days&EndDate=-29days":            {2 * every, "2026-05-03", "2026-05-03"},
		"/Monthly.json?StartDate=2026-03-10&PageSize=4":            {4 * every, "2026-06-01", "2026-06-01"},
		"/Monthly.json?EndDate=2025-02-10&Category=sms":            {2, "2025-02-01", "2025-02-10"},
		"/Yearly.json?Category=calls":                              {2, "2026-01-01", "2026-06-01"},
		"/Yearly.json?Category=calls&EndDate=2025-12-31":           {1, "2025-01-16", "2025-12-31"},
		".json?StartDate=2026-05-01&EndDate=2026-05-31":            {every, "2026-05-01", "2026-05-31"},
		"/Daily.json?Category=sms&StartDate=%2B1days":              {0, "", ""},
		"/Today.json?EndDate=2026-05-01":                           {0, "", ""},
		".json?Category=nothing":                                   {0, "", ""},
		".json?StartDate=2027-01-01":                               {0, "", ""},
		"/Daily.json?Category=totalprice&StartDate=-1day&Unknown=": {2, "2026-06-01", "2026-06-01"},
	} {
		got := usage(r, list)
		if len(got) != want.rows || len(got) > 0 && (got[0]["start_date"] != want.from || got[0]["end_date"] != want.to) {
			t.Errorf("%s: %d rows, want %v; %v", list, len(got), want, got[:min(len(got), 1)])
		}
	}
	for _, bad := range []string{"StartDate=soon", "EndDate=days", "StartDate=30days", "StartDate=-xdays", "IncludeSubaccounts=maybe",
		"PageToken=APx", "PageToken=PAMQ==", "PageToken=AP", "PageSize=0"} {
		if status, body, _ := r.Ask("GET", root+"/Usage/Records.json?"+bad, nil); status != 400 || !strings.Contains(string(body), "20001") {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
}

func TestUsageTokens(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 200})
	p := r.Page(root + "/Usage/Records/Daily.json?PageSize=20&Category=&StartDate=-3days")
	if want := root + "/Usage/Records/Daily.json?Category=&StartDate=-3days&PageSize=20&Page=1&PageToken=APMQ%3D%3D"; *p.Next != want ||
		p.Previous != nil {
		t.Fatalf("next %s, want %s", *p.Next, want)
	}
	second := r.Page(*p.Next)
	third := r.Page(*second.Next)
	if third.Start != 40 || third.URI != *second.Next {
		t.Errorf("third: %+v", third)
	}
	if back := r.Page(*third.Previous); fmt.Sprint(back.Records) != fmt.Sprint(second.Records) {
		t.Error("the page before the third is not the second")
	}
	past := r.Page(root + "/Usage/Records.json?Page=9")
	checktest.MustEqual(t, len(past.Records), 0, "past the end: len(past.Records)")
	checktest.MustTrue(t, past.Next == nil, "past the end: past.Next is %v", past.Next)
	checktest.True(t, past.Previous == nil, "past the end: past.Previous is %v", past.Previous)
}

// TestUsageFollowsTheWorld: figures are of the records that are there, parts
// add up, days add up to months, and writes count.
func TestUsageFollowsTheWorld(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 3000})
	by := func(rows []record, field string) map[string]float64 {
		all := map[string]float64{}
		for _, one := range rows {
			if one[field] != nil {
				all[one["category"].(string)] += number64(t, one[field])
			}
		}
		return all
	}
	whole := usage(r, ".json")
	counts, prices := by(whole, "count"), by(whole, "price")
	checktest.True(t, counts["calls"] >= 2990, `counts: counts["calls"] is %v, want >= 2990`, counts["calls"])
	checktest.True(t, counts["calls"] <= 3000, `counts: counts["calls"] is %v, want <= 3000`, counts["calls"])
	checktest.True(t, counts["sms"] >= 5680, `counts: counts["sms"] is %v, want >= 5680`, counts["sms"])
	checktest.True(t, counts["sms"] <= 5700, `counts: counts["sms"] is %v, want <= 5700`, counts["sms"])
	checktest.Equal(t, counts["mms"], 300, `counts: counts["mms"]`)
	if counts["calls"] != counts["calls-inbound"]+counts["calls-outbound"]+counts["calls-client"]+counts["calls-sip"] {
		t.Errorf("parts of calls: %v", counts)
	}
	sum := prices["calls"] + prices["sms"] + prices["mms"] + prices["recordings"] +
		prices["phonenumbers"]
	checktest.True(t, sum-prices["totalprice"] <= 0.001, `prices: sum-prices["totalprice"] is %v, want <= 0.001`,
		sum-prices["totalprice"])
	checktest.True(t, prices["totalprice"]-sum <= 0.001, `prices: prices["totalprice"]-sum is %v, want <= 0.001`,
		prices["totalprice"]-sum)
	checktest.True(t, sum >= 100, "prices: sum is %v, want >= 100", sum)
	months := by(usage(r, "/Monthly.json"), "count")
	checktest.Equal(t, months["phonenumbers"], counts["phonenumbers"], `months: months["phonenumbers"]`)
	checktest.True(t, months["mms"] <= counts["mms"], `months: months["mms"] is %v`, months["mms"])
	checktest.True(t, months["mms"] >= counts["mms"]-18, `months: months["mms"] is %v`, months["mms"])
	before := by(usage(r, "/Today.json"), "count")["calls-outbound"]
	r.Control("/-/advance", `{"calls":1000}`, 200)
	if after := by(usage(r, "/Today.json"), "count")["calls-outbound"]; after-before < 471 || after-before > 473 {
		t.Errorf("a thousand calls more: %v, was %v", after, before)
	}
	below := r.Page("/2010-04-01/Accounts.json").Records.SIDs()[0]
	for range 20 {
		r.Write("POST", "/2010-04-01/Accounts/"+below+"/Messages.json", url.Values{"To": {"+1500"}}, 201)
	}
	with := by(usage(r, "/Today.json?IncludeSubaccounts=true"), "count")["sms-outbound"]
	without := by(usage(r, "/Today.json?IncludeSubaccounts=false"), "count")["sms-outbound"]
	if with-without != 11 || by(usage(r, "/Today.json"), "count")["sms-outbound"] != with {
		t.Errorf("with accounts below %v, without %v", with, without)
	}
	if own := by(r.Walk("/2010-04-01/Accounts/"+below+"/Usage/Records/Today.json", nil), "count"); own["sms-outbound"] != 11 {
		t.Errorf("of the account below: %v", own)
	}
}

func TestUsageRowsAskForThemselves(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 500})
	run := sample.OneIn(t, 20)
	for _, list := range []string{".json", "/Daily.json?StartDate=-2days", "/Monthly.json", "/Yesterday.json"} {
		for _, one := range usage(r, list) {
			if !run() {
				continue
			}
			got := r.Page(one["uri"].(string)).Records
			if len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(one) {
				t.Fatalf("%v: %v, want %v", one["uri"], got, one)
			}
			for _, sub := range one["subresource_uris"].(record) {
				r.Get(sub.(string))
			}
		}
	}
}

// TestBalance: the balance falls by the prices that lists show, whatever happens: records
// come, move on, are written, redacted, edited, deleted.
func TestBalance(t *testing.T) {
	t.Parallel()
	r := slowapitest.Start(t, slowapi.Options{Records: 300})
	first := r.One(root + "/Balance.json")
	had := number64(t, first["balance"])
	checktest.Equal(t, first["account_sid"], mainSID, `balance: first["account_sid"]`)
	checktest.Equal(t, first["currency"], "USD", `balance: first["currency"]`)
	checktest.True(t, had >= 100, "balance: had is %v, want >= 100", had)
	checktest.True(t, had <= 150, "balance: had is %v, want <= 150", had)
	prices := func() (sum float64) {
		for _, kind := range []string{"Calls", "Messages"} {
			for _, one := range r.Walk(root+"/"+kind+".json?PageSize=1000", nil) {
				if one["price"] != nil {
					sum -= number64(t, one["price"])
				}
			}
		}
		return sum
	}
	began := prices()
	falls := func(what string) {
		t.Helper()
		left, spent := number64(t, r.One(root + "/Balance.json")["balance"]), prices()-began
		if diff := had - left - spent; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("%s: %.5f less, the prices say %.5f", what, had-left, spent)
		}
	}
	falls("at first")
	for range 6 {
		r.Control("/-/advance", `{"calls":10,"messages":15,"seconds":60}`, 200)
	}
	if began == prices() {
		t.Fatal("nothing was priced")
	}
	falls("after calls")
	sid := fmt.Sprint(r.Write("POST", root+"/Messages.json", url.Values{"To": {"+1500"}, "From": {"+1501"}, "Body": {"hello"}}, 201)["sid"])
	for range 6 {
		r.Control("/-/advance", `{"seconds":60}`, 200)
	}
	falls("after a message that was written")
	r.Write("POST", root+"/Messages/"+sid+".json", url.Values{"Body": {""}}, 200)
	falls("after it was redacted")
	for index, price := range map[string]string{"17": "-0.99", "305": "-1.5", "299": "0.25"} {
		r.Control("/-/edit", `{"kind":"calls","records":[{"index":`+index+`,"price":"`+price+`"}]}`, 200)
	}
	falls("after prices were put right")
	before := r.One(root + "/Balance.json")["balance"]
	r.Write("DELETE", root+"/Messages/"+sid+".json", nil, 204)
	if now := r.One(root + "/Balance.json")["balance"]; now != before {
		t.Errorf("a deletion is paid back: %v, was %v", now, before)
	}
	r.Write("POST", root+"/Balance.json", url.Values{"Balance": {"9"}}, 405)
	r.Write("GET", root+"/Balance/X.json", nil, 404)
}
