// Lists: what an address asks upstream for, where its links lead, what is marked.

package viewer

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/request"
)

// An address either asks upstream for a key, or is sent on to its tidy form.
func TestQuestions(t *testing.T) {
	const calls = "/2010-04-01/Accounts/" + account + "/Calls.json"
	const numbers = "/2010-04-01/Accounts/" + account + "/IncomingPhoneNumbers"
	h := open(t)
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
		{"moment as data", "/twilio/calls.json?StartTime%3E=2026-06-01T10:00", "Europe/Berlin", "",
			"/twilio/calls.json?StartTime%3E=2026-06-01T08%3A00%3A00Z"},
		{"another list", "/twilio/incoming_phone_numbers?understudy.list=toll-free", "", numbers + "/TollFree.json?PageSize=50", ""},
		{"another account", "/twilio/calls?understudy.AccountSid=AC2", "", "/2010-04-01/Accounts/AC2/Calls.json?PageSize=50", ""},
		{"position", "/twilio/calls?Page=1&PageToken=PAx&understudy.back=", "", calls + "?PageSize=50&Page=1&PageToken=PAx", ""},
		{"first page's number", "/twilio/calls?Page=0", "", calls + "?PageSize=50", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.mirror.mu.Lock()
			h.mirror.asked = nil
			h.mirror.mu.Unlock()
			status, body, head := h.get(c.path, as{token: "alltoken", zone: c.zone})
			if head.Get("Location") != c.moved {
				t.Fatalf("sent on to %q, want %q (%d %s)", head.Get("Location"), c.moved, status, body)
			}
			if c.moved != "" {
				if status != http.StatusSeeOther {
					t.Errorf("status %d", status)
				}
				return
			}
			h.mirror.mu.Lock()
			defer h.mirror.mu.Unlock()
			if !slices.Contains(h.mirror.asked, c.key) {
				t.Errorf("%d: asked for %q, want %q", status, h.mirror.asked, c.key)
			}
		})
	}
}

func TestWrongQuestions(t *testing.T) {
	h := open(t)
	for path, want := range map[string][]string{
		"/twilio/calls?Frm=1":                                 {"400", "no parameter “Frm”", "Did you mean “From”?"},
		"/twilio/calls?StartTime>>=1":                         {"400", "no parameter “StartTime&gt;&gt;”"},
		"/twilio/calls?understudy.nothing=1":                  {"400", "no parameter “understudy.nothing”"},
		"/twilio/calls?a=%zz":                                 {"400", "Broken percent escape"},
		"/twilio/calls?=1":                                    {"400", "no parameter “”"},
		"/twilio/calls?understudy.back=a%3Db":                 {"400", "no position"},
		"/twilio/calls?understudy.back=%25zz":                 {"400", "Broken percent escape"},
		"/twilio/incoming_phone_numbers?understudy.list=locl": {"404", "Did you mean “local”?", "?understudy.list=local"},
		"/twilio/calls?PageSize=x":                            {"400", "Twilio refused this"},
		"/twilio/calls/CA1?x=1":                               {"400", "no parameter “x”"},
		"/?x=1":                                               {"400", "no parameter “x”"},
		"/twilio/cals":                                        {"404", "Did you mean “calls”?", `href="/twilio/calls"`},
		"/twilo/calls":                                        {"404", "Did you mean “twilio”?"},
		"/twilio/calls/":                                      {"404", `href="/twilio/calls"`, "slash"},
		"/twilio":                                             {"404", "no page at /twilio"},
		"/twilio/calls/a~b":                                   {"404", "No call is named a~b"},
		"/twilio/calls/CA00000000000000000000000000000000":    {"404", "There is no such call", "See all Calls"},
	} {
		status, body, _ := h.get(path, all)
		for _, w := range want[1:] {
			if !strings.Contains(body, w) {
				t.Errorf("%s: %d does not say %q: %s", path, status, w, regexp.MustCompile(`(?s)<main.*</main>`).FindString(body))
			}
		}
		if got := http.StatusText(status); !strings.Contains(body, `<p class="status">`+want[0]+`</p>`) {
			t.Errorf("%s: %d %s, want %s", path, status, got, want[0])
		}
	}
	status, body, head := h.do("POST", "/twilio/calls", "a=b", all)
	if status != 405 || head.Get("Allow") != "GET, HEAD" || !strings.Contains(body, "can only be read") {
		t.Errorf("POST: %d, Allow %q", status, head.Get("Allow"))
	}
	if status, _, _ := h.do("DELETE", "/nowhere", "", all); status != 404 {
		t.Errorf("DELETE of nothing: %d", status)
	}
	status, body, head = h.get("/twilio/calls.json?Frm=1", all)
	var data struct {
		Status        int
		Message, Hint string
		Known         []string
	}
	if err := json.Unmarshal([]byte(body), &data); err != nil || status != 400 || data.Status != 400 || data.Known[0] != "From" ||
		head.Get("Content-Type") != "application/json" {
		t.Errorf("an error as data: %d %s (%v)", status, body, err)
	}
}

func TestHead(t *testing.T) {
	h := open(t)
	status, body, head := h.do("HEAD", "/twilio/calls", "", all)
	if status != 200 || body != "" || head.Get("Content-Length") == "" || head.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d, %d bytes, %v", status, len(body), head)
	}
}

// href finds the link of a page that has these words in it.
func href(page, words string) string {
	for _, m := range regexp.MustCompile(`(?s)<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>`).FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[2], words) {
			return html.UnescapeString(m[1])
		}
	}
	return ""
}

// Older and Newer lead through the same addresses, the filters with them.
func TestTurningPages(t *testing.T) {
	h := open(t)
	at := "/twilio/calls?Status=completed&PageSize=20"
	var trail []string
	for range 12 {
		trail = append(trail, at)
		page := h.page(at, all)
		if (href(page, "Newer") != "") != (len(trail) > 1) || (href(page, "Newest") != "") != (len(trail) > 1) {
			t.Fatalf("page %d has Newer %q, Newest %q", len(trail), href(page, "Newer"), href(page, "Newest"))
		}
		at = href(page, "Older")
		if u, err := url.Parse(at); err != nil || u.Query().Get("Status") != "completed" || u.Query().Get("PageSize") != "20" ||
			u.Query().Get("PageToken") == "" {
			t.Fatalf("Older leads to %q", at)
		}
	}
	strip := func(s string) string { return regexp.MustCompile(`&?understudy\.back=[^&]*`).ReplaceAllString(s, "") }
	for i := len(trail) - 1; i > len(trail)-1-8; i-- {
		at = href(h.page(trail[i], all), "Newer")
		if strip(at) != strip(trail[i-1]) {
			t.Fatalf("Newer of page %d leads to %s, want %s", i, at, trail[i-1])
		}
		if i > 4 {
			continue
		}
	}
	if newest := href(h.page(trail[11], all), "Newest"); newest != trail[0] {
		t.Errorf("Newest leads to %s", newest)
	}
	last := "/twilio/calls?Status=busy&PageSize=1000"
	if page := h.page(last, all); href(page, "Older") != "" {
		t.Error("the last page has Older")
	}
	if page := h.page("/twilio/incoming_phone_numbers?understudy.list=local&PageSize=1", all); !strings.Contains(href(page, "Older"),
		"understudy.list=local") {
		t.Errorf("Older leaves the list: %s", href(page, "Older"))
	}
}

func TestRowsAndLinks(t *testing.T) {
	h := open(t)
	h.page("/twilio/incoming_phone_numbers", all)
	page := h.page("/twilio/messages?PageSize=1000", all)
	for _, want := range []string{
		`<tr class="failed">`, `<span class="pill bad">undelivered</span>`, `<span class="pill busy">`, `<span class="own"`,
		`href="/twilio/number/+`,
		`href="/twilio/messages/SM`, `data-t="Price ($)"`, `<time datetime="2026-06-01T`, "31\u00a0May ", "<bdi>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("messages: no %s", want)
		}
	}
	if strings.Contains(h.page("/twilio/incoming_phone_numbers", all), `class="own"`) {
		t.Error("every number of the list of our own is marked as our own")
	}
	id := h.firstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	page = h.page("/twilio/calls/"+id, all)
	for _, want := range []string{
		`href="/twilio/accounts/` + account + `"`, `href="/twilio/calls?ParentCallSid=` + id + `"`, `data-copy="` + id + `"`, "Raw JSON",
		"&#34;sid&#34;",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("call: no %s", want)
		}
	}
	page = h.page("/twilio/accounts/"+account, all)
	for _, want := range []string{`href="/twilio/calls"`, `href="/twilio/messages"`} {
		if n := strings.Count(page, want); n != 2 { // the header's and the record's
			t.Errorf("account: %d times %s", n, want)
		}
	}
	number := h.firstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`)
	page = h.page("/twilio/incoming_phone_numbers/"+number, all)
	for _, want := range []string{`href="/twilio/number/+`, "Everything with ", ">yes</span>"} {
		if !strings.Contains(page, want) {
			t.Errorf("number: no %s", want)
		}
	}
}

// The failed record's page says which code it carries and where that is explained.
func TestReason(t *testing.T) {
	h := open(t)
	rows := h.page("/twilio/messages?PageSize=1000", all)
	for _, m := range regexp.MustCompile(`<tr class="failed">.*?/twilio/messages/((?:SM|MM)[0-9a-f]{32})`).FindAllStringSubmatch(rows, -1) {
		page := h.page("/twilio/messages/"+m[1], all)
		if code := regexp.MustCompile(`Error code (\d+): [A-Z]`).FindStringSubmatch(page); code != nil {
			if !strings.Contains(page, `href="https://www.twilio.com/docs/api/errors/`+code[1]+`" rel="noopener noreferrer external"`) {
				t.Errorf("code %s is not explained", code[1])
			}
			return
		}
	}
	t.Error("no failed message with a code")
}

func TestData(t *testing.T) {
	h := open(t)
	_, body, head := h.get("/twilio/calls.json?PageSize=20", all)
	var page struct {
		Calls []struct{ Sid string }
		Next  string `json:"next_page_uri"`
	}
	must(t, json.Unmarshal([]byte(body), &page))
	if len(page.Calls) != 20 || page.Next == "" || head.Get("Content-Type") != "application/json" &&
		!strings.HasPrefix(head.Get("Content-Type"), "application/json;") {
		t.Errorf("%d calls, next %q, %s", len(page.Calls), page.Next, head.Get("Content-Type"))
	}
	h.mirror.mu.Lock()
	for key, p := range h.mirror.pages {
		if strings.Contains(key.URI, "Calls.json?PageSize=20") && string(p.Body) != body {
			t.Error("the data are not upstream's bytes")
		}
	}
	h.mirror.mu.Unlock()
	_, body, _ = h.get("/twilio/calls/"+page.Calls[0].Sid+".json", all)
	var one struct{ Sid string }
	if err := json.Unmarshal([]byte(body), &one); err != nil || one.Sid != page.Calls[0].Sid {
		t.Errorf("a call as data: %v, %s", err, body)
	}
	status, body, _ := h.get("/twilio/calls/CA00000000000000000000000000000000.json", all)
	if status != 404 || !strings.Contains(body, "20404") {
		t.Errorf("a missing call as data: %d %s", status, body)
	}
	_, body, _ = h.get("/index.json", all)
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
	must(t, json.Unmarshal([]byte(body), &home))
	if s := home.Sources[0]; s.Name != "twilio" || s.State != "ok" || len(s.Kinds) != 20 || s.Kinds[1].Records != 5000 ||
		s.Kinds[1].At == nil || s.Kinds[0].At != nil {
		t.Errorf("home as data: %s", body)
	}
}

// The newest page of our own numbers that is slow to come delays no page; the
// viewer ends it when it closes.
func TestMarksAreNotWaitedFor(t *testing.T) {
	held := make(chan struct{})
	h := open(t)
	h.mirror.mu.Lock()
	h.mirror.fetch = slowNumbers(h.mirror.fetch, held)
	h.mirror.mu.Unlock()
	for range 3 {
		if page := h.page("/twilio/calls", hurried); strings.Contains(page, `class="own"`) {
			t.Error("marked by numbers that never came")
		}
	}
	select {
	case <-held:
		t.Error("the question about numbers ended with the page")
	default:
	}
	must(t, h.viewer.Visitor.Close())
	<-held
	h.mirror.mu.Lock()
	defer h.mirror.mu.Unlock()
	n := 0
	for _, uri := range h.mirror.asked {
		if strings.Contains(uri, "IncomingPhoneNumbers") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("asked %d times at once", n)
	}
}

func slowNumbers(fetch func(context.Context, request.Fetch) (*understudy.Page, error),
	held chan struct{}) func(context.Context, request.Fetch) (*understudy.Page, error) {
	return func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if strings.Contains(f.Target.Key.URI, "IncomingPhoneNumbers") {
			<-ctx.Done()
			close(held)
			return nil, ctx.Err()
		}
		return fetch(ctx, f)
	}
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
	h := open(f)
	h.mirror.fetch = func(_ context.Context, f request.Fetch) (*understudy.Page, error) {
		return &understudy.Page{Key: f.Target.Key, Kind: "calls", Shape: "calls", List: true, Status: 200, ContentType: "application/json",
			Body: []byte(`{"calls":[]}`)}, nil
	}
	f.Fuzz(func(t *testing.T, query, zone string) {
		at := "/twilio/calls"
		for step := 0; ; step++ {
			r, err := http.NewRequest("GET", "http://127.0.0.1/twilio/calls", nil)
			must(t, err)
			r.URL.RawQuery = query
			r.SetBasicAuth(account, "alltoken")
			r.Header.Set("Cookie", page.ZoneCookie+"="+url.QueryEscape(zone))
			w := &discard{head: http.Header{}}
			h.viewer.ServeHTTP(w, r)
			location := w.head.Get("Location")
			h.mirror.mu.Lock()
			clear(h.mirror.pages)
			h.mirror.asked = nil
			h.mirror.mu.Unlock()
			if location == "" {
				if w.status != 200 && w.status != 400 && w.status != 404 {
					t.Fatalf("%q: status %d", query, w.status)
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
