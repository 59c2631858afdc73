// Found: conditions beside each other, orders, pages of another role, mistakes in a box.

package list_test

import (
	"bytes"
	"cmp"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// A list says that it is newest first only where the times in its rows are so.
func TestNewestFirstIsTrue(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	first := regexp.MustCompile(`<tr[^>]*><td class="when"[^>]*><a [^>]*>(?:<time datetime="([^"]*)")?`)
	said := map[bool]int{}
	for _, path := range []string{"/twilio/calls", "/twilio/calls?Status=busy", "/twilio/calls?Status=in-progress", "/twilio/messages",
		"/twilio/alerts", "/twilio/conferences", "/twilio/calls?understudy.sort=-duration", "/twilio/calls?understudy.sort=start_time",
		"/twilio/calls?understudy.narrow=direction%3Dinbound", "/twilio/calls?From=%2B15550001111"} {
		page := h.Page(path, viewertest.All)
		var times []string
		for _, m := range first.FindAllStringSubmatch(page, -1) {
			times = append(times, m[1])
		}
		want := len(times) > 1 && slices.IsSortedFunc(times, func(a, b string) int { return strings.Compare(b, a) })
		got := regexp.MustCompile(`(rows?|stored), newest first`).MatchString(page)
		if got != want || got != strings.Contains(page, ", newest first</caption>") {
			t.Errorf("%s says that it is newest first: %t, want %t: %q", path, got, want, times)
		}
		said[got]++
	}
	if said[true] < 3 || said[false] < 3 {
		t.Errorf("too few lists are newest first, or are not: %v", said)
	}
	for token, want := range map[string]bool{"alltoken": true, "watchertoken": false} { // who sees no time is not told of their order
		page := h.Page("/twilio/conferences", viewertest.Browser{Token: token})
		if got := strings.Contains(page, ", newest first"); got != want || !strings.Contains(page, "<caption") {
			t.Errorf("to %s conferences are newest first: %t, want %t", token, got, want)
		}
	}
}

func TestSortedList(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	page := h.Page("/twilio/calls", viewertest.All)
	if strings.Contains(page, "aria-sort") || !strings.Contains(page, `<a href="/twilio/calls?understudy.sort=-start_time">Started</a>`) {
		t.Error("a list with calls that have not begun says that it is in the order of their beginning, or not how it comes there")
	}
	busy := h.Page("/twilio/calls?Status=busy", viewertest.All)
	if !strings.Contains(busy, `aria-sort="descending"><a href="/twilio/calls?Status=busy&amp;understudy.sort=start_time">`) {
		t.Error("the list does not say that it is newest first, or how to turn it round")
	}
	to := viewertest.Href(page, "Duration")
	if to != "/twilio/calls?understudy.sort=-duration" {
		t.Fatalf("sorting by duration is %q", to)
	}
	numbers := func(page string) []int {
		var all []int
		for _, text := range columnOf(page, "Duration") {
			if minutes, seconds, ok := strings.Cut(strings.TrimSpace(text), ":"); ok {
				m, _ := strconv.Atoi(minutes)
				n, _ := strconv.Atoi(seconds)
				all = append(all, m*60+n)
			}
		}
		return all
	}
	page = h.Page(to, viewertest.All)
	viewertest.CheckHTML(t, to, page)
	down := numbers(page)
	checktest.MustTrue(t, len(down) >= 40, "largest first: len(down) is %v, want >= 40", len(down))
	checktest.True(t, slices.IsSortedFunc(down, func(a, b int) int { return b - a }),
		"largest first: slices.IsSortedFunc(down, func(a, b int) int { return b - a }) is false")
	checktest.Contains(t, page, `aria-sort="descending"><a href="/twilio/calls?understudy.sort=duration">`,
		"largest first: page")
	checktest.Contains(t, page, "found in stored records", "largest first: page")
	next := h.Page(viewertest.Href(page, "Older"), viewertest.All)
	more := numbers(next)
	checktest.MustTrue(t, len(more) != 0, "the next page begins with: len(more) is 0")
	checktest.True(t, more[0] <= down[len(down)-1], "the next page begins with: more[0] is %v", more[0])
	checktest.True(t, more[0] != down[0], "the next page begins with: more[0] is %v", more[0])
	if back := numbers(h.Page(viewertest.Href(next, "Newer"), viewertest.All)); !slices.Equal(back, down) {
		t.Errorf("back leads to %v", back)
	}
	up := numbers(h.Page(viewertest.Href(page, "Duration"), viewertest.All))
	if !slices.IsSorted(up) || slices.Equal(up, down) {
		t.Errorf("smallest first: %v", up)
	}
	for sort, largest := range map[string]bool{"price": true, "-price": false, "duration": false, "-duration": true} {
		if shown := h.Page("/search?q=kind%3Acalls&sort="+sort, viewertest.All); strings.Contains(shown, ", largest first") != largest {
			t.Errorf("a search by %s: largest first is not said to be %v", sort, largest)
		}
	}
	if third := viewertest.Href(h.Page(viewertest.Href(page, "Duration"), viewertest.All), "Duration"); third != "/twilio/calls" {
		t.Errorf("a third time leads to %q", third)
	}
	for path, moved := range map[string]string{"/twilio/calls?understudy.sort=-start_time": "/twilio/calls",
		"/twilio/calls?understudy.sort=": "/twilio/calls", "/twilio/calls?understudy.q=+&understudy.narrow=": "/twilio/calls"} {
		if _, _, head := h.Get(path, viewertest.All); head.Get("Location") != moved {
			t.Errorf("%s moves to %q", path, head.Get("Location"))
		}
	}
	// With upstream's own filters beside it, and within the page's size.
	page = h.Page("/twilio/calls?Status=completed&PageSize=20&understudy.sort=duration", viewertest.All)
	if states := columnOf(page, "Status"); len(states) != 20 || slices.ContainsFunc(states, func(s string) bool { return s != "completed" }) {
		t.Errorf("%q", states)
	}
}

// TestSortingByACostIsAsItIsShown: a cost is shown without its sign, and orders the rows so.
func TestSortingByACostIsAsItIsShown(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	costs := func(path string) (found []float64) {
		for _, text := range columnOf(h.Page(path, viewertest.All), "Price") {
			if n, err := strconv.ParseFloat(strings.TrimLeft(strings.ReplaceAll(text, ",", ""), "$"), 64); err == nil {
				found = append(found, n)
			}
		}
		return found
	}
	down := costs("/twilio/messages?understudy.sort=-price")
	checktest.MustTrue(t, len(down) >= 40, "largest first: len(down) is %v, want >= 40", len(down))
	checktest.True(t, down[0] > 0, "largest first: down[0] is %v, want > 0", down[0])
	checktest.True(t, slices.IsSortedFunc(down, func(a, b float64) int { return cmp.Compare(b, a) }),
		"largest first: slices.IsSortedFunc(down, func(a, b float64) int { return cm… is false")
	if up := costs("/twilio/messages?understudy.sort=price"); len(up) < 40 || !slices.IsSorted(up) {
		t.Errorf("smallest first: %v", up)
	}
}

// What a role does not fully see sorts nothing, and has no way to.
func TestSortingTellsNothing(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	support := viewertest.Support
	page := h.Page("/twilio/calls", support)
	if viewertest.Href(page, "From") != "" && strings.Contains(viewertest.Href(page, "From"), "understudy.sort") || viewertest.Href(page,
		"Duration") == "" {
		t.Error("a masked column can be sorted by")
	}
	for _, path := range []string{"/twilio/calls?understudy.sort=from", "/twilio/messages?understudy.sort=-body",
		"/twilio/messages.csv?understudy.sort=-body", "/twilio/messages?understudy.q=body:hello", "/search?q=body:hello",
		"/search.csv?q=body:hello"} {
		if status, body, _ := h.Get(path, support); status != 403 && !strings.Contains(body, "role") {
			t.Errorf("%s: %d", path, status)
		}
	}
	for _, path := range []string{"/twilio/calls?understudy.sort=duration&understudy.as_of=2026-06-01T12:00:00Z",
		"/twilio/incoming_phone_numbers?PhoneNumber=555&understudy.sort=sid", "/twilio/calls?understudy.sort=nothing"} {
		if status, _, _ := h.Get(path, viewertest.All); status != 400 {
			t.Errorf("%s: %d", path, status)
		}
	}
	plain := viewertest.Open(t)
	if status, _, _ := plain.Get("/twilio/calls?understudy.sort=duration", viewertest.All); status != 400 {
		t.Errorf("without a search: %d", status)
	}
	{
		page := plain.Page("/twilio/calls", viewertest.All)
		checktest.Lacks(t, page, "understudy.sort", "without a search there is a way to it: page")
		checktest.Lacks(t, page, `class="facets`, "without a search there is a way to it: page")
		checktest.Lacks(t, page, "understudy.q", "without a search there is a way to it: page")
	}
}

// Conditions beside each other are each by itself, however they are written.
func TestNarrowingIsGrouped(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	either := url.QueryEscape("status:busy OR status:delivered")
	page := h.Page("/search?q=kind%3Acalls&narrow="+either, viewertest.All)
	if !strings.Contains(page, "/twilio/calls/CA") || strings.Contains(page, `href="/twilio/messages/SM`) {
		t.Error("either-or reaches past its condition")
	}
	list := h.Page("/twilio/calls?Status=busy&understudy.narrow="+url.QueryEscape("direction=inbound OR duration>=0"), viewertest.All)
	if strings.Contains(list, ">completed<") && strings.Contains(list, `class="pill">completed`) {
		t.Error("either-or reaches past the filter")
	}
}

// A page further on is of one role: for another its address leads to the first.
func TestPagesOfAnotherRole(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	for _, path := range []string{"/search?q=kind%3Amessages", "/twilio/messages?understudy.sort=status&understudy.q=has%3Astatus"} {
		next := viewertest.Href(h.Page(path, viewertest.All), "Older")
		if next == "" {
			t.Fatalf("%s has one page", path)
		}
		status, body, _ := h.Get(next, viewertest.Support)
		first := viewertest.Href(body, "Go to the first page")
		checktest.MustEqual(t, status, 400, "%s: status", next)
		checktest.MustTrue(t, first != "", "%s: first is empty", next)
		checktest.MustLacks(t, first, "cursor", "%s: first", next)
		if status, _, _ := h.Get(first, viewertest.Support); status != 200 {
			t.Errorf("%s: %d", first, status)
		}
	}
}

// A mistake in a list's box is shown in what was typed, without the list's own
// conditions behind it.
func TestMistakesInABox(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	for text, want := range map[string]string{"late stauts:x": "late <mark>stauts</mark>:x</bdi>",
		`late "x`: `late <mark>&#34;x</mark></bdi>`} {
		status, body, _ := h.Get("/twilio/calls?Status=busy&understudy.q="+url.QueryEscape(text), viewertest.All)
		if status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, no %s", text, status, want)
		}
	}
}

// What a role may not ask for has the status of that, not of a mistake.
func TestRefusedSearch(t *testing.T) {
	var log bytes.Buffer
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for text, want := range map[string]int{"body:late": 403, "late body:x (": 400, "stauts:x": 400, "late": 200} {
		if status, body, _ := h.Get("/search?q="+url.QueryEscape(text), viewertest.Support); status != want {
			t.Errorf("%s: %d %s", text, status, understudy.Clip(body))
		}
	}
	if status, body, _ := h.Get("/twilio/calls?understudy.q=stauts:x", viewertest.All); status != 400 {
		t.Errorf("a list of it: %d %s", status, understudy.Clip(body))
	}
	if text := log.String(); text != "" { // it is the reader's mistake, and the page says so
		t.Errorf("logged: %s", text)
	}
}

// A hit begins with the words that were found, and says its state once.
func TestHitBeginsWithWhatWasFound(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t, "/Notifications.json"))
	hits := func(path string) []string {
		_, found, _ := strings.Cut(h.Page(path, viewertest.All), `<ol class="hits"`)
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
		checktest.Lacks(t, hit, "Msg=", "the text is not decoded, or not marked: hit")
		checktest.Lacks(t, hit, "%2F", "the text is not decoded, or not marked: hit")
		checktest.Contains(t, hit, "<mark>HTTP</mark> ", "the text is not decoded, or not marked: hit")
	}
}

// Tables are chosen once: the browser remembers them for every search.
func TestTablesOfASearchAreRemembered(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	status, _, head := h.Do("POST", "/search/view", "view=table&back="+url.QueryEscape("/search?q=late"), viewertest.All)
	if status != 303 || head.Get("Location") != "/search?q=late" {
		t.Fatalf("%d to %q", status, head.Get("Location"))
	}
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	mine := viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Cookie": cookie}}
	for path, tables := range map[string]int{"/search?q=kind%3Acalls": 1, "/search?q=kind%3Acalls&form=select": 1,
		"/search?q=kind%3Acalls+OR+kind%3Amessages": 2} {
		page := h.Page(path, mine)
		n := strings.Count(page, "<table>")
		checktest.Equal(t, n, tables, "n")
		checktest.Lacks(t, page, `class="hits"`, "page")
		checktest.Equal(t, strings.Count(page, `id="rows"`), 1, "strings.Count(page, `id=\"rows\"`)")
		if strings.Contains(page, `name="record"`) != strings.Contains(path, "form=select") {
			t.Errorf("%s: boxes to select", path)
		}
	}
	if _, _, head := h.Do("POST", "/search/view", "view=cards&back=/search", mine); !strings.Contains(head.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("cards: %q", head.Get("Set-Cookie"))
	}
	if status, _, head := h.Do("POST", "/search/view", "view=rows", viewertest.All); status != 400 || head.Get("Set-Cookie") != "" {
		t.Errorf("another view: %d", status)
	}
}
