// Lists: what an address asks upstream for, where its links lead, what is marked.

package list_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// An address either asks upstream for a key, or is sent on to its tidy form.
func TestQuestions(t *testing.T) {
	const calls = "/2010-04-01/Accounts/" + viewertest.Account + "/Calls.json"
	const numbers = "/2010-04-01/Accounts/" + viewertest.Account + "/IncomingPhoneNumbers"
	h := viewertest.Open(t)
	for _, c := range []struct{ name, path, zone, key, moved string }{
		{"plain", "/twilio/calls", "", calls + "?PageSize=50", ""},
		{"filter", "/twilio/calls?Status=busy", "", calls + "?Status=busy&PageSize=50", ""},
		{"order", "/twilio/calls?PageSize=20&Status=busy&From=%2B1", "", calls + "?From=%2B1&Status=busy&PageSize=20", ""},
		{"empty inputs", "/twilio/calls?To=&From=&Status=busy&StartTime%3E=&PageSize=50", "", "", "/twilio/calls?Status=busy"},
		{"all empty", "/twilio/calls?To=&PageSize=50", "", "", "/twilio/calls"},
		{"local moment", "/twilio/calls?StartTime%3E=2026-06-01T10:00", "Europe/Berlin", "",
			"/twilio/calls?StartTime%3E=2026-06-01T08%3A00%3A00Z"},
		{"local moment with seconds", "/twilio/calls?StartTime%3C=2026-01-15T10:00:30", "America/New_York", "",
			"/twilio/calls?StartTime%3C=2026-01-15T15%3A00%3A30Z"},
		{"today", "/twilio/calls?Status=busy&StartTime%3E=today", "Europe/Berlin", "",
			"/twilio/calls?Status=busy&StartTime%3E=2026-05-31T22%3A00%3A00Z"},
		{"the last hour", "/twilio/calls?StartTime%3E=-1h", "", "",
			"/twilio/calls?StartTime%3E=2026-06-01T11%3A05%3A00Z"},
		{"seven days of a list by day", "/twilio/conferences?DateCreated%3E=-7d", "Europe/Berlin", "",
			"/twilio/conferences?DateCreated%3E=2026-05-25"},
		{"unknown zone is UTC", "/twilio/calls?StartTime%3E=2026-06-01T10:00", "Mars/Base", "",
			"/twilio/calls?StartTime%3E=2026-06-01T10%3A00%3A00Z"},
		{"skipped hour", "/twilio/calls?StartTime%3E=2026-03-29T02:30", "Europe/Berlin", "",
			"/twilio/calls?StartTime%3E=2026-03-29T01%3A30%3A00Z"},
		{"moment in UTC stays", "/twilio/calls?StartTime%3E=2026-06-01T08:00:00Z", "Europe/Berlin", calls +
			"?StartTime%3E=2026-06-01T08%3A00%3A00Z&PageSize=50", ""},
		{"offset stays", "/twilio/calls?StartTime%3E=2026-06-01T08:00:00%2B02:00", "", calls +
			"?StartTime%3E=2026-06-01T08%3A00%3A00%2B02%3A00&PageSize=50", ""},
		{"day elsewhere", "/twilio/calls?StartTime=2026-06-01", "Europe/Berlin", "",
			"/twilio/calls?StartTime%3E=2026-05-31T22%3A00%3A00Z&StartTime%3C=2026-06-01T21%3A59%3A59Z"},
		{"day the clocks change", "/twilio/messages?DateSent=2026-03-29", "Europe/Berlin", "",
			"/twilio/messages?DateSent%3E=2026-03-28T23%3A00%3A00Z&DateSent%3C=2026-03-29T21%3A59%3A59Z"},
		{"day in UTC", "/twilio/calls?StartTime=2026-06-01", "UTC", calls + "?StartTime=2026-06-01&PageSize=50", ""},
		{"day beside a bound", "/twilio/calls?StartTime=2026-06-01&StartTime%3E=2026-06-01T08:00:00Z", "Europe/Berlin", calls +
			"?StartTime=2026-06-01&StartTime%3E=2026-06-01T08%3A00%3A00Z&PageSize=50", ""},
		{"day as data", "/twilio/calls.json?StartTime=2026-06-01", "Europe/Berlin", calls + "?StartTime=2026-06-01&PageSize=50", ""},
		{"moment as data", "/twilio/calls.json?StartTime%3E=2026-06-01T10:00", "Europe/Berlin", calls +
			"?StartTime%3E=2026-06-01T08%3A00%3A00Z&PageSize=50", ""},
		{"another list", "/twilio/incoming_phone_numbers?understudy.list=toll-free", "", numbers + "/TollFree.json?PageSize=50", ""},
		{"another account", "/twilio/calls?understudy.AccountSid=AC2", "", "/2010-04-01/Accounts/AC2/Calls.json?PageSize=50", ""},
		{"position", "/twilio/calls?Page=1&PageToken=PAx&understudy.back=", "", calls + "?PageSize=50&Page=1&PageToken=PAx", ""},
		{"first page's number", "/twilio/calls?Page=0", "", calls + "?PageSize=50", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.Mirror.Lock()
			h.Mirror.Asked = nil
			h.Mirror.Unlock()
			status, body, head := h.Get(c.path, viewertest.Browser{Token: "alltoken", Zone: c.zone})
			if head.Get("Location") != c.moved {
				t.Fatalf("sent on to %q, want %q (%d %s)", head.Get("Location"), c.moved, status, body)
			}
			if c.moved != "" {
				if status != http.StatusSeeOther {
					t.Errorf("status %d", status)
				}
				return
			}
			h.Mirror.Lock()
			defer h.Mirror.Unlock()
			if !slices.Contains(h.Mirror.Asked, c.key) {
				t.Errorf("%d: asked for %q, want %q", status, h.Mirror.Asked, c.key)
			}
		})
	}
}

func TestWrongQuestions(t *testing.T) {
	h := viewertest.Open(t)
	for path, want := range map[string][]string{
		"/twilio/calls?Frm=1":                                 {"400", "no parameter “Frm”", "Did you mean “From”?"},
		"/twilio/calls?StartTime>>=1":                         {"400", "no parameter “StartTime&gt;&gt;”"},
		"/twilio/calls?understudy.nothing=1":                  {"400", "no parameter “understudy.nothing”"},
		"/twilio/calls?a=%zz":                                 {"400", "Broken percent escape"},
		"/twilio/calls?=1":                                    {"400", "no parameter “”"},
		"/twilio/calls?understudy.back=a%3Db":                 {"400", "not a position"},
		"/twilio/calls?understudy.back=%25zz":                 {"400", "Broken percent escape"},
		"/twilio/incoming_phone_numbers?understudy.list=locl": {"404", "Did you mean “local”?", "?understudy.list=local"},
		"/twilio/calls?PageSize=x":                            {"400", "Twilio refused this"},
		"/twilio/calls/CA1?x=1":                               {"400", "no parameter “x”"},
		"/?x=1":                                               {"400", "no parameter “x”"},
		"/twilio/cals":                                        {"404", "Did you mean “calls”?", `href="/twilio/calls"`},
		"/twilo/calls":                                        {"404", "Did you mean “twilio”?"},
		"/twilio/calls/":                                      {"404", `href="/twilio/calls"`, "slash"},
		"/twilio":                                             {"404", "no page at /twilio"},
		"/twilio/calls/a~b":                                   {"404", "There is no call a~b"},
		"/twilio/calls/CA00000000000000000000000000000000":    {"404", "There is no such call", "See all Calls"},
	} {
		status, body, _ := h.Get(path, viewertest.All)
		for _, w := range want[1:] {
			if !strings.Contains(body, w) {
				t.Errorf("%s: %d does not say %q: %s", path, status, w, regexp.MustCompile(`(?s)<main.*</main>`).FindString(body))
			}
		}
		if got := http.StatusText(status); !strings.Contains(body, `<p class="status">`+want[0]+`</p>`) {
			t.Errorf("%s: %d %s, want %s", path, status, got, want[0])
		}
	}
	status, body, head := h.Do("POST", "/twilio/calls", "a=b", viewertest.All)
	checktest.Equal(t, status, 405, "POST: status")
	checktest.Equal(t, head.Get("Allow"), "GET, HEAD", `POST: head.Get("Allow")`)
	checktest.Contains(t, body, "can only be read", "POST: body")
	if status, _, _ := h.Do("DELETE", "/nowhere", "", viewertest.All); status != 404 {
		t.Errorf("DELETE of nothing: %d", status)
	}
	status, body, head = h.Get("/twilio/calls.json?Frm=1", viewertest.All)
	var data struct {
		Status        int
		Message, Hint string
		Known         []string
	}
	err := json.Unmarshal([]byte(body), &data)
	checktest.MustNoError(t, err, "an error as data; body %s", body)
	checktest.Equal(t, status, 400, "an error as data: status; body %s", body)
	checktest.Equal(t, data.Status, 400, "an error as data: data.Status; body %s", body)
	checktest.Equal(t, data.Known[0], "From", "an error as data: data.Known[0]; body %s", body)
	checktest.Equal(t, head.Get("Content-Type"), "application/json",
		`an error as data: head.Get("Content-Type"); body %s`, body)
}

func TestHead(t *testing.T) {
	h := viewertest.Open(t)
	status, body, head := h.Do("HEAD", "/twilio/calls", "", viewertest.All)
	checktest.Equal(t, status, 200, "status")
	checktest.Equal(t, body, "", "body")
	checktest.True(t, head.Get("Content-Length") != "", `head.Get("Content-Length") is empty`)
	checktest.Equal(t, head.Get("Content-Type"), "text/html; charset=utf-8", `head.Get("Content-Type")`)
}

// Older and Newer lead through the same addresses, the filters with them.
func TestTurningPages(t *testing.T) {
	h := viewertest.Open(t)
	at := "/twilio/calls?Status=completed&PageSize=20"
	var trail []string
	for range 12 {
		trail = append(trail, at)
		page := h.Page(at, viewertest.All)
		if (viewertest.Href(page, "Newer") != "") != (len(trail) > 1) || (viewertest.Href(page, "Newest") != "") != (len(trail) > 1) {
			t.Fatalf("page %d has Newer %q, Newest %q", len(trail), viewertest.Href(page, "Newer"), viewertest.Href(page, "Newest"))
		}
		at = viewertest.Href(page, "Older")
		u, err := url.Parse(at)
		checktest.MustNoError(t, err, "Older leads to")
		checktest.MustEqual(t, u.Query().Get("Status"), "completed", `Older leads to: u.Query().Get("Status")`)
		checktest.MustEqual(t, u.Query().Get("PageSize"), "20", `Older leads to: u.Query().Get("PageSize")`)
		checktest.MustTrue(t, u.Query().Get("PageToken") != "",
			`Older leads to: u.Query().Get("PageToken") is empty`)
	}
	strip := func(s string) string { return regexp.MustCompile(`&?understudy\.back=[^&]*`).ReplaceAllString(s, "") }
	for i := len(trail) - 1; i > len(trail)-1-8; i-- {
		at = viewertest.Href(h.Page(trail[i], viewertest.All), "Newer")
		if strip(at) != strip(trail[i-1]) {
			t.Fatalf("Newer of page %d leads to %s, want %s", i, at, trail[i-1])
		}
		if i > 4 {
			continue
		}
	}
	if newest := viewertest.Href(h.Page(trail[11], viewertest.All), "Newest"); newest != trail[0] {
		t.Errorf("Newest leads to %s", newest)
	}
	last := "/twilio/calls?Status=busy&PageSize=1000"
	if page := h.Page(last, viewertest.All); viewertest.Href(page, "Older") != "" {
		t.Error("the last page has Older")
	}
	if page := h.Page("/twilio/incoming_phone_numbers?understudy.list=local&PageSize=1",
		viewertest.All); !strings.Contains(viewertest.Href(page, "Older"),
		"understudy.list=local") {
		t.Errorf("Older leaves the list: %s", viewertest.Href(page, "Older"))
	}
}

func TestRowsAndLinks(t *testing.T) {
	h := viewertest.Open(t)
	h.Page("/twilio/incoming_phone_numbers", viewertest.All)
	page := h.Page("/twilio/messages?PageSize=1000", viewertest.All)
	for _, want := range []string{
		`<tr class="failed">`, `<span class="pill bad">undelivered</span>`, `<span class="pill busy">`, `<span class="own"`,
		`href="/twilio/number/+`,
		`href="/twilio/messages/SM`, `data-t="Price ($)"`, `<time datetime="2026-06-01T`, "31\u00a0May ", "<bdi>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("messages: no %s", want)
		}
	}
	if strings.Contains(h.Page("/twilio/incoming_phone_numbers", viewertest.All), `class="own"`) {
		t.Error("every number of the list of our own is marked as our own")
	}
	id := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	page = h.Page("/twilio/calls/"+id, viewertest.All)
	for _, want := range []string{
		`href="/twilio/accounts/` + viewertest.Account + `"`, `href="/twilio/calls?ParentCallSid=` + id + `"`, `data-copy="` + id + `"`,
		"Raw JSON",
		"&#34;sid&#34;",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("call: no %s", want)
		}
	}
	page = h.Page("/twilio/accounts/"+viewertest.Account, viewertest.All)
	for _, want := range []string{`href="/twilio/calls"`, `href="/twilio/messages"`} {
		if n := strings.Count(page, want); n != 2 { // the header's and the record's
			t.Errorf("account: %d times %s", n, want)
		}
	}
	number := h.FirstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`)
	page = h.Page("/twilio/incoming_phone_numbers/"+number, viewertest.All)
	for _, want := range []string{`href="/twilio/number/+`, "Everything with ", ">yes</span>"} {
		if !strings.Contains(page, want) {
			t.Errorf("number: no %s", want)
		}
	}
}

func TestData(t *testing.T) {
	h := viewertest.Open(t)
	_, body, head := h.Get("/twilio/calls.json?PageSize=20", viewertest.All)
	var page struct {
		Calls []struct{ Sid string }
		Next  string `json:"next_page_uri"`
	}
	viewertest.Must(t, json.Unmarshal([]byte(body), &page))
	checktest.MustEqual(t, len(page.Calls), 20, "len(page.Calls)")
	checktest.True(t, page.Next != "", "page.Next is empty")
	checktest.True(t,
		!(head.Get("Content-Type") != "application/json" && !strings.HasPrefix(head.Get("Content-Type"), "application/json;")),
		`head.Get("Content-Type") is %q`, head.Get("Content-Type"))
	h.Mirror.Lock()
	for key, p := range h.Mirror.Pages {
		if strings.Contains(key.URI, "Calls.json?PageSize=20") && string(p.Body) != body {
			t.Error("the data are not upstream's bytes")
		}
	}
	h.Mirror.Unlock()
	_, body, _ = h.Get("/twilio/calls/"+page.Calls[0].Sid+".json", viewertest.All)
	var one struct{ Sid string }
	if err := json.Unmarshal([]byte(body), &one); err != nil || one.Sid != page.Calls[0].Sid {
		t.Errorf("a call as data: %v, %s", err, body)
	}
	status, body, _ := h.Get("/twilio/calls/CA00000000000000000000000000000000.json", viewertest.All)
	if status != 404 || !strings.Contains(body, "20404") {
		t.Errorf("a missing call as data: %d %s", status, body)
	}
	_, body, _ = h.Get("/index.json", viewertest.All)
	var home struct {
		Sources []struct {
			Name, State string
			Kinds       []struct {
				Name    string
				Records int
				At      *time.Time `json:"caught_up_to"`
			}
		}
	}
	viewertest.Must(t, json.Unmarshal([]byte(body), &home))
	s := home.Sources[0]
	checktest.Equal(t, s.Name, "twilio", "home as data: s.Name; body %s", body)
	checktest.Equal(t, s.State, "ok", "home as data: s.State; body %s", body)
	checktest.MustEqual(t, len(s.Kinds), 20, "home as data: len(s.Kinds); body %s", body)
	checktest.Equal(t, s.Kinds[1].Records, 5000, "home as data: s.Kinds[1].Records; body %s", body)
	checktest.MustTrue(t, s.Kinds[1].At != nil, "home as data: s.Kinds[1].At is nil; body %s", body)
	checktest.True(t, s.Kinds[0].At == nil, "home as data: s.Kinds[0].At is %v; body %s", s.Kinds[0].At, body)
}

// Whatever the query, the answer is a page, an error of the asker's, or a move
// to an address that moves no further.
func FuzzQuestion(f *testing.F) {
	for _, s := range []string{
		"", "To=&From=%2B1", "StartTime>=2026-06-01T10:00", "StartTime=2026-06-01", "understudy.back=&understudy.back=Page%3D1",
		"PageSize=50&Page=0", "a=%zz", "=", "&&&",
		"understudy.AccountSid=..%2F", "understudy.list=2", "EndTime<=0001-01-01T00:00", "StartTime>=-7d", "StartTime<=today",
		"StartTime=9999-12-31", "Status=%00",
	} {
		f.Add(s, "Europe/Berlin")
	}
	h := viewertest.Open(f)
	h.Mirror.Fetch = func(_ context.Context, f request.Fetch) (*understudy.Page, error) {
		return &understudy.Page{Key: f.Target.Key, Kind: "calls", Shape: "calls", List: true, Status: 200, ContentType: "application/json",
			Body: []byte(`{"calls":[]}`)}, nil
	}
	f.Fuzz(func(t *testing.T, query, zone string) {
		at := "/twilio/calls"
		for step := 0; ; step++ {
			r, err := http.NewRequest("GET", "http://127.0.0.1/twilio/calls", nil)
			viewertest.Must(t, err)
			r.URL.RawQuery = query
			r.SetBasicAuth(viewertest.Account, "alltoken")
			r.Header.Set("Cookie", page.ZoneCookie+"="+url.QueryEscape(zone))
			w := &viewertest.Discard{Head: http.Header{}}
			h.Viewer.ServeHTTP(w, r)
			location := w.Head.Get("Location")
			h.Mirror.Lock()
			clear(h.Mirror.Pages)
			h.Mirror.Asked = nil
			h.Mirror.Unlock()
			if location == "" {
				if w.Status != 200 && w.Status != 400 && w.Status != 404 {
					t.Fatalf("%q: status %d", query, w.Status)
				}
				return
			}
			if step == 1 || !strings.HasPrefix(location, at) {
				t.Fatalf("%q moves on to %q", query, location)
			}
			_, query, _ = strings.Cut(location, "?")
		}
	})
}
