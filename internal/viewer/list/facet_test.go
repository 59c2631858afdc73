// Counts beside a page: neither waits for the other.

package list_test

import (
	"context"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// slowly counts when it is told to, or until its reader has left.
type slowly struct {
	page.Search
	release chan error
}

func (s *slowly) Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error) {
	if a.Facets {
		select {
		case err := <-s.release:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Search.Find(ctx, c, a)
}

// The rows of a list and what a search found are there before they are counted.
func TestRowsBeforeCounts(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	slow := &slowly{Search: h.Viewer.Visitor.Options.Search, release: make(chan error)}
	h.Viewer.Visitor.Options.Search = slow
	for path, total := range map[string]string{"/twilio/calls": " stored", "/twilio/calls?understudy.sort=-duration": " stored",
		"/search?q=kind:calls": " found"} {
		page := h.Stream(path, "gzip")
		if shell := page.Until(`id="rows"`); strings.Contains(shell, `class="facets"`) || !strings.Contains(shell, "Counts by value …") {
			t.Errorf("%s waits for its counts", path)
		}
		slow.release <- nil
		if whole := page.Until("</html>\n"); !strings.Contains(whole, `<section class="facets"`) || !strings.Contains(whole, total+"</p>") {
			t.Errorf("%s has no counts", path)
		}
		page = h.Stream(path, "identity")
		page.Until(`id="rows"`)
		slow.release <- context.DeadlineExceeded
		if whole := page.Until("</html>\n"); !strings.Contains(whole, "Counting took too long") {
			t.Errorf("%s does not say why there are no counts", path)
		}
	}
}

// What was counted before a page's rows were held does not stand beside them.
func TestCountsFitTheirPage(t *testing.T) {
	told := regexp.MustCompile(`\d rows? of `)
	h := viewertest.Open(t, viewertest.WithSearch(t)) // which has no alerts
	if page := h.Page("/twilio/alerts", viewertest.All); told.MatchString(page) {
		t.Error("a page of alerts has a count that is none of theirs")
	}
	if page := h.Page("/twilio/calls?understudy.q=duration%3E99999", viewertest.All); told.MatchString(page) || !strings.Contains(page,
		"0 rows") {
		t.Error("the page says of how many nothing is")
	}
}

// Counts narrow a list by upstream's own filter where it has one, else by a
// condition; a chip takes either back.
func TestListFacets(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	page := h.Page("/twilio/calls", viewertest.All)
	viewertest.CheckHTML(t, "facets", page)
	value := regexp.MustCompile(`<a href="([^"]*)"><bdi>([^<]*)</bdi> <span class="n">([^<]*)</span>`)
	counts := map[string][2]string{}
	for _, m := range value.FindAllStringSubmatch(page, -1) {
		counts[m[2]] = [2]string{html.UnescapeString(m[1]), m[3]}
	}
	if counts["busy"][0] != "/twilio/calls?Status=busy" || counts["inbound"][0] != "/twilio/calls?understudy.narrow=direction%3Dinbound" {
		t.Fatalf("%v", counts)
	}
	busy := h.Page("/twilio/calls?Status=busy&PageSize=1000", viewertest.All)
	if n := strings.Count(busy, `class="pill bad">busy`) + strings.Count(busy, `class="pill">busy`); strconv.Itoa(n) != counts["busy"][1] {
		t.Errorf("%d calls are busy, the count says %s", n, counts["busy"][1])
	}
	inbound := h.Page(counts["inbound"][0], viewertest.All)
	if directions := columnOf(inbound, "Direction"); len(directions) == 0 ||
		slices.ContainsFunc(directions, func(s string) bool { return s != "inbound" }) {
		t.Errorf("narrowed by direction: %q", directions)
	}
	chip := regexp.MustCompile(`<a href="([^"]*)" aria-label="Remove the filter Direction inbound"`).FindStringSubmatch(inbound)
	if chip == nil || chip[1] != "/twilio/calls" {
		t.Errorf("the chip leads to %q", chip)
	}
	for path, want := range map[string]string{
		"/twilio/messages?understudy.narrow=error_code%3D30003":  "Error code <b>30003 Handset unreachable</b>",
		"/twilio/calls?understudy.narrow=date%3A2026-05":         "Month <b>May 2026</b>",
		"/twilio/calls?understudy.narrow=date%3A2026-05-31":      "Day <b>31 May 2026</b>",
		"/twilio/calls?understudy.narrow=date%3E%3D2026-05-31":   "Only <b>date&gt;=2026-05-31</b>",
		"/search?q=error_code%3A30003&narrow=kind%3Amessages":    "Kind <b>Messages</b>",
		"/search?q=kind%3Amessages&narrow=status%3D%22failed%22": "Status <b>failed</b>",
		"/search?q=kind%3Amessages&narrow=error_code%3D30003":    "Error code <b>30003 Handset unreachable</b>",
	} {
		if _, page, _ := h.Get(path, viewertest.All); !strings.Contains(page, "<li><span>"+want+"</span>") {
			t.Errorf("%s has the chips %q, want %q", path, regexp.MustCompile(`<li><span>.*?</span>`).FindAllString(page, -1), want)
		}
	}
	if on := h.Page(counts["inbound"][0], viewertest.All); !strings.Contains(on,
		`<a href="/twilio/calls" aria-current="true"><bdi>inbound</bdi>`) {
		t.Error("what is picked is not marked")
	}
}
