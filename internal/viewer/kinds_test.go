// Kinds: lists under records, what stands on a record's page, counts, codes,
// contents, the way to every kind.

package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/request"
)

// Every kind of the spec has a page, and a record's page where it has an id,
// that shows what upstream has and can be told by a reader of HTML.
func TestEveryKind(t *testing.T) {
	h := open(t)
	conference := h.firstID("/twilio/conferences", `CF[0-9a-f]{32}`)
	call := h.firstID("/twilio/notifications", `/twilio/calls/CA[0-9a-f]{32}`)[len("/twilio/calls/"):]
	queue := h.firstID("/twilio/queues", `QU[0-9a-f]{32}`)
	given := map[string]string{
		"participants": "?ConferenceSid=" + conference, "call_events": "?CallSid=" + call, "queue_members": "?QueueSid=" + queue,
		"available_phone_numbers": "?CountryCode=US", "media": "?MessageSid=" + h.pictured(),
	}
	for _, k := range h.spec.Kinds {
		page := h.page("/twilio/"+k.Name+given[k.Name], berlin)
		wellFormed(t, k.Name, page)
		rows := regexp.MustCompile(`<tr[ >]`).FindAllString(page, -1)
		switch {
		case len(k.Lists) == 0:
			if !strings.Contains(page, "<dl>") {
				t.Errorf("%s: no fields", k.Name)
			}
			continue
		case len(rows) < 2 && k.Name != "queue_members":
			t.Errorf("%s: no rows", k.Name)
		}
		if len(k.ID) == 0 || len(rows) < 2 {
			continue
		}
		at := regexp.MustCompile(`<td[^>]*><a href="(/twilio/` + k.Name + `/[^"]+)"`).FindStringSubmatch(page)
		if at == nil {
			t.Errorf("%s: no row leads to its record", k.Name)
			continue
		}
		record := h.page(html.UnescapeString(at[1]), berlin)
		wellFormed(t, at[1], record)
		if !strings.Contains(record, "Raw JSON") || !strings.Contains(record, `aria-label="Breadcrumb"`) {
			t.Errorf("%s is no record", at[1])
		}
		data := strings.Replace(html.UnescapeString(at[1]), "?", ".json?", 1)
		if !strings.Contains(data, "?") {
			data += ".json"
		}
		if status, body, _ := h.get(data, all); status != 200 || !json.Valid([]byte(body)) || strings.Contains(body, "/-/media/") {
			t.Errorf("%s: %d", data, status)
		}
	}
}

// pictured is a message with media.
func (h *fixture) pictured() string {
	h.Helper()
	var page struct {
		Messages []struct {
			Sid string
			N   string `json:"num_media"`
		}
	}
	_, body, _ := h.get("/twilio/messages.json?PageSize=1000", all)
	must(h, json.Unmarshal([]byte(body), &page))
	for _, m := range page.Messages {
		if m.N != "0" {
			return m.Sid
		}
	}
	h.Fatal("no message with media")
	return ""
}

// Which list an address means, and what it asks upstream for.
func TestListsUnderRecords(t *testing.T) {
	const of = "/2010-04-01/Accounts/" + account
	h := open(t)
	for path, want := range map[string]string{
		"/twilio/participants?ConferenceSid=CF1": of + "/Conferences/CF1/Participants.json?PageSize=50",
		"/twilio/participants?ConferenceSid=CF1&Muted=true": of +
			"/Conferences/CF1/Participants.json?Muted=true&PageSize=50",
		"/twilio/recordings?CallSid=CA1":                           of + "/Recordings.json?CallSid=CA1&PageSize=50",
		"/twilio/recordings?understudy.list=of-a-call&CallSid=CA1": of + "/Calls/CA1/Recordings.json?PageSize=50",
		"/twilio/notifications?CallSid=CA1":                        of + "/Calls/CA1/Notifications.json?PageSize=50",
		"/twilio/notifications?CallSid=CA1&Log=0":                  of + "/Calls/CA1/Notifications.json?Log=0&PageSize=50",
		"/twilio/call_events?CallSid=CA1":                          of + "/Calls/CA1/Events.json?PageSize=50",
		"/twilio/media?MessageSid=SM1":                             of + "/Messages/SM1/Media.json?PageSize=50",
		"/twilio/media/ME1?MessageSid=SM1":                         of + "/Messages/SM1/Media/ME1.json",
		"/twilio/participants/CF1~CA1":                             of + "/Conferences/CF1/Participants/CA1.json",
		"/twilio/available_phone_numbers?CountryCode=US&InRegion=NY": of +
			"/AvailablePhoneNumbers/US/Local.json?InRegion=NY&PageSize=50",
		"/twilio/available_phone_numbers?understudy.list=toll-free&CountryCode=US": of +
			"/AvailablePhoneNumbers/US/TollFree.json?PageSize=50",
		"/twilio/alerts?LogLevel=error": "/v1/Alerts?LogLevel=error&PageSize=50",
		"/twilio/participants?understudy.AccountSid=AC2&ConferenceSid=CF1": "" +
			"/2010-04-01/Accounts/AC2/Conferences/CF1/Participants.json?PageSize=50",
		"/twilio/balance": of + "/Balance.json",
		"/twilio/recordings?IncludeSoftDeleted=true&CallSid=CA1&DateCreated=2026-05-01": of +
			"/Recordings.json?DateCreated=2026-05-01&CallSid=CA1&IncludeSoftDeleted=true&PageSize=50",
	} {
		h.mirror.mu.Lock()
		h.mirror.asked = nil
		h.mirror.mu.Unlock()
		status, body, head := h.get(path, all)
		h.mirror.mu.Lock()
		if len(h.mirror.asked) == 0 || !contains(h.mirror.asked, want) {
			t.Errorf("%s (%d %s): asked for %q, want %s: %.300s", path, status, head.Get("Location"), h.mirror.asked, want,
				regexp.MustCompile(`(?s)<main.*`).FindString(body))
		}
		h.mirror.mu.Unlock()
	}
	_, _, head := h.get("/twilio/notifications?understudy.list=of-a-call&CallSid=CA1&Log=", all)
	if at := head.Get("Location"); at != "/twilio/notifications?CallSid=CA1" {
		t.Errorf("an address that says too much leads to %q", at)
	}
}

func contains(all []string, want string) bool {
	for _, s := range all {
		if s == want {
			return true
		}
	}
	return false
}

// A list that needs a record asks for it; nothing is asked of the mirror.
func TestLacking(t *testing.T) {
	h := open(t)
	before := h.mirror.count()
	if _, _, head := h.get("/twilio/participants?ConferenceSid=", all); head.Get("Location") != "/twilio/participants" {
		t.Errorf("an empty input leads to %q", head.Get("Location"))
	}
	page := h.page("/twilio/participants", all)
	if !strings.Contains(page, `name="ConferenceSid" type="text" placeholder="CF…" required>`) ||
		!strings.Contains(page, `href="/twilio/conferences">Pick a conference`) {
		t.Error("no input, or no way to a conference")
	}
	if h.mirror.count() != before {
		t.Error("something was asked")
	}
	if status, body, _ := h.get("/twilio/participants.json", all); status != 400 || !strings.Contains(body, "ConferenceSid") {
		t.Errorf("as data: %d %s", status, body)
	}
	if status, _, _ := h.get("/twilio/participants", as{token: "countertoken"}); status != 403 {
		t.Errorf("a role without participants: %d", status)
	}
	if status, body, _ := h.get("/twilio/media/ME1", all); status != 400 || !strings.Contains(body, "MessageSid") {
		t.Errorf("a medium without its message: %d", status)
	}
}

// The page of a record shows the lists under it and alerts about it, and asks
// for nothing the record says is empty or the role does not see.
func TestListsOnARecord(t *testing.T) {
	h := open(t)
	conference := h.firstID("/twilio/conferences", `CF[0-9a-f]{32}`)
	page := h.page("/twilio/conferences/"+conference, all)
	for _, want := range []string{`aria-label="Participants"`, `aria-label="Recordings"`, `aria-label="Alerts"`,
		`href="/twilio/participants?ConferenceSid=` + conference + `"`, "All of them"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(page, `>Conference</th>`) {
		t.Error("a column with this record on every row")
	}
	page = h.page("/twilio/conferences/"+conference, as{token: "watchertoken"})
	if strings.Contains(page, `aria-label="Participants"`) || strings.Contains(page, "/twilio/participants") ||
		strings.Contains(page, "Alerts") || !strings.Contains(page, `aria-label="Recordings"`) {
		t.Error("a role meets kinds it does not see, or not those it does")
	}
	message := regexp.MustCompile(`/twilio/messages/(SM[0-9a-f]{32})`).FindStringSubmatch(h.page("/twilio/messages", all))[1]
	h.mirror.mu.Lock()
	h.mirror.asked = nil
	h.mirror.mu.Unlock()
	h.page("/twilio/messages/"+message, all)
	h.mirror.mu.Lock()
	defer h.mirror.mu.Unlock()
	for _, uri := range h.mirror.asked {
		if strings.Contains(uri, "/Media.json") {
			t.Error("a message without media is asked for them")
		}
	}
	if n := len(h.mirror.asked); n > 1+maxLists+1 {
		t.Errorf("%d questions for one page", n)
	}
}

// Counts are those of the page; where it ends too soon they say so.
func TestRollup(t *testing.T) {
	h := open(t)
	if page := h.page("/twilio/alerts?LogLevel=error", all); strings.Count(page, `<th scope="row">`) != 1 {
		t.Error("filtered by one level, others are counted")
	}
	h.mirror.forget()
	alerts := func(ages ...time.Duration) func(context.Context, request.Fetch) (*understudy.Page, error) {
		return func(_ context.Context, f request.Fetch) (*understudy.Page, error) {
			var rows []string
			for i, age := range ages {
				rows = append(rows, `{"sid":"NO`+strings.Repeat("0", 31)+strconv.Itoa(i%10)+`","log_level":"`+[]string{"error",
					"warning"}[i%2]+`","date_created":"`+noon.Add(-age).Format(time.RFC3339)+`"}`)
			}
			p := &understudy.Page{Key: f.Target.Key, Kind: "alerts", Shape: "alerts", List: true, Status: 200, ContentType: "application/json",
				Body: []byte(`{"alerts":[` + strings.Join(rows, ",") + `]}`)}
			if len(ages) == 6 {
				p.Next = understudy.Key{Source: "twilio", URI: "/v1/Alerts?PageSize=50&Page=1&PageToken=PA1"}
			}
			return p, nil
		}
	}
	counts := func(who as) []string {
		var all []string
		table := regexp.MustCompile(`(?s)<div class="rollup.*?</div>`).FindString(h.page("/twilio/alerts", who))
		for _, row := range regexp.MustCompile(`(?s)<th scope="row">.*?</tr>`).FindAllString(table, -1) {
			all = append(all, strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, " ")), " "))
		}
		return all
	}
	const m, d = time.Minute, 24 * time.Hour
	h.mirror.fetch = alerts(m, 2*m, 30*m, 2*time.Hour, 30*time.Hour, 50*time.Hour, 90*time.Hour)
	if got := strings.Join(counts(all), "; "); got != "error 1 2 2 3; warning 1 1 2 3; notice 0 0 0 0; debug 0 0 0 0" {
		t.Errorf("counts are %s", got)
	}
	h.mirror.forget()
	h.mirror.fetch = alerts(m, 2*m, 3*m, 20*m, 30*m, 2*time.Hour)
	if got := strings.Join(counts(all), "; "); got != "error 2 3 at least 3 at least 3; warning 1 2 at least 3 at least 3; notice 0 0 at "+
		"least 0 at least 0; debug 0 0 at least 0 at least 0" {
		t.Errorf("counts of a full page are %s", got)
	}
	if got := counts(as{token: "clerktoken"}); len(got) != 0 {
		t.Errorf("a role that does not see levels: %s", got)
	}
	page := h.page("/twilio/alerts", all)
	if !strings.Contains(page, `href="/twilio/alerts?LogLevel=error"`) {
		t.Error("a level leads nowhere")
	}
}

// An error code has its meaning and a way to upstream's page, in lists and on
// records; anything that is no code leads nowhere.
func TestCodes(t *testing.T) {
	h := open(t)
	page := h.page("/twilio/alerts", all)
	m := regexp.MustCompile(`<a href="https://www\.twilio\.com/docs/api/errors/(\d+)" rel="noopener noreferrer external">\d+</a> <span ` +
		`class="note">([^<]+)</span>`).FindStringSubmatch(page)
	if m == nil || html.UnescapeString(m[2]) != h.spec.Errors.Meanings[m[1]] {
		t.Fatalf("no code with its meaning: %q", m)
	}
	id := h.firstID("/twilio/alerts", `NO[0-9a-f]{32}`)
	if record := h.page("/twilio/alerts/"+id, all); !regexp.MustCompile(`<b>Error \d+\.</b> [A-Z]`).MatchString(record) {
		t.Error("an alert does not say what its code means")
	}
	s := h.viewer.Visitor.ByName["twilio"]
	for text, want := range map[string]string{"30003": "https://www.twilio.com/docs/api/errors/30003", "": "", "12a": "", "../x": "",
		"1234567890123": ""} {
		if got := s.CodeDocs(text); got != want {
			t.Errorf("%q leads to %q", text, got)
		}
	}
}

// studio opens contents; only whether it is there matters to a page.
type studio struct{}

func (studio) Open(context.Context, request.MediaRequest) (*request.MediaResponse, error) {
	return nil, errors.New("nothing to hear")
}

// A recording has a player that loads nothing, and files to keep; an image is
// behind a link; who may not have them reads "hidden".
func TestPlaying(t *testing.T) {
	h := open(t, func(o *page.Options) { o.Media = studio{} })
	recording := h.firstID("/twilio/recordings", `RE[0-9a-f]{32}`)
	page := h.page("/twilio/recordings/"+recording, all)
	if !regexp.MustCompile(`<audio controls preload="none" src="/-/media/[\w-]+" aria-label="Recording RE`).MatchString(page) ||
		strings.Count(page, "<a download") != 2 || !strings.Contains(page, ">MP3</a>") {
		t.Error("no player, or no files")
	}
	if strings.Contains(page, "<img src=\"/-/media") || strings.Contains(h.page("/twilio/recordings", all), "/-/media/") {
		t.Error("a page fetches contents, or a list is heavy with their addresses")
	}
	under := h.page("/twilio/calls/"+h.firstID("/twilio/recordings", `CA[0-9a-f]{32}`), all)
	if !strings.Contains(under, `<td class="content"`) || !strings.Contains(under, `<th scope="col" class="content">Audio</th>`) {
		t.Error("the recordings of a call have no column of players, or one without a head")
	}
	message := h.pictured()
	page = h.page("/twilio/messages/"+message, all)
	if !regexp.MustCompile(`<a (class="button" href="/-/media/[\w-]+" data-image="Medium ME|download href="/-/media/)`).MatchString(page) {
		t.Error("no way to the media of a message")
	}
	masked := as{token: "supporttoken"}
	page = h.page("/twilio/recordings/"+recording, masked)
	if strings.Contains(page, "/-/media/") || !strings.Contains(page, `<h2>Audio</h2><span class="hidden"`) {
		t.Error("support may hear what it may not")
	}
	if page = h.page("/twilio/messages/"+message, masked); strings.Contains(page, "/-/media/") {
		t.Error("support may see what it may not")
	}
}

// The banner says what is wrong on every page, errors included; and nothing of
// a source to a caller who may not ask it.
func TestBanner(t *testing.T) {
	h := open(t, func(o *page.Options) { o.Snapshot = outOfReach })
	for _, path := range []string{"/", "/twilio/calls", "/twilio/number/+15550001111", "/search", "/nowhere", "/twilio/calls?x=1",
		"/twilio/calls/" + h.firstID("/twilio/calls", `CA[0-9a-f]{32}`)} {
		_, body, _ := h.get(path, berlin)
		banner := regexp.MustCompile(`(?s)<div role="status" aria-live="polite"><p class="notice banner bad">.*?</div>`).FindString(body)
		for _, want := range []string{"<b>Twilio is down</b>", "14:03:00", "next probe", "14:05:21"} {
			if !strings.Contains(banner, want) {
				t.Errorf("%s: the banner does not say %q: %s", path, want, banner)
			}
		}
	}
	for _, who := range []as{{}, {token: "nobodytoken"}} {
		if _, body, _ := h.get("/", who); strings.Contains(body, "banner") {
			t.Errorf("%q is told", who.token)
		}
	}
	if page := open(t).page("/twilio/calls", all); strings.Contains(page, "banner") || !strings.Contains(page, "as of <time") {
		t.Error("a banner while all is well, or a list that does not say as of when")
	}
}

// Main kinds first, the others under their headings, hidden ones nowhere.
func TestNav(t *testing.T) {
	h := open(t)
	page := h.page("/twilio/queues", all)
	head := regexp.MustCompile(`(?s)<nav class="kinds".*?</nav>`).FindString(page)
	main, more, _ := strings.Cut(head, "popovertarget")
	for _, want := range []string{"Calls", "Messages", "Phone numbers", "Recordings", "Conferences", "Alerts", `aria-current="page">Queues`} {
		if !strings.Contains(main, want) {
			t.Errorf("the header lacks %s", want)
		}
	}
	for _, want := range []string{"<h2>Account</h2>", "<h2>Monitoring</h2>", "/twilio/balance", "/twilio/usage_records",
		"/twilio/available_phone_numbers"} {
		if !strings.Contains(more, want) {
			t.Errorf("More lacks %s", want)
		}
	}
	if strings.Contains(head, "/twilio/participants") || strings.Contains(main, "Accounts") {
		t.Error("the header is full of what nobody opens from there")
	}
	page = h.page("/", as{token: "countertoken"})
	if strings.Contains(page, `id="more"`) || strings.Contains(page, "Account<") {
		t.Error("a role with one kind has More")
	}
}

// A row that has no id leads where upstream's own addresses do.
func TestRowsWithoutAnID(t *testing.T) {
	h := open(t)
	if at := href(h.page("/twilio/countries", all), "US"); at != "/twilio/available_phone_numbers?CountryCode=US" {
		t.Errorf("a country leads to %q", at)
	}
}

// An id two kinds could have leads to the one that has it.
func TestAmbiguousIDs(t *testing.T) {
	h := open(t)
	own := h.firstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`)
	caller := h.firstID("/twilio/outgoing_caller_ids", `PN[0-9a-f]{32}`)
	for id, want := range map[string]string{own: "/twilio/incoming_phone_numbers/" + own, caller: "/twilio/outgoing_caller_ids/" + caller} {
		if status, _, head := h.get("/search?q="+id, all); status != http.StatusSeeOther || head.Get("Location") != want {
			t.Errorf("%s: %d %s", id, status, head.Get("Location"))
		}
	}
	if page := h.page("/search?q=PN"+strings.Repeat("0", 32), all); !strings.Contains(page, "Which one?") ||
		strings.Count(page, "<li><a href=\"/twilio/") < 2 {
		t.Error("an id nobody has is not offered as either")
	}
	if status, _, head := h.get("/search?q="+caller, as{token: "countertoken"}); status != 303 ||
		head.Get("Location") != "/twilio/incoming_phone_numbers/"+caller {
		t.Errorf("to a role that sees one of the two kinds: %d %s", status, head.Get("Location"))
	}
}
