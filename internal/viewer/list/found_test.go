// Found: what a search found, by the real searcher over records of the simulated API.

package list_test

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/search"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// column is the texts of one column of a page's first table.
func columnOf(page, heading string) []string {
	plain := func(cell string) string {
		return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(cell, ""))
	}
	at := -1
	for i, m := range regexp.MustCompile(`(?s)<th scope="col"[^>]*>(.*?)</th>`).FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(plain(m[1]), heading) {
			at = i
		}
	}
	var all []string
	for _, row := range regexp.MustCompile(`(?s)<tr[^>]*><td.*?</tr>`).FindAllString(page, -1) {
		if cells := regexp.MustCompile(`(?s)<td[^>]*>(.*?)</td>`).FindAllStringSubmatch(row, -1); at >= 0 && at < len(cells) {
			all = append(all, plain(cells[at][1]))
		}
	}
	return all
}

func TestFound(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	word := word(h, t)
	page := h.Page("/search?q="+word, viewertest.All)
	viewertest.CheckHTML(t, "found", page)
	if !regexp.MustCompile(`(?i)<mark>` + word + `</mark>`).MatchString(page) {
		t.Errorf("no %q is marked", word)
	}
	checktest.Contains(t, page, `href="/twilio/messages/SM`,
		"a hit leads nowhere, or there is no order or facet: page")
	checktest.Contains(t, page, "newest first", "a hit leads nowhere, or there is no order or facet: page")
	checktest.Contains(t, page, "<h2>Kind</h2>", "a hit leads nowhere, or there is no order or facet: page")
	if got := viewertest.Href(page, "Messages"); got == "" {
		t.Error("no kind to narrow by")
	}
	// Its table is a list of that kind.
	if table := h.Page("/twilio/messages?understudy.q="+word, viewertest.All); len(columnOf(table, "Status")) == 0 ||
		!strings.Contains(table, "Remove the filter Has "+word) {
		t.Error("the same as a table has no rows, or no chip")
	}
	// Paging by cursors, and back.
	first := h.Page("/search?q=status:completed", viewertest.All)
	ids := func(page string) []string {
		return regexp.MustCompile(`<span class="code"><a href="/twilio/[a-z_]+/[A-Z]{2}[0-9a-f]{32}`).FindAllString(page, -1)
	}
	second := h.Page(viewertest.Href(first, "Older"), viewertest.All)
	checktest.MustEqual(t, len(ids(first)), 50, "len(ids(first))")
	checktest.MustTrue(t, len(ids(second)) != 0, "len(ids(second)) is 0")
	checktest.True(t, !slices.Contains(ids(second), ids(first)[0]),
		"slices.Contains(ids(second), ids(first)[0]) is true")
	if back := h.Page(viewertest.Href(second, "Newer"), viewertest.All); !slices.Equal(ids(back), ids(first)) {
		t.Error("Newer does not lead back")
	}
	// Ids and numbers still open their pages, in quotes they are looked for.
	call := h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`)
	if status, _, head := h.Get("/search?q="+call, viewertest.All); status != 303 || head.Get("Location") != "/twilio/calls/"+call {
		t.Errorf("%d %s", status, head.Get("Location"))
	}
	if page := h.Page("/search?q=%22"+call+"%22", viewertest.All); !strings.Contains(page, "/twilio/calls/"+call) {
		t.Error("an id in quotes is not found")
	}
	if page := h.Page("/search?q=zzzzqqqq", viewertest.All); !strings.Contains(page, "Nothing found.") || !strings.Contains(page, "deliv*") {
		t.Error("nothing found does not help")
	}
	for _, path := range []string{"/search?q=a&nonsense=1", "/search?q=a&sort=size", "/search?q=" + strings.Repeat("a", 3000),
		"/search?q=a&cursor=x", "/search?%zz"} {
		if status, _, _ := h.Get(path, viewertest.All); status != 400 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// word is one that some messages have.
func word(h *viewertest.Fixture, t *testing.T) string {
	for _, body := range columnOf(h.Page("/twilio/messages?PageSize=100", viewertest.All), "Body") {
		for _, w := range strings.Fields(body) {
			if len(w) > 4 && strings.Trim(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz") == "" {
				return strings.ToLower(w)
			}
		}
	}
	t.Fatal("no message has a plain word")
	return ""
}

// What is typed stands for itself beside the list's filters: either-or in any
// writing, and a number as people write it.
func TestTypedBesideFilters(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	rows := func(q string) int {
		_, body, _ := h.Get("/twilio/calls.jsonl?"+q, viewertest.All)
		if strings.Contains(body, `"status":4`) {
			t.Errorf("%s: %s", q, body)
		}
		return strings.Count(body, "\n")
	}
	if n := rows("Status=busy&understudy.q=" + url.QueryEscape("status:completed OR(status:failed)")); n != 0 {
		t.Errorf("%d calls are busy, and completed or failed", n)
	}
	for _, number := range columnOf(h.Page("/twilio/calls", viewertest.All), "To") {
		digits := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, number)
		if len(digits) != 11 || digits[0] != '1' {
			continue
		}
		typed := "+1 (" + digits[1:4] + ") " + digits[4:7] + "-" + digits[7:]
		if n, want := rows("understudy.q="+url.QueryEscape(typed)), rows("understudy.q="+url.QueryEscape("number:+"+digits)); n != want ||
			n == 0 {
			t.Errorf("%s: %d calls, want %d", typed, n, want)
		}
		return
	}
	t.Fatal("no call to such a number")
}

// A hit says nothing of what it has none of, and each note once.
func TestHitsSayWhatThereIs(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) {
		s, ok := o.Search.(*search.Searcher)
		if !ok {
			t.Fatal("not the search")
		}
		o.Search = windowed{s}
	})
	page := h.Page("/search?q=kind%3Amessages&sort=rank", viewertest.All)
	facts := regexp.MustCompile(`<span class="fine">(?i:media) <b>([^<]*)</b>`).FindAllStringSubmatch(page, -1)
	if strings.Contains(fmt.Sprint(facts), " 0]") || !strings.Contains(page, `class="hits"`) {
		t.Errorf("facts: %v", facts)
	}
	if n := strings.Count(page, "there are older ones"); n != 1 {
		t.Errorf("the note appears %d times", n)
	}
}

// windowed says of every search that there was more than it put in order.
type windowed struct{ *search.Searcher }

func (w windowed) Find(ctx context.Context, c understudy.Caller, ask query.SearchRequest) (*query.SearchResult, error) {
	r, err := w.Searcher.Find(ctx, c, ask)
	if err == nil && !ask.Facets {
		r.More, r.Notes = true, append(r.Notes, "Only the newest 3 matches are sorted; there are older ones.")
	}
	return r, err
}

// A mistake is pointed at, and nothing of what was typed is HTML.
func TestMistakesArePointedAt(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	status, page, _ := h.Get("/search?q="+url.QueryEscape(`late (lost <b>`), viewertest.All)
	checktest.Equal(t, status, 400, "status")
	checktest.Contains(t, page, `<mark>`, "page")
	checktest.Contains(t, page, `aria-describedby="wrong"`, "page")
	checktest.Contains(t, page, `aria-invalid="true"`, "page")
	checktest.Lacks(t, page, "<b>`", "page")
	checktest.Contains(t, page, "&lt;b&gt;", "page")
	viewertest.CheckHTML(t, "mistake", page)
	status, page, _ = h.Get("/twilio/calls?understudy.q=staus:busy", viewertest.All)
	if status != 400 || !strings.Contains(page, "<mark>staus") {
		t.Errorf("a list: %d %s", status, regexp.MustCompile(`(?s)<main.*</main>`).FindString(page))
	}
	status, body, _ := h.Get("/search.jsonl?q=staus:busy", viewertest.All)
	if status != 400 || !strings.Contains(body, "Character 1") {
		t.Errorf("data: %d %s", status, body)
	}
}
