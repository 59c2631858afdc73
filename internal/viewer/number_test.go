// Numbers: what is asked, merged and said, and who is refused.

package viewer_test

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
	"understudy/internal/checktest"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

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
	h := viewertest.Open(t)
	number := h.OwnNumber()
	var data numberJSON
	_, body, _ := h.Get("/twilio/number/"+number+".json", viewertest.All)
	viewertest.Must(t, json.Unmarshal([]byte(body), &data))
	checktest.MustEqual(t, data.Number, number, "own: data.Number")
	checktest.MustTrue(t, data.Own, "own: data.Own is false")
	checktest.MustEqual(t, len(data.Lists), 4, "own: len(data.Lists)")
	checktest.MustTrue(t, len(data.Partners) != 0, "own: len(data.Partners) is 0")
	checktest.MustTrue(t, data.Partial, "own: data.Partial is false")
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
	page := h.Page("/twilio/number/"+number, viewertest.Berlin)
	for _, want := range []string{
		plan.GroupPhone(number)[1:], `class="own"`, "One of our own numbers", "Calls from", "Messages to", "Alerts about it", "of the newest",
		"or earlier", "Most often with",
		`href="/twilio/calls?From=%2B`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if at := viewertest.Href(page, plan.GroupPhone(data.Partners[0].Number)[2:]); at != data.Partners[0].Href+"#newest" {
		t.Errorf("the first partner's link is %q", at)
	}
	if n := strings.Count(page, "<tr"); n < 40 || n > 120 {
		t.Errorf("%d rows", n)
	}
	if page := h.Page("/twilio/number/+15550001111", viewertest.All); !strings.Contains(page, "No contact yet.") ||
		strings.Contains(page, "Most often with") {
		t.Error("a number nobody knows")
	}
}

// The page begins with the newest conversation: its last messages, and the way there.
func TestNumberBeginsWithItsConversation(t *testing.T) {
	h := viewertest.Open(t)
	var data numberJSON
	_, body, _ := h.Get("/twilio/number/"+h.OwnNumber()+".json", viewertest.All)
	viewertest.Must(t, json.Unmarshal([]byte(body), &data))
	number := data.Partners[0].Number
	shown := h.Page("/twilio/number/"+number, viewertest.All)
	first, _, _ := strings.Cut(shown, "Most often with")
	to := regexp.MustCompile(`<a class="button primary" href="([^"]+)">Open the conversation</a>`).FindStringSubmatch(first)
	if to == nil {
		t.Fatal("no conversation stands before the lists")
	}
	talk := h.Page(strings.TrimSuffix(html.UnescapeString(to[1]), "#newest"), viewertest.All)
	turns := regexp.MustCompile(`(?s)<li class="turn.*?</li>`)
	here, there := turns.FindAllString(first, -1), turns.FindAllString(talk, -1)
	checktest.MustTrue(t, len(here) != 0, "len(here) is 0")
	checktest.MustTrue(t, len(here) <= viewer.MaxTurns, "len(here) is %v", len(here))
	checktest.MustTrue(t, len(here) <= len(there), "len(here) is %v", len(here))
	checktest.True(t, slices.Equal(here, there[len(there)-len(here):]), "here is %v, want %v", here,
		there[len(there)-len(here):])
	newest := regexp.MustCompile(`<dt>Last</dt><dd><time datetime="([^"]+)"`).FindStringSubmatch(shown)
	if newest == nil || !strings.Contains(here[len(here)-1], newest[1]) {
		t.Errorf("the last message is not of the last contact, %v", newest)
	}
}

// First and last contact are those of what was read, and say when it is not all.
func TestFirstAndLastContact(t *testing.T) {
	h := viewertest.Open(t)
	var data numberJSON
	_, body, _ := h.Get("/twilio/number/"+h.OwnNumber()+".json", viewertest.All)
	viewertest.Must(t, json.Unmarshal([]byte(body), &data))
	other := data.Partners[len(data.Partners)-1].Number
	_, body, _ = h.Get("/twilio/number/"+other+".json", viewertest.All)
	data = numberJSON{}
	viewertest.Must(t, json.Unmarshal([]byte(body), &data))
	var times []time.Time
	for _, l := range data.Lists {
		for _, r := range l.Records {
			for _, clock := range []string{"start_time", "date_sent"} {
				if s, ok := r[clock].(string); ok {
					at, err := time.Parse(time.RFC1123Z, s)
					viewertest.Must(t, err)
					times = append(times, at)
				}
			}
		}
	}
	first, last := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	checktest.True(t, data.First.Equal(first), "first: data.First.Equal(first) is false")
	checktest.True(t, data.Last.Equal(last), "first: data.Last.Equal(last) is false")
	checktest.True(t, !data.Partial, "first: data.Partial is true")
	checktest.True(t, !data.Own, "first: data.Own is true")
	if strings.Contains(h.Page("/twilio/number/"+other, viewertest.All), "or earlier") {
		t.Error("all of it was read, and the page doubts it")
	}
}

// Where all records are held, a number's page counts those beyond its lists, and
// knows the first contact.
func TestNumberCountsWhatIsHeld(t *testing.T) {
	whole := func(ctx context.Context, source string) page.Snapshot {
		s := viewertest.Snapshot(ctx, source)
		s.Kinds = map[string]page.StoredKind{"calls": {Records: 1, Complete: true}, "messages": {Records: 1, Complete: true}}
		return s
	}
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) { o.Snapshot = whole })
	number := h.OwnNumber()
	few := viewertest.Open(t, viewertest.WithSearch(t))
	cut(h, 10)
	cut(few, 10)
	if page := few.Page("/twilio/number/"+number, viewertest.All); !strings.Contains(page, "10 of more than 10") ||
		!strings.Contains(page, "older pages may have more") {
		t.Error("where not all is held nothing is counted")
	}
	page := h.Page("/twilio/number/"+number, viewertest.All)
	checktest.Lacks(t, page, "of more than", "what is held is not counted: page")
	checktest.Lacks(t, page, "older pages may have more", "what is held is not counted: page")
	checktest.True(t, regexp.MustCompile(`>10 of \d\d+ `).MatchString(page),
		"what is held is not counted: regexp.MustCompile(`>10 of \\d\\d+ `).MatchString(page) is false")
}

// cut makes lists of a filter go on after a few records.
func cut(h *viewertest.Fixture, rows int) {
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	fetch := h.Mirror.Fetch
	h.Mirror.Fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if f.Target.List == nil || !strings.Contains(f.Target.Key.URI, "From=") && !strings.Contains(f.Target.Key.URI, "To=") {
			return fetch(ctx, f)
		}
		less, err := h.Spec.Resolve("twilio", f.Target.Key.Path(), f.Target.Query.String()+fmt.Sprintf("&PageSize=%d", rows))
		if err != nil {
			return nil, err
		}
		f.Target = less
		return fetch(ctx, f)
	}
}

// broken makes the mirror fail for what a part of a URI says, and wait for
// what another says.
func broken(h *viewertest.Fixture, fails, waits string) {
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	fetch := h.Mirror.Fetch
	h.Mirror.Fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
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
	h := viewertest.Open(t)
	number := h.OwnNumber()
	call := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	broken(h, "/Messages.json?From", "/Notifications.json")
	page := h.Page("/twilio/number/"+number, viewertest.All)
	if !strings.Contains(page, "Not loaded: Twilio has not answered (upstream 503), and no stored answer fits this request.") ||
		!strings.Contains(page, "Calls to") {
		t.Error("a number without one of its lists")
	}
	h.Viewer.Visitor.PartTimeout = time.Second
	page = h.Page("/twilio/calls/"+call, viewertest.All)
	if !strings.Contains(page, "Not loaded: Twilio has not answered within 1 s.") || !strings.Contains(page, "Raw JSON") {
		t.Error("a call without one of its lists")
	}
}

// Roles: who does not see whole numbers is refused, before anything is asked;
// who does not see a kind does not meet it.
func TestNumbersAreFilters(t *testing.T) {
	h := viewertest.Open(t)
	number := h.OwnNumber()
	for _, path := range []string{"/twilio/number/" + number, "/twilio/number/" + number + ".json", "/twilio/number/nonsense",
		"/twilio/number/" + number + "/+15550001111"} {
		before := h.Mirror.Count()
		status, body, _ := h.Get(path, viewertest.Support)
		checktest.Equal(t, status, 403, "%s as support: status", path)
		checktest.Contains(t, body, "whole numbers", "%s as support: body", path)
		if h.Mirror.Count() != before {
			t.Errorf("%s was asked of the mirror", path)
		}
	}
	page := h.Page("/twilio/number/"+number, viewertest.Clerk)
	if strings.Contains(page, "Messages") || !strings.Contains(page, "Calls from") {
		t.Error("a role without messages meets them")
	}
	for _, path := range []string{"/twilio/number/+1555000111122223333", "/twilio/number/+0123456789", "/twilio/number/alice",
		"/twilio/number/" + number + "/bob"} {
		if status, body, _ := h.Get(path, viewertest.All); status != 404 || !strings.Contains(body, "is not a phone number") {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _, _ := h.Get("/twilio/number/"+number+"?x=1", viewertest.All); status != 400 {
		t.Errorf("a parameter: %d", status)
	}
}
