// Tests of filters: the edges, the forms of dates.
package world_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

func TestEdges(t *testing.T) {
	midnight := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		quirk, key, value string
		want              string // of b(efore), m(idnight), n(oon), l(ast second), a(fter)
	}{
		{"", "StartTime", "2026-03-10", "lnm"},
		{"", "StartTime<", "2026-03-10", "mb"},
		{"", "StartTime>", "2026-03-10", "alnm"},
		{"", "StartTime<", "2026-03-10T12:00:00Z", "nmb"},
		{"", "StartTime>", "2026-03-10T12:00:00Z", "aln"},
		{"", "StartTime", "2026-03", "alnmb"},
		{"", "StartTime", "2026-03-10T12:00:00Z", "n"},
		{"", "EndTime<", "2026-03-10", "mb"},
		{world.EdgeExclusive, "StartTime<", "2026-03-10", "b"},
		{world.EdgeExclusive, "StartTime>", "2026-03-10", "aln"},
		{world.BeforeWholeDay, "StartTime<", "2026-03-10", "lnmb"},
		{world.OperatorRefused, "StartTime", "2026-03-10", "lnm"},
		{"", "DateSent", "2026-03-10", "lnm"},
		{"", "DateSent<", "2026-03-10", "lnmb"},
		{"", "DateSent>", "2026-03-10", "alnm"},
		{"", "DateSent<", "2026-03-10T12:00:00Z", "nmb"},
		{world.BeforeMidnight, "DateSent<", "2026-03-10", "mb"},
		{world.EdgeExclusive, "DateSent<", "2026-03-10", "b"},
		{"", "DateSent", ">=2026-03-10", "alnmb"},
	} {
		s := edgeWorld(t, c.quirk, midnight)
		list := "/Calls.json"
		if strings.HasPrefix(c.key, "Date") {
			list = "/Messages.json"
		}
		got := ""
		for _, one := range s.Walk(root+list+"?"+url.QueryEscape(c.key)+"="+url.QueryEscape(c.value), nil) {
			got += one["to"].(string)[len("client:"):]
		}
		if got != c.want {
			t.Errorf("%s %s=%s: %q, want %q", c.quirk, c.key, c.value, got, c.want)
		}
	}
}

// edgeWorld has one call and one message just before, at, within, at the end of
// and after a day. Calls end the second they start.
func edgeWorld(t *testing.T, quirk string, midnight time.Time) slowapitest.API {
	t.Helper()
	var on []string
	if quirk != "" {
		on = []string{quirk}
	}
	r := slowapitest.Start(t, slowapi.Options{Records: 1, Quirks: on, Epoch: midnight.AddDate(-1, 0, 0)})
	clock := midnight.AddDate(-1, 0, 0)
	for _, one := range []struct {
		name string
		at   time.Duration
	}{{"b", -time.Second}, {"m", 0}, {"n", 12 * time.Hour}, {"l", 24*time.Hour - time.Second}, {"a", 24 * time.Hour}} {
		at := midnight.Add(one.at)
		r.Control("/-/advance", fmt.Sprintf(`{"seconds":%d}`, int(at.Sub(clock).Seconds())), 200)
		clock = at
		r.Write("POST", root+"/Calls.json", url.Values{"To": {"client:" + one.name}, "From": {"+15005550001"}}, 201)
		r.Write("POST", root+"/Messages.json", url.Values{"To": {"client:" + one.name}, "Body": {"x"}}, 201)
		for range 3 {
			r.Control("/-/advance", `{}`, 200)
		}
	}
	// What the seed made is out of the way.
	for _, list := range []string{"/Calls", "/Messages"} {
		for _, one := range r.Walk(root+list+".json", nil) {
			if !strings.HasPrefix(fmt.Sprint(one["to"]), "client:") || len(fmt.Sprint(one["to"])) != 8 {
				r.Write("DELETE", root+list+"/"+one["sid"].(string)+".json", nil, 204)
			}
		}
	}
	return r
}

func TestBadDatesAreRefused(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	for _, bad := range []string{"yesterday", "2019-13-01", "2019-02-30", "20190808", "08/08", "2019-08-08T10:11", "1", "2019-08-08T25:00:00Z",
		"2019-08-08 MST", "-", "NaN"} {
		for _, key := range []string{"StartTime", "StartTime<", "EndTime>"} {
			status, body, _ := r.Ask("GET", root+"/Calls.json?"+url.QueryEscape(key)+"="+url.QueryEscape(bad), nil)
			if status != 400 || !strings.Contains(string(body), `{"code":20001,"message":"Invalid date value."`) {
				t.Errorf("%s=%s: %d %s", key, bad, status, body)
			}
		}
	}
}
