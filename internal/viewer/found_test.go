// Found: conditions beside each other, pages of another role, mistakes in a box.

package viewer

import (
	"bytes"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/viewer/page"
)

// Conditions beside each other are each by itself, however they are written.
func TestNarrowingIsGrouped(t *testing.T) {
	h := open(t, searched(t))
	either := url.QueryEscape("status:busy OR status:delivered")
	page := h.page("/search?q=kind%3Acalls&narrow="+either, all)
	if !strings.Contains(page, "/twilio/calls/CA") || strings.Contains(page, `href="/twilio/messages/SM`) {
		t.Error("either-or reaches past its condition")
	}
	list := h.page("/twilio/calls?Status=busy&understudy.narrow="+url.QueryEscape("direction=inbound OR duration>=0"), all)
	if strings.Contains(list, ">completed<") && strings.Contains(list, `class="pill">completed`) {
		t.Error("either-or reaches past the filter")
	}
}

// A page further on is of one role: for another its address leads to the first.
func TestPagesOfAnotherRole(t *testing.T) {
	h := open(t, searched(t))
	for _, path := range []string{"/search?q=kind%3Amessages", "/twilio/messages?understudy.sort=status&understudy.q=has%3Astatus"} {
		next := href(h.page(path, all), "Older")
		if next == "" {
			t.Fatalf("%s has one page", path)
		}
		status, body, _ := h.get(next, as{token: "supporttoken"})
		first := href(body, "Go to the first page")
		if status != 400 || first == "" || strings.Contains(first, "cursor") {
			t.Errorf("%s: %d, and leads to %q", next, status, first)
			continue
		}
		if status, _, _ := h.get(first, as{token: "supporttoken"}); status != 200 {
			t.Errorf("%s: %d", first, status)
		}
	}
}

// A mistake in a list's box is shown in what was typed, without the list's own
// conditions behind it.
func TestMistakesInABox(t *testing.T) {
	h := open(t, searched(t))
	for text, want := range map[string]string{"late stauts:x": "late <mark>stauts</mark>:x</bdi>",
		`late "x`: `late <mark>&#34;x</mark></bdi>`} {
		status, body, _ := h.get("/twilio/calls?Status=busy&understudy.q="+url.QueryEscape(text), all)
		if status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, no %s", text, status, want)
		}
	}
}

// What a role may not ask for has the status of that, not of a mistake.
func TestRefusedSearch(t *testing.T) {
	var log bytes.Buffer
	h := open(t, searched(t), func(o *page.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for text, want := range map[string]int{"body:late": 403, "late body:x (": 400, "stauts:x": 400, "late": 200} {
		if status, body, _ := h.get("/search?q="+url.QueryEscape(text), as{token: "supporttoken"}); status != want {
			t.Errorf("%s: %d %s", text, status, understudy.Clip(body))
		}
	}
	if status, body, _ := h.get("/twilio/calls?understudy.q=stauts:x", all); status != 400 {
		t.Errorf("a list of it: %d %s", status, understudy.Clip(body))
	}
	if text := log.String(); text != "" { // it is the reader's mistake, and the page says so
		t.Errorf("logged: %s", text)
	}
}

// A hit begins with the words that were found, and says its state once.
func TestHitBeginsWithWhatWasFound(t *testing.T) {
	h := open(t, searched(t, "/Notifications.json"))
	hits := func(path string) []string {
		_, found, _ := strings.Cut(h.page(path, all), `<ol class="hits"`)
		return strings.Split(found, "\n<li>")[1:]
	}
	failed := hits("/search?q=failed+kind%3Amessages")
	if len(failed) == 0 {
		t.Fatal("nothing was found")
	}
	for _, hit := range failed {
		words, rest, _ := strings.Cut(hit, `<p class="what">`)
		if !strings.Contains(words, `class="piece"`) {
			t.Errorf("no text comes first: %s", hit)
		}
		if strings.Contains(words, "Status") || strings.Count(rest, `class="pill bad"`) != 1 {
			t.Errorf("the state is told twice, or not as a pill: %s", hit)
		}
	}
	forms := hits("/search?q=HTTP+kind%3Anotifications")
	if len(forms) == 0 {
		t.Error("no notification was found")
	}
	for _, hit := range forms {
		if strings.Contains(hit, "Msg=") || strings.Contains(hit, "%2F") || !strings.Contains(hit, "<mark>HTTP</mark> ") {
			t.Errorf("the text is not decoded, or not marked: %s", hit)
		}
	}
}

// Tables are chosen once: the browser remembers them for every search.
func TestTablesOfASearchAreRemembered(t *testing.T) {
	h := open(t, searched(t))
	status, _, head := h.do("POST", "/search/view", "view=table&back="+url.QueryEscape("/search?q=late"), all)
	if status != 303 || head.Get("Location") != "/search?q=late" {
		t.Fatalf("%d to %q", status, head.Get("Location"))
	}
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	mine := as{token: "alltoken", headers: map[string]string{"Cookie": cookie}}
	for path, tables := range map[string]int{"/search?q=kind%3Acalls": 1, "/search?q=kind%3Acalls&form=select": 1,
		"/search?q=kind%3Acalls+OR+kind%3Amessages": 2} {
		page := h.page(path, mine)
		if n := strings.Count(page, "<table>"); n != tables || strings.Contains(page, `class="hits"`) || strings.Count(page, `id="rows"`) != 1 {
			t.Errorf("%s has %d tables, want %d", path, n, tables)
		}
		if strings.Contains(page, `name="record"`) != strings.Contains(path, "form=select") {
			t.Errorf("%s: boxes to select", path)
		}
	}
	if _, _, head := h.do("POST", "/search/view", "view=cards&back=/search", mine); !strings.Contains(head.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("cards: %q", head.Get("Set-Cookie"))
	}
	if status, _, head := h.do("POST", "/search/view", "view=rows", all); status != 400 || head.Get("Set-Cookie") != "" {
		t.Errorf("another view: %d", status)
	}
}
