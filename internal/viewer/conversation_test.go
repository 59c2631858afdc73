// Conversation: all records between two numbers, each once.

package viewer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// talker answers lists of calls and messages out of a made-up past: one record
// every so often, newest first, a few a page.
type talker struct {
	size  int
	calls []time.Time // those of A to B; every other kind and direction has none
}

func (m *talker) Answer(_ context.Context, a request.Request) (*request.Response, error) {
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
	start := viewertest.Noon.Add(-time.Hour)
	for name, gaps := range map[string][]int{
		"apart": {60, 60, 60, 60, 60, 60, 60}, "pairs": {0, 60, 0, 60, 0, 60, 0, 60}, "uneven": {1, 0, 7, 86400, 0, 0, 5, 1, 1, 1, 0, 3},
		"one": {},
	} {
		t.Run(name, func(t *testing.T) {
			m := &talker{size: 4, calls: []time.Time{start}}
			for _, g := range gaps {
				m.calls = append(m.calls, m.calls[len(m.calls)-1].Add(-time.Duration(g)*time.Second))
			}
			h := viewertest.Open(t, func(o *page.Options) { o.Mirror = m })
			met := map[string]int{}
			at := "/twilio/number/+15550000001/+15550000002"
			for pages := 0; at != ""; pages++ {
				if pages > len(m.calls)+1 {
					t.Fatal("no end")
				}
				path, query, _ := strings.Cut(at, "?")
				_, body, _ := h.Get(path+".json?"+query, viewertest.All)
				var page struct {
					Turns []struct {
						At     time.Time
						From   string
						Record struct{ Sid string }
					}
					Older string
				}
				viewertest.Must(t, json.Unmarshal([]byte(body), &page))
				for i, turn := range page.Turns {
					met[turn.Record.Sid]++
					if i > 0 && turn.At.Before(page.Turns[i-1].At) || turn.From != "+15550000001" {
						t.Errorf("turn %d of %s", i, at)
					}
				}
				html := h.Page(at, viewertest.All)
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
		m.calls = append(m.calls, viewertest.Noon)
	}
	m.calls = append(m.calls, viewertest.Noon.Add(-time.Minute))
	h := viewertest.Open(t, func(o *page.Options) { o.Mirror = m })
	page := h.Page("/twilio/number/+15550000001/+15550000002", viewertest.All)
	if n := strings.Count(page, `class="turn`); n != 4 {
		t.Errorf("%d turns", n)
	}
	page = h.Page(viewertest.Href(page, "Older"), viewertest.All) // the same second again: nothing new, and a way on
	page = h.Page(viewertest.Href(page, "go back in time"), viewertest.All)
	{
		n := strings.Count(page, `class="turn`)
		checktest.Equal(t, n, 1, "n")
		checktest.Equal(t, viewertest.Href(page, "Older"), "", `viewertest.Href(page, "Older")`)
		checktest.Contains(t, viewertest.Href(page, "Newer"), "understudy.before=", `viewertest.Href(page, "Newer")`)
	}
}

func TestConversation(t *testing.T) {
	h := viewertest.Open(t)
	number := h.OwnNumber()
	var data numberJSON
	_, body, _ := h.Get("/twilio/number/"+number+".json", viewertest.All)
	viewertest.Must(t, json.Unmarshal([]byte(body), &data))
	at := data.Partners[0].Href
	page := h.Page(at, viewertest.Berlin)
	for _, want := range []string{`class="turn`, `class="day"`, "This is the newest.", `dir="auto"`, `href="/twilio/number/`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	page = h.Page(at, viewertest.Clerk)
	if strings.Contains(page, "Message") {
		t.Error("a role without messages meets them")
	}
	for query, want := range map[string]int{"?understudy.before=yesterday": 400, "?x=1": 400, "?understudy.before=2020-01-01T00:00:00Z": 200,
		"?a=%zz": 400} {
		if status, _, _ := h.Get(at+query, viewertest.All); status != want {
			t.Errorf("%s: %d", query, status)
		}
	}
	if page := h.Page(at+"?understudy.before=2020-01-01T00:00:00Z", viewertest.All); !strings.Contains(page, "nothing this far back") {
		t.Error("before everything")
	}
	broken(h, "/Calls.json?To", "")
	h.Mirror.Forget()
	page = h.Page(at, viewertest.All)
	if !regexp.MustCompile(`Calls from .* are not loaded`).MatchString(page) || !strings.Contains(page, `class="turn`) {
		t.Error("a strand that failed")
	}
}
