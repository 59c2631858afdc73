// Tests of the Monitor API: envelope, absolute URLs, tokens, filters, range.
package kinds_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

// monitorPage is a list's answer there.
type monitorPage struct {
	Alerts slowapitest.Records `json:"alerts"`
	Events slowapitest.Records `json:"events"`
	Meta   struct {
		First    string  `json:"first_page_url"`
		Key      string  `json:"key"`
		Next     *string `json:"next_page_url"`
		Page     int64   `json:"page"`
		Size     int64   `json:"page_size"`
		Previous *string `json:"previous_page_url"`
		URL      string  `json:"url"`
	} `json:"meta"`
}

func (p *monitorPage) records() slowapitest.Records { return append(p.Alerts, p.Events...) }

// monitor reads a list's page.
func monitor(r slowapitest.API, target string) (p monitorPage) {
	r.T.Helper()
	if err := format.DecodeStrict(r.Get(strings.TrimPrefix(target, r.Web.URL)), &p); err != nil {
		r.T.Fatalf("GET %s: %v", target, err)
	}
	return p
}

// walkMonitor reads a list to its end.
func walkMonitor(r slowapitest.API, target string) (all slowapitest.Records) {
	r.T.Helper()
	for {
		p := monitor(r, target)
		all = append(all, p.records()...)
		if p.Meta.Next == nil {
			return all
		}
		target = *p.Meta.Next
	}
}

func TestMonitorPages(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 2000})
	for path, key := range map[string]string{"/v1/Alerts": "alerts", "/v1/Events": "events"} {
		all := walkMonitor(r, path+"?PageSize=1000")
		if len(all) != 40 {
			t.Errorf("%s: %d records, want 40", path, len(all))
		}
		if got := walkMonitor(r, path+"?PageSize=7").SIDs(); !slices.Equal(got, all.SIDs()) {
			t.Errorf("%s by 7: another walk than by 1000", path)
		}
		base := r.Web.URL + path + "?PageSize=7&Page="
		first := monitor(r, path+"?PageSize=7")
		second := monitor(r, *first.Meta.Next)
		if want := base + "1&PageToken=PA" + first.records().SIDs()[6]; *first.Meta.Next != want || second.Meta.URL != want {
			t.Errorf("next %s, url %s, want %s", *first.Meta.Next, second.Meta.URL, want)
		}
		{
			want := base + "0&PageToken=PB" + second.records().SIDs()[0]
			checktest.Equal(t, *second.Meta.Previous, want, "*second.Meta.Previous")
			checktest.Equal(t, second.Meta.First, base+"0", "second.Meta.First")
			checktest.Equal(t, second.Meta.Page, 1, "second.Meta.Page")
			checktest.Equal(t, second.Meta.Size, 7, "second.Meta.Size")
			checktest.Equal(t, second.Meta.Key, key, "second.Meta.Key")
		}
		if back := monitor(r, *second.Meta.Previous); !slices.Equal(back.records().SIDs(), first.records().SIDs()) || back.Meta.Previous != nil {
			t.Error("the page before the second is not the first")
		}
		for _, one := range all {
			if one["url"] != r.Web.URL+path+"/"+one["sid"].(string) {
				t.Fatalf("url %v", one["url"])
			}
		}
	}
}

// TestMonitorSaysWhereItIsAsked: its URLs bear the address asked at, and an
// HTTP/1.0 request without Host gets that of the connection.
func TestMonitorSaysWhereItIsAsked(t *testing.T) {
	s, err := slowapi.New(slowapi.Options{Records: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q := httptest.NewRequest("GET", "http://slow.example:81/v1/Alerts?PageSize=1", nil)
	q.SetBasicAuth(mainSID, "slowapitoken")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, q)
	if !strings.Contains(w.Body.String(), `"url":"http://slow.example:81/v1/Alerts?PageSize=1&Page=0"`) {
		t.Errorf("%s", w.Body)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/Alerts HTTP/1.0\r\nAuthorization: %s\r\n\r\n", q.Header.Get("Authorization"))
	raw, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(raw), `"url":"`+web.URL+`/v1/Alerts?PageSize=50&Page=0"`) {
		t.Errorf("%v %s", err, raw)
	}
}

// TestMonitorFilters asks for what half the records have and compares with the
// whole list.
func TestMonitorFilters(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 4000})
	for _, c := range []struct{ path, key, field string }{
		{"/v1/Alerts", "LogLevel", "log_level"}, {"/v1/Alerts", "ResourceSid", "resource_sid"},
		{"/v1/Events", "ActorSid", "actor_sid"}, {"/v1/Events", "EventType", "event_type"},
		{"/v1/Events", "ResourceSid", "resource_sid"}, {"/v1/Events", "SourceIpAddress", "source_ip_address"},
	} {
		all := walkMonitor(r, c.path+"?PageSize=1000")
		value := all[len(all)/2][c.field].(string)
		want := slices.DeleteFunc(slices.Clone(all), func(one record) bool { return one[c.field] != value })
		got := walkMonitor(r, c.path+"?PageSize=3&"+c.key+"="+url.QueryEscape(value))
		if !slices.Equal(got.SIDs(), want.SIDs()) || len(want) == len(all) {
			t.Errorf("%s?%s=%s: %d, want %d of %d", c.path, c.key, value, len(got), len(want), len(all))
		}
		if none := walkMonitor(r, c.path+"?"+c.key+"=nobody"); len(none) != 0 {
			t.Errorf("%s?%s=nobody: %d", c.path, c.key, len(none))
		}
	}
	levels := map[any]int{}
	for _, one := range walkMonitor(r, "/v1/Alerts?PageSize=1000") {
		levels[one["log_level"]]++
	}
	if len(levels) != 4 {
		t.Errorf("log levels: %v", levels)
	}
}

func TestMonitorDates(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5000})
	for path, field := range map[string]string{"/v1/Alerts": "date_generated", "/v1/Events": "event_date"} {
		all := walkMonitor(r, path+"?PageSize=1000")
		last := time.Now().AddDate(1000, 0, 0)
		for _, one := range all {
			at, err := time.Parse(time.RFC3339, one[field].(string))
			checktest.MustNoError(t, err, "%s %v after %s", field, one[field], last)
			checktest.MustTrue(t, !at.After(last), "%s %v after %s: at.After(last) is true", field, one[field], last)
			checktest.MustTrue(t, strings.HasSuffix(one[field].(string), "Z"),
				"%s %v after %s: one[field].(string) is %q", field, one[field], last, one[field].(string))
			last = at
		}
		edge := all[len(all)/9][field].(string)
		for query, keep := range map[string]func(at string) bool{
			"StartDate=" + edge:                       func(at string) bool { return at >= edge },
			"StartDate=2026-05-20&EndDate=2026-05-25": func(at string) bool { return at >= "2026-05-20" && at < "2026-05-26" },
			"StartDate=2026-05-20T12:00:00Z&EndDate=2026-05-20T18:00:00Z": func(at string) bool {
				return at >= "2026-05-20T12:00:00Z" &&
					at <= "2026-05-20T18:00:00Z"
			},
			"StartDate=2026-03-10&EndDate=2026-04-09": func(at string) bool { return at >= "2026-03-10" && at < "2026-04-10" },
			"EndDate=2026-04-09":                      func(at string) bool { return at < "2026-04-10" },
		} {
			want := slices.DeleteFunc(slices.Clone(all), func(one record) bool { return !keep(one[field].(string)) })
			got := walkMonitor(r, path+"?PageSize=4&"+query)
			checktest.True(t, slices.Equal(got.SIDs(), want.SIDs()),
				"%s?%s: slices.Equal(got.SIDs(), want.SIDs()) is false", path, query)
			checktest.True(t, !(len(want) == 0 && !strings.Contains(query, "T12")),
				`%s?%s: len(want) == 0 && !strings.Contains(query, "T12"); len(want) is %v`, path, query, len(want))
			checktest.True(t, len(want) != len(all), "%s?%s: len(want) is %v", path, query, len(want))
		}
		status, body, _ := r.Ask("GET", path+"?StartDate=soon", nil)
		if status != 400 || !strings.Contains(string(body), "Invalid date value.") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestAlertsOfMoreThanAMonth(t *testing.T) {
	strictly := slowapitest.Start(t, slowapi.Options{Records: 500})
	forgiving := slowapitest.Start(t, slowapi.Options{Records: 500, Quirks: []string{world.RangeForgiven}})
	for _, query := range []string{"StartDate=2026-04-01", "StartDate=2026-03-01&EndDate=2026-04-01", "StartDate=2020-01-01T00:00:00Z&End" +
		"Date=2026-06-01"} {
		status, body, _ := strictly.Ask("GET", "/v1/Alerts?"+query, nil)
		if status != 400 || !strings.Contains(string(body), `"code":20001`) {
			t.Errorf("%s: %d %s", query, status, body)
		}
		monitor(forgiving, "/v1/Alerts?"+query)
	}
	monitor(strictly, "/v1/Alerts?StartDate=2026-05-02")
	monitor(strictly, "/v1/Alerts?StartDate=2026-03-01&EndDate=2026-03-31")
	monitor(strictly, "/v1/Events?StartDate=2026-01-01") // events know no such rule
}

// TestAlertsTell: what an alert is of is there, its row says less than its
// instance, and both tell numbers and bodies that a policy may hide.
func TestAlertsTell(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5000})
	more := []string{"request_headers", "request_variables", "response_body", "response_headers"}
	var ofCalls, ofMessages, numbers, bodies int
	for _, row := range walkMonitor(r, "/v1/Alerts?PageSize=1000") {
		one := r.One("/v1/Alerts/" + row["sid"].(string))
		for _, field := range more {
			if _, there := row[field]; there || one[field] == nil {
				t.Fatalf("%s in a row, or not in an instance: %v", field, one)
			}
			delete(one, field)
		}
		if fmt.Sprint(one) != fmt.Sprint(row) {
			t.Fatalf("apart from %v the instance %v is not its row %v", more, one, row)
		}
		resource, list := row["resource_sid"].(string), "/Messages/"
		if strings.HasPrefix(resource, "CA") {
			list = "/Calls/"
			ofCalls++
		} else {
			ofMessages++
		}
		of := r.One(root + list + resource + ".json")
		if made := slowapitest.ParseTime(t, of["date_created"]); row["date_created"].(string) < made.Format(time.RFC3339) {
			t.Fatalf("an alert of %v about something made at %s", row["date_created"], made)
		}
		said := fmt.Sprint(row["alert_text"], row["request_url"])
		if to := url.QueryEscape(fmt.Sprint(of["to"])); strings.Contains(said, to) {
			numbers++
		}
		if text, _ := of["body"].(string); text != "" && strings.Contains(said, url.QueryEscape(text)) {
			bodies++
		}
	}
	checktest.True(t, ofCalls >= 40, "ofCalls is %v, want >= 40", ofCalls)
	checktest.True(t, ofMessages >= 15, "ofMessages is %v, want >= 15", ofMessages)
	checktest.True(t, numbers >= 20, "numbers is %v, want >= 20", numbers)
	checktest.True(t, bodies >= 3, "bodies is %v, want >= 3", bodies)
}

func TestAdvanceMakesAlerts(t *testing.T) {
	path := t.TempDir() + "/journal"
	r := slowapitest.Start(t, slowapi.Options{Records: 500, Journal: path})
	if got := r.Control("/-/advance", `{"alerts":3,"seconds":60}`, 200); !strings.Contains(got, `"created":{"alerts":3}`) {
		t.Error(got)
	}
	all := walkMonitor(r, "/v1/Alerts")
	checktest.MustEqual(t, len(all), 13, "len(all)")
	checktest.Equal(t, all[2]["date_created"], "2026-06-01T12:01:00Z", `all[2]["date_created"]`)
	checktest.True(t, all[3]["date_created"] != all[2]["date_created"], `all[3]["date_created"] is %v`,
		all[3]["date_created"])
	for _, one := range all[:3] {
		if list := map[string]string{"CA": "/Calls/", "SM": "/Messages/", "MM": "/Messages/"}[one["resource_sid"].(string)[:2]]; list == "" {
			t.Errorf("an alert of %v", one["resource_sid"])
		} else {
			r.One(root + list + one["resource_sid"].(string) + ".json")
		}
	}
	if len(r.Page(root+"/Notifications.json").Records) != 10 {
		t.Error("alerts made notifications")
	}
	_ = r.Server.Close()
	restarted := slowapitest.Start(t, slowapi.Options{Records: 500, Journal: path})
	if again := walkMonitor(restarted, "/v1/Alerts"); !slices.Equal(again.SIDs(), all.SIDs()) {
		t.Error("a restart forgot alerts")
	}
}

func TestMonitorPathsAndMethods(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 500})
	alert, event := walkMonitor(r, "/v1/Alerts").SIDs()[0], walkMonitor(r, "/v1/Events").SIDs()[0]
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/v1/Alerts/" + event, 404}, {"GET", "/v1/Events/" + alert, 404}, {"GET", "/v1/Alerts/NO1", 404},
		{"GET", "/v1/Alerts.json", 404}, {"GET", "/v1/Alerts/" + alert + ".json", 404}, {"GET", "/v1/", 404}, {"GET", "/v1", 404},
		{"GET", "/v1/Calls", 404}, {"GET", "/2010-04-01/Alerts.json", 404}, {"GET", root + "/Alerts.json", 404},
		{"POST", "/v1/Alerts", 405}, {"DELETE", "/v1/Alerts/" + alert, 405}, {"POST", "/v1/Events/" + event, 405},
		{"GET", "/v1/Alerts?PageToken=PA" + event, 400}, {"GET", "/v1/Alerts?PageSize=0", 400},
		{"HEAD", "/v1/Alerts", 200}, {"GET", "/v1/Events/" + event, 200},
	} {
		if status, body, _ := r.Ask(c.method, c.target, nil); status != c.status || c.method != "HEAD" && !json.Valid(body) {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.target, status, body, c.status)
		}
	}
	req, _ := http.NewRequest("GET", r.Web.URL+"/v1/Alerts", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("without credentials: %d", resp.StatusCode)
	}
}

func TestEventsTell(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 3000})
	for _, one := range walkMonitor(r, "/v1/Events") {
		links := one["links"].(record)
		target := strings.TrimPrefix(links["resource"].(string), r.Web.URL)
		status, _, _ := r.Ask("GET", target+".json", nil)
		if key := strings.HasPrefix(one["resource_sid"].(string), "SK"); status != 200 && !key || status != 404 && key {
			t.Errorf("%v of %s: %d", one["event_type"], target, status)
		}
		if !strings.HasSuffix(target, one["resource_sid"].(string)) || !format.IsSID(one["actor_sid"].(string), "US") {
			t.Errorf("%v", one)
		}
	}
}
