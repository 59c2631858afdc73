// Edges: times that lie just on what is asked for, in every form, and values
// that nearly fit.

package compose_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy/mirror/compose/composetest"
	"understudy/spec"
)

// timed are lists with filters on a time, and the field those look at.
var timed = []struct{ path, kind, filter, field string }{
	{root + "/Calls.json", "calls", "StartTime", "start_time"},
	{root + "/Calls.json", "calls", "EndTime", "end_time"},
	{root + "/Messages.json", "messages", "DateSent", "date_sent"},
	{root + "/Conferences.json", "conferences", "DateUpdated", "date_updated"},
	{root + "/Notifications.json", "notifications", "MessageDate", "message_date"},
	{"/v1/Alerts", "alerts", "", "date_created"},
	{"/v1/Events", "monitor_events", "", "event_date"},
}

// edge compares requests for times just on and beside those of some records,
// and for whole days.
func (r *rig) edges() {
	r.t.Helper()
	for _, l := range timed {
		kind := r.src.Spec.Kind(l.kind)
		ids := r.world.Present(l.kind)
		for _, i := range []int{0, len(ids) / 7, len(ids) / 4} {
			unix := spec.Unix(kind.Field(l.field).Type, []byte(composetest.Text(r.world.Held(l.kind, ids[i]).Body, l.field)))
			if unix == 0 {
				continue
			}
			at := time.Unix(unix, 0).UTC()
			for _, name := range []string{l.filter, l.filter + "<", l.filter + ">"} {
				if l.filter == "" {
					name = map[string]string{"": "StartDate", "<": "EndDate", ">": "StartDate"}[name]
				}
				for _, value := range []string{
					at.Format(time.RFC3339), at.Add(time.Second).Format(time.RFC3339), at.Add(-time.Second).Format(time.RFC3339),
					at.Format(time.DateOnly), at.AddDate(0, 0, 1).Format(time.DateOnly), at.Format("2006-01"), at.Format("2006"),
				} {
					r.same(composetest.Request{Target: fmt.Sprintf("%s?%s=%s&PageSize=20", l.path, url.QueryEscape(name), url.QueryEscape(value)),
						Kind: kind})
				}
			}
		}
	}
}

func TestEdges(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"": nil, "edge-exclusive": quirks["edge-exclusive"], "before-whole-day": quirks["before-whole-day"],
		"before-midnight": quirks["before-midnight"],
	} {
		if change == nil {
			newRig(t, 1, nil).edges()
			continue
		}
		newRig(t, 1, sp(t, change), name).edges()
	}
}

// Midnight, exactly: a record that stands on it.
func TestMidnight(t *testing.T) {
	for name, change := range quirks {
		if !strings.HasPrefix(name, "before-") && name != "edge-exclusive" {
			continue
		}
		r := newRig(t, 1, sp(t, change), name)
		r.advance(fmt.Sprintf(`{"calls":1,"messages":1,"seconds":%d}`, 12*3600)) // the epoch is at noon
		r.advance(`{"seconds":0}`)
		r.walk()
		for _, one := range []string{"Calls.json?StartTime", "Messages.json?DateSent"} {
			for _, op := range []string{"", "%3C", "%3E"} {
				for _, day := range []string{"2026-06-01", "2026-06-02", "2026-06-03"} {
					kind, _, _ := strings.Cut(strings.ToLower(one), ".")
					r.same(composetest.Request{Target: root + "/" + one + op + "=" + day + "&PageSize=3", Kind: r.src.Spec.Kind(kind)})
				}
			}
		}
	}
}

// Each form of a date finds the record of that second.
func TestDateForms(t *testing.T) {
	r := newRig(t, 1, nil)
	calls := r.src.Spec.Kind("calls")
	at := time.Unix(spec.Unix(spec.TypeRFC2822, []byte(composetest.Text(r.world.Held("calls", r.world.Present("calls")[40]).Body,
		"start_time"))), 0).UTC()
	values := []string{at.Format(time.RFC3339), at.In(time.FixedZone("", 5*3600+1800)).Format(time.RFC3339),
		at.In(time.FixedZone("", -7*3600)).Format("2006-01-02T15:04:05.000Z0700"),
		at.Format("2006-01-02T15:04:05"), at.Format("2006-01-02 15:04:05.250"), at.Format("01/02/2006 15:04:05")}
	for zone, hours := range map[string]int{"UTC": 0, "GMT": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
		"PST": -8, "PDT": -7} {
		values = append(values, at.Add(time.Duration(hours)*time.Hour).Format("01/02/2006 15:04:05 ")+zone)
	}
	for _, value := range values {
		before := r.rows
		r.same(composetest.Request{Target: root + "/Calls.json?StartTime=" + url.QueryEscape(value), Kind: calls})
		if r.rows == before {
			t.Errorf("%s finds nothing", value)
		}
	}
}

// How far back, and how long a stretch, to the second and to the day.
func TestReach(t *testing.T) {
	r := newRig(t, 1, sp(t, quirks["retention"]), "retention")
	for _, seconds := range []int{-1, 0, 1} {
		at := epoch.AddDate(0, 0, -400).Add(time.Duration(seconds) * time.Second).Format(time.RFC3339)
		for _, op := range []string{"", "%3C", "%3E"} {
			r.same(composetest.Request{Target: root + "/Messages.json?DateSent" + op + "=" + at, Kind: r.src.Spec.Kind("messages")})
		}
	}
	for _, days := range []int{29, 30, 31} {
		for _, end := range []string{"", "&EndDate=2026-05-20", "&EndDate=2026-05-20T23:00:00Z", "&EndDate=soon", "&EndDate=%3E2026-05-20"} {
			to := epoch
			if strings.HasPrefix(end, "&EndDate=2") {
				to = time.Date(2026, 5, 20, 0, 0, 0, 0, time.UTC)
			}
			r.same(composetest.Request{Target: "/v1/Alerts?StartDate=" + to.AddDate(0, 0, -days).Format(time.DateOnly) + end,
				Kind: r.src.Spec.Kind("alerts")})
		}
	}
	if r.refused < 5 || r.composed-r.refused < 5 {
		t.Errorf("%d refused, %d answered", r.refused, r.composed-r.refused)
	}
}

// Values that nearly fit.
func TestNearly(t *testing.T) {
	r := newRig(t, 1, nil)
	r.from = r.world.Loose() // the tests alone decide
	number := composetest.Text(r.world.Held("incoming_phone_numbers", r.world.Present("incoming_phone_numbers")[0]).Body, "phone_number")
	message := r.world.Present("messages")[0]
	for _, one := range []struct{ kind, target string }{
		{"calls", "/Calls.json?ParentCallSid=null"}, {"calls", "/Calls.json?Status=Completed"},
		{"incoming_phone_numbers", "/IncomingPhoneNumbers.json?PhoneNumber=*" + number[1:]},
		{"incoming_phone_numbers", "/IncomingPhoneNumbers.json?PhoneNumber=" + number[1:4] + strings.Repeat("*", len(number)-4)},
		{"incoming_phone_numbers", "/IncomingPhoneNumbers.json?PhoneNumber=%2B" + number[1:] + "*"},
		{"incoming_phone_numbers", "/IncomingPhoneNumbers.json?Beta=TRUE"},
		{"incoming_phone_numbers", "/IncomingPhoneNumbers.json?Beta=fal%C5%BFe"},
		{"calls", "/Calls.json?PageToken=PA" + message}, {"calls", "/Calls.json?PageToken=PB" + message}, {"calls", "/Calls.json?PageToken=PA"},
		{"calls", "/Calls.json?PageToken=pa" + r.world.Present("calls")[0]},
		{"messages", "/Messages.json?PageToken=PA" + message + "&PageToken="},
		{"calls", "/Calls.json?Page=2&Page=0&PageSize=3"}, {"calls", "/Calls.json?Page=0&Page=2&PageSize=3&PageSize=2"},
		{"calls", "/Calls.json?PageSize=2&PageSize"},
	} {
		r.same(composetest.Request{Target: root + one.target, Kind: r.src.Spec.Kind(one.kind)})
	}
}
