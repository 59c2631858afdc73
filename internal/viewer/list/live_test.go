// Live: which lists follow their records while they are open.

package list_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

func TestLiveRows(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) { o.Feed = "/-/feed" })
	rows := regexp.MustCompile(`<p class="news" role="status" data-feed="/-/feed\?source=twilio&amp;kind=calls"` +
		`( data-rows="([^"]*)")?( data-news)?>`)
	support := viewertest.Support
	follows := func(path string, who viewertest.Browser) (at string, news, ok bool) {
		t.Helper()
		text := h.Page(path, who)
		viewertest.CheckHTML(t, path, text)
		m := rows.FindStringSubmatch(text)
		if m == nil {
			if strings.Contains(text, "data-feed") {
				t.Errorf("%s: a feed without a form", path)
			}
			return "", false, false
		}
		script := strings.Contains(text, `<script src="`+h.Viewer.Visitor.Files.Address["live.js"])
		if !script || !strings.Contains(text, `<p class="unseen" role="status">`) {
			t.Errorf("%s: nothing follows the feed, or nothing is told", path)
		}
		return html.UnescapeString(m[2]), m[3] != "", true
	}
	const asked = "understudy.narrow="
	for _, test := range []struct {
		path, rows string
		who        viewertest.Browser
		news, ok   bool
	}{
		{"/twilio/calls", "/twilio/calls?" + asked, support, true, true},
		{"/twilio/calls?PageSize=5", "/twilio/calls?PageSize=5&" + asked, support, true, true},
		{"/twilio/calls?Status=busy", "/twilio/calls?Status=busy&" + asked, support, false, true},
		{"/twilio/calls?understudy.q=busy", "/twilio/calls?understudy.q=busy&" + asked, support, false, true},
		{"/twilio/calls?understudy.sort=-duration", "/twilio/calls?understudy.sort=-duration&" + asked, support, false, true},
		{"/twilio/calls?" + understudy.OwnAsOf + "=2026-06-01T10:00:00Z", "", support, false, false},
		{"/twilio/calls", "", viewertest.Clerk, true, true}, // it sees no ids
		{"/twilio/calls?Status=busy", "", viewertest.Clerk, false, false},
		{"/twilio/usage_records", "", viewertest.All, false, false},
	} {
		at, news, ok := follows(test.path, test.who)
		checktest.Equal(t, at, test.rows, "%s: at", test.path)
		checktest.Equal(t, news, test.news, "%s: news", test.path)
		checktest.Equal(t, ok, test.ok, "%s: ok", test.path)
	}
	_, rest, paged := strings.Cut(h.Page("/twilio/calls?PageSize=5", support), `rel="next" href="`)
	older, _, _ := strings.Cut(rest, `"`)
	{
		at, news, _ := follows(html.UnescapeString(older), support)
		checktest.MustTrue(t, paged, "the older page %s: paged is false", older)
		checktest.MustTrue(t, !news, "the older page %s: news is true", older)
		checktest.Equal(t, at, "/twilio/calls?PageSize=5&"+asked, "the older page %s: at", older)
	}
	if strings.Contains(viewertest.Open(t).Page("/twilio/calls", viewertest.All), "data-feed") {
		t.Error("a list is live without a feed")
	}
}

// What is asked for rows that changed is those rows, as the list is filtered, in its columns.
func TestRowsThatChanged(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) { o.Feed = "/-/feed" })
	list := h.Page("/twilio/calls?Status=completed&understudy.columns=sid,status", viewertest.All)
	ids := regexp.MustCompile(`<tr><td[^>]*><a href="/twilio/calls/(CA[0-9a-f]{32})"`).FindAllStringSubmatch(list, -1)
	at := regexp.MustCompile(`data-rows="([^"]*)"`).FindStringSubmatch(list)
	if len(ids) < 3 || at == nil {
		t.Fatalf("%d rows, rows at %v", len(ids), at)
	}
	busy := regexp.MustCompile(`/twilio/calls/(CA[0-9a-f]{32})`).FindStringSubmatch(h.Page("/twilio/calls?Status=busy", viewertest.All))
	changed := h.Page(html.UnescapeString(at[1])+url.QueryEscape("id:"+ids[0][1]+","+ids[2][1]+","+busy[1]), viewertest.All)
	body := regexp.MustCompile(`(?s)<tbody id="rows">(.*?)</tbody>`).FindStringSubmatch(changed)
	checktest.MustTrue(t, body != nil, "asked for two rows and one that does not fit, got: body is nil")
	checktest.Equal(t, strings.Count(body[1], "<tr"), 2,
		`asked for two rows and one that does not fit, got: strings.Count(body[1], "<tr")`)
	checktest.Contains(t, body[1], ids[0][1], "asked for two rows and one that does not fit, got: body[1]")
	checktest.Contains(t, body[1], ids[2][1], "asked for two rows and one that does not fit, got: body[1]")
	checktest.Equal(t, strings.Count(body[1], "<td"), 4,
		`asked for two rows and one that does not fit, got: strings.Count(body[1], "<td")`)
}
