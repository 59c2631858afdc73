// Benchmarks: a view of a page of 100 KB, made and remembered.

package access

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/spec"
)

// callsPage is a list of 50 calls of about 2 KB each.
func callsPage() *understudy.Page {
	var b strings.Builder
	b.WriteString(`{"end":49,"first_page_uri":"/x?PageSize=50&Page=0","next_page_uri":null,"page":0,"page_size":50,"calls":[`)
	for i := range 50 {
		if i > 0 {
			b.WriteString(", ")
		}
		sid := fmt.Sprintf("CA%032x", i)
		fmt.Fprintf(&b, `{"sid": "%s", "account_sid": "%s", "date_created": "Fri, 18 Oct 2019 17:00:00 +0000", "date_updated": "Fri, 18 Oct `+
			`2019 17:00:00 +0000", "start_time": null, "end_time": null, "direction": "inbound", "from": "+1305%07d", "from_formatted": "(305) `+
			`141-6799", "to": "+1305%07d", "to_formatted": "(305) 141-6799", "status": "completed", "duration": "%d", "price": "-0.200", `+
			`"price_unit": "USD", "parent_call_sid": null, "phone_number_sid": null, "answered_by": null, "api_version": "2010-04-01", `+
			`"forwarded_from": null, "group_sid": null, "caller_name": "", "queue_time": "0", "trunk_sid": null, "uri": `+
			`"/2010-04-01/Accounts/%s/Calls/%s.json", "subresource_uris": {`, sid, account, i, i, i, account, sid)
		for j, name := range []string{"notifications", "recordings", "payments", "events", "siprec", "streams", "transcriptions",
			"user_defined_message_subscriptions", "user_defined_messages"} {
			if j > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, `"%s": "/2010-04-01/Accounts/%s/Calls/%s/%s.json"`, name, account, sid, name)
		}
		b.WriteString(`}}`)
	}
	b.WriteString(`]}`)
	return page("twilio", "calls", true, 200, b.String())
}

func BenchmarkViewMade(b *testing.B) {
	specs := map[string]*spec.Spec{"twilio": twilio(b)}
	g, err := NewWith(Options{Specs: specs, Roles: Roles{"support": support}, Cache: -1})
	if err != nil {
		b.Fatal(err)
	}
	p := callsPage()
	b.SetBytes(int64(len(p.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if v, err := g.MakeView(as("support"), p); err != nil || v.Unredacted {
			b.Fatal(err)
		}
	}
}

func benchmarkView(b *testing.B, role string) {
	g, err := New(map[string]*spec.Spec{"twilio": twilio(b)}, Roles{"support": support})
	if err != nil {
		b.Fatal(err)
	}
	p, c := callsPage(), as(role)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.MakeView(c, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkViewRemembered(b *testing.B) { benchmarkView(b, "support") }

func BenchmarkViewWhole(b *testing.B) { benchmarkView(b, "all") }

func BenchmarkRead(b *testing.B) {
	g, err := New(map[string]*spec.Spec{"twilio": twilio(b)}, Roles{"support": support})
	if err != nil {
		b.Fatal(err)
	}
	t := target(b, g.specs["twilio"], "twilio", "/2010-04-01/Accounts/"+account+"/Calls.json", "Status=busy&PageSize=50")
	c := as("support")
	b.ReportAllocs()
	for b.Loop() {
		if err := g.CheckRead(c, t); err != nil {
			b.Fatal(err)
		}
	}
}

// What a row rule costs for each record a list looks at.
func BenchmarkOnly(b *testing.B) {
	whole := string(callsPage().Body)
	_, call, _ := strings.Cut(whole, `"calls":[`)
	call, _, _ = strings.Cut(call, ", {\"sid\"")
	for name, rules := range map[string]RowRules{
		"age":    {"calls": {Age: 30 * 24 * time.Hour}},
		"number": {"calls": {Numbers: []string{OwnNumbers}}},
		"field":  {"calls": {Where: map[string]Match{"account_sid": {In: []string{account}}}}},
		"parent": {"calls": {Numbers: []string{OwnNumbers}}, "recordings": {Word: FindParent}},
	} {
		b.Run(name, func(b *testing.B) {
			g := ruledGate(b, rules, someHeld)
			kind, body := "calls", call
			if name == "parent" {
				kind, body = "recordings", `{"sid":"RE1","call_sid":"CA1","duration":"7"}`
			}
			only, rec := g.RecordFilter(as("r"), "twilio", kind), &understudy.Record{Body: []byte(body)}
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				only(rec)
			}
		})
	}
}
