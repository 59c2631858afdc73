// Numbers and conversations: what is asked, merged and said, and who is refused.

package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/request"
)

// ownNumber is the first of our own numbers.
func (h *fixture) ownNumber() string {
	h.Helper()
	var page struct {
		Numbers []struct {
			Number string `json:"phone_number"`
		} `json:"incoming_phone_numbers"`
	}
	_, body, _ := h.get("/twilio/incoming_phone_numbers.json", all)
	must(h, json.Unmarshal([]byte(body), &page))
	return page.Numbers[0].Number
}

type numberJSON struct {
	Number  string
	Own     bool
	First   time.Time
	Last    time.Time
	Partial bool
	Lists   []struct {
		Kind, Field, Href, Problem string
		More                       bool
		Records                    []map[string]any
	}
	Partners []struct {
		Number, Href string
		Count        int
	}
}

func TestNumber(t *testing.T) {
	h := open(t)
	number := h.ownNumber()
	var data numberJSON
	_, body, _ := h.get("/twilio/number/"+number+".json", all)
	must(t, json.Unmarshal([]byte(body), &data))
	if data.Number != number || !data.Own || len(data.Lists) != 4 || len(data.Partners) == 0 || !data.Partial {
		t.Fatalf("own %v, %d lists, %d partners, partial %v", data.Own, len(data.Lists), len(data.Partners), data.Partial)
	}
	for i, want := range []string{"calls from", "calls to", "messages from", "messages to"} {
		l := data.Lists[i]
		if l.Kind+" "+l.Field != want || len(l.Records) == 0 {
			t.Errorf("list %d is %s %s with %d records", i, l.Kind, l.Field, len(l.Records))
		}
		for _, r := range l.Records {
			if r[l.Field] != number {
				t.Errorf("%s: a record has %v", want, r[l.Field])
			}
		}
	}
	page := h.page("/twilio/number/"+number, berlin)
	for _, want := range []string{
		plan.GroupPhone(number)[1:], `class="own"`, "One of our own numbers", "Calls from", "Messages to", "Alerts about it", "of the newest",
		"or earlier", "Most often with",
		`href="/twilio/calls?From=%2B`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if at := href(page, plan.GroupPhone(data.Partners[0].Number)[2:]); at != data.Partners[0].Href+"#newest" {
		t.Errorf("the first partner's link is %q", at)
	}
	if n := strings.Count(page, "<tr"); n < 40 || n > 120 {
		t.Errorf("%d rows", n)
	}
	if page := h.page("/twilio/number/+15550001111", all); !strings.Contains(page, "There has been none.") ||
		strings.Contains(page, "Most often with") {
		t.Error("a number nobody knows")
	}
}

// The page begins with the newest conversation: its last messages, and the way there.
func TestNumberBeginsWithItsConversation(t *testing.T) {
	h := open(t)
	var data numberJSON
	_, body, _ := h.get("/twilio/number/"+h.ownNumber()+".json", all)
	must(t, json.Unmarshal([]byte(body), &data))
	number := data.Partners[0].Number
	shown := h.page("/twilio/number/"+number, all)
	first, _, _ := strings.Cut(shown, "Most often with")
	to := regexp.MustCompile(`<a class="button primary" href="([^"]+)">Open the conversation</a>`).FindStringSubmatch(first)
	if to == nil {
		t.Fatal("no conversation stands before the lists")
	}
	talk := h.page(strings.TrimSuffix(html.UnescapeString(to[1]), "#newest"), all)
	turns := regexp.MustCompile(`(?s)<li class="turn.*?</li>`)
	here, there := turns.FindAllString(first, -1), turns.FindAllString(talk, -1)
	if len(here) == 0 || len(here) > maxTurns || len(here) > len(there) || !slices.Equal(here, there[len(there)-len(here):]) {
		t.Errorf("%d messages are not the last of the %d of the conversation", len(here), len(there))
	}
	newest := regexp.MustCompile(`<dt>Last</dt><dd><time datetime="([^"]+)"`).FindStringSubmatch(shown)
	if newest == nil || !strings.Contains(here[len(here)-1], newest[1]) {
		t.Errorf("the last message is not of the last contact, %v", newest)
	}
}

// First and last contact are those of what was read, and say when it is not all.
func TestFirstAndLastContact(t *testing.T) {
	h := open(t)
	var data numberJSON
	_, body, _ := h.get("/twilio/number/"+h.ownNumber()+".json", all)
	must(t, json.Unmarshal([]byte(body), &data))
	other := data.Partners[len(data.Partners)-1].Number
	_, body, _ = h.get("/twilio/number/"+other+".json", all)
	data = numberJSON{}
	must(t, json.Unmarshal([]byte(body), &data))
	var times []time.Time
	for _, l := range data.Lists {
		for _, r := range l.Records {
			for _, clock := range []string{"start_time", "date_sent"} {
				if s, ok := r[clock].(string); ok {
					at, err := time.Parse(time.RFC1123Z, s)
					must(t, err)
					times = append(times, at)
				}
			}
		}
	}
	first, last := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	if !data.First.Equal(first) || !data.Last.Equal(last) || data.Partial || data.Own {
		t.Errorf("first %v last %v partial %v, want %v %v", data.First, data.Last, data.Partial, first, last)
	}
	if strings.Contains(h.page("/twilio/number/"+other, all), "or earlier") {
		t.Error("all of it was read, and the page doubts it")
	}
}

// Where all records are held, a number's page counts those beyond its lists, and
// knows the first contact.
func TestNumberCountsWhatIsHeld(t *testing.T) {
	whole := func(ctx context.Context, source string) page.Snapshot {
		s := snapshot(ctx, source)
		s.Kinds = map[string]page.Held{"calls": {Records: 1, Complete: true}, "messages": {Records: 1, Complete: true}}
		return s
	}
	h := open(t, searched(t), func(o *page.Options) { o.Snapshot = whole })
	number := h.ownNumber()
	few := open(t, searched(t))
	h.cut(10)
	few.cut(10)
	if page := few.page("/twilio/number/"+number, all); !strings.Contains(page, "10 of more than 10") ||
		!strings.Contains(page, "there may be more") {
		t.Error("where not all is held nothing is counted")
	}
	page := h.page("/twilio/number/"+number, all)
	if strings.Contains(page, "of more than") || strings.Contains(page, "there may be more") ||
		!regexp.MustCompile(`>10 of \d\d+ `).MatchString(page) {
		t.Error("what is held is not counted")
	}
}

// cut makes lists of a filter go on after a few records.
func (h *fixture) cut(rows int) {
	h.mirror.mu.Lock()
	defer h.mirror.mu.Unlock()
	fetch := h.mirror.fetch
	h.mirror.fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if f.Target.List == nil || !strings.Contains(f.Target.Key.URI, "From=") && !strings.Contains(f.Target.Key.URI, "To=") {
			return fetch(ctx, f)
		}
		less, err := h.spec.Target("twilio", f.Target.Key.Path(), f.Target.Query.String()+fmt.Sprintf("&PageSize=%d", rows))
		if err != nil {
			return nil, err
		}
		f.Target = less
		return fetch(ctx, f)
	}
}

// broken makes the mirror fail for what a part of a URI says, and wait for
// what another says.
func (h *fixture) broken(fails, waits string) {
	h.mirror.mu.Lock()
	defer h.mirror.mu.Unlock()
	fetch := h.mirror.fetch
	h.mirror.fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		switch {
		case fails != "" && strings.Contains(f.Target.Key.URI, fails):
			return nil, &understudy.UpstreamError{Why: understudy.FailServer, Status: 503, Err: errors.New("after 3 tries")}
		case waits != "" && strings.Contains(f.Target.Key.URI, waits):
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return fetch(ctx, f)
	}
}

// A part that fails says so in its place; the page is there.
func TestPartsFailByThemselves(t *testing.T) {
	h := open(t)
	number := h.ownNumber()
	call := h.firstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	h.broken("/Messages.json?From", "/Notifications.json")
	page := h.page("/twilio/number/"+number, all)
	if !strings.Contains(page, "Not loaded: Twilio has not answered (upstream 503), and what is held does not answer this request.") ||
		!strings.Contains(page, "Calls to") {
		t.Error("a number without one of its lists")
	}
	h.viewer.Visitor.Glance = time.Second
	page = h.page("/twilio/calls/"+call, all)
	if !strings.Contains(page, "Not loaded: Twilio has not answered within 1 s.") || !strings.Contains(page, "Raw JSON") {
		t.Error("a call without one of its lists")
	}
}

// Roles: who does not see whole numbers is refused, before anything is asked;
// who does not see a kind does not meet it.
func TestNumbersAreFilters(t *testing.T) {
	h := open(t)
	number := h.ownNumber()
	for _, path := range []string{"/twilio/number/" + number, "/twilio/number/" + number + ".json", "/twilio/number/nonsense",
		"/twilio/number/" + number + "/+15550001111"} {
		before := h.mirror.count()
		status, body, _ := h.get(path, as{token: "supporttoken"})
		if status != 403 || !strings.Contains(body, "Your role does not show whole numbers") || !strings.Contains(body, "phone: see") ||
			strings.Contains(body, number[3:]) && !strings.Contains(path, ".json") {
			if status != 403 || !strings.Contains(body, "whole numbers") {
				t.Errorf("%s as support: %d", path, status)
			}
		}
		if h.mirror.count() != before {
			t.Errorf("%s was asked of the mirror", path)
		}
	}
	page := h.page("/twilio/number/"+number, as{token: "clerktoken"})
	if strings.Contains(page, "Messages") || !strings.Contains(page, "Calls from") {
		t.Error("a role without messages meets them")
	}
	for _, path := range []string{"/twilio/number/+1555000111122223333", "/twilio/number/+0123456789", "/twilio/number/alice",
		"/twilio/number/" + number + "/bob"} {
		if status, body, _ := h.get(path, all); status != 404 || !strings.Contains(body, "is no phone number") {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _, _ := h.get("/twilio/number/"+number+"?x=1", all); status != 400 {
		t.Errorf("a parameter: %d", status)
	}
}

// talker answers lists of calls and messages out of a made-up past: one record
// every so often, newest first, a few a page.
type talker struct {
	size  int
	calls []time.Time // those of A to B; every other kind and direction has none
}

func (m *talker) Page(_ context.Context, a request.Request) (*request.Response, error) {
	p := &understudy.Page{Key: a.Target.Key, Kind: a.Target.Kind.Name, Shape: a.Target.Shape(), List: true, Status: 200,
		ContentType: "application/json"}
	answer := &request.Response{Page: p, Outcome: request.Warm}
	from, _ := a.Target.Query.Get("From")
	if a.Target.Kind.Name != "calls" || from != "+15550000001" {
		p.Body = []byte(`{"` + a.Target.List.Key + `":[]}`)
		return answer, nil
	}
	until := time.Unix(1<<40, 0)
	if s, ok := a.Target.Query.Get("StartTime<"); ok {
		until, _ = time.Parse(time.RFC3339, s)
	}
	var rows []string
	for i, at := range m.calls {
		if at.After(until) {
			continue
		}
		if len(rows) == m.size {
			p.Next = understudy.Key{Source: "twilio", URI: a.Target.Key.Path() + "?Page=1&PageToken=PA1"}
			break
		}
		rows = append(rows, fmt.Sprintf(`{"sid":"CA%032x","from":"+15550000001","to":"+15550000002","status":"completed","start_time":"%s"}`, i,
			at.UTC().Format(time.RFC1123Z)))
	}
	p.Body = []byte(`{"calls":[` + strings.Join(rows, ",") + `]}`)
	return answer, nil
}

// Walking a conversation back meets every record exactly once, whatever the
// times, and every page says how far back it is whole.
func TestConversationIsWhole(t *testing.T) {
	start := noon.Add(-time.Hour)
	for name, gaps := range map[string][]int{
		"apart": {60, 60, 60, 60, 60, 60, 60}, "pairs": {0, 60, 0, 60, 0, 60, 0, 60}, "uneven": {1, 0, 7, 86400, 0, 0, 5, 1, 1, 1, 0, 3},
		"one": {},
	} {
		t.Run(name, func(t *testing.T) {
			m := &talker{size: 4, calls: []time.Time{start}}
			for _, g := range gaps {
				m.calls = append(m.calls, m.calls[len(m.calls)-1].Add(-time.Duration(g)*time.Second))
			}
			h := open(t, func(o *page.Options) { o.Mirror = m })
			met := map[string]int{}
			at := "/twilio/number/+15550000001/+15550000002"
			for pages := 0; at != ""; pages++ {
				if pages > len(m.calls)+1 {
					t.Fatal("no end")
				}
				path, query, _ := strings.Cut(at, "?")
				_, body, _ := h.get(path+".json?"+query, all)
				var page struct {
					Turns []struct {
						At     time.Time
						From   string
						Record struct{ Sid string }
					}
					Older string
				}
				must(t, json.Unmarshal([]byte(body), &page))
				for i, turn := range page.Turns {
					met[turn.Record.Sid]++
					if i > 0 && turn.At.Before(page.Turns[i-1].At) || turn.From != "+15550000001" {
						t.Errorf("turn %d of %s", i, at)
					}
				}
				html := h.page(at, all)
				if (page.Older != "") != strings.Contains(html, "Complete back to") {
					t.Errorf("%s: older %q, and the bound is not said", at, page.Older)
				}
				at = page.Older
			}
			if len(met) != len(m.calls) {
				t.Errorf("met %d of %d", len(met), len(m.calls))
			}
			for sid, n := range met {
				if n != 1 {
					t.Errorf("%s met %d times", sid, n)
				}
			}
		})
	}
}

// A whole page within one second does not stop the walk, and what lies before
// it is met.
func TestConversationOfOneSecond(t *testing.T) {
	m := &talker{size: 4}
	for range 9 {
		m.calls = append(m.calls, noon)
	}
	m.calls = append(m.calls, noon.Add(-time.Minute))
	h := open(t, func(o *page.Options) { o.Mirror = m })
	page := h.page("/twilio/number/+15550000001/+15550000002", all)
	if n := strings.Count(page, `class="turn`); n != 4 {
		t.Errorf("%d turns", n)
	}
	page = h.page(href(page, "Older"), all) // the same second again: nothing new, and a way on
	page = h.page(href(page, "go back in time"), all)
	if n := strings.Count(page, `class="turn`); n != 1 || href(page, "Older") != "" ||
		!strings.Contains(href(page, "Newer"), "understudy.before=") {
		t.Errorf("%d turns, Newer %q", n, href(page, "Newer"))
	}
}

func TestConversation(t *testing.T) {
	h := open(t)
	number := h.ownNumber()
	var data numberJSON
	_, body, _ := h.get("/twilio/number/"+number+".json", all)
	must(t, json.Unmarshal([]byte(body), &data))
	at := data.Partners[0].Href
	page := h.page(at, berlin)
	for _, want := range []string{`class="turn`, `class="day"`, "This is the newest.", `dir="auto"`, `href="/twilio/number/`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	page = h.page(at, as{token: "clerktoken"})
	if strings.Contains(page, "Message") {
		t.Error("a role without messages meets them")
	}
	for query, want := range map[string]int{"?understudy.before=yesterday": 400, "?x=1": 400, "?understudy.before=2020-01-01T00:00:00Z": 200,
		"?a=%zz": 400} {
		if status, _, _ := h.get(at+query, all); status != want {
			t.Errorf("%s: %d", query, status)
		}
	}
	if page := h.page(at+"?understudy.before=2020-01-01T00:00:00Z", all); !strings.Contains(page, "nothing this far back") {
		t.Error("before everything")
	}
	h.broken("/Calls.json?To", "")
	h.mirror.forget()
	page = h.page(at, all)
	if !regexp.MustCompile(`Calls from .* are not loaded`).MatchString(page) || !strings.Contains(page, `class="turn`) {
		t.Error("a strand that failed")
	}
}

func TestIsNumber(t *testing.T) {
	for text, want := range map[string]bool{
		"+15551234567": true, "72975": true, "123": true, "+491": false, "+0555123456": false, "": false, "+": false, "12": false,
		"sip:a@b":      false,
		"client:alice": false, "+1555123456789012": false, "+155512345 67": false, "0123456": false,
	} {
		if plan.IsNumber(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
