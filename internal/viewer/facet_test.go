// Counts beside a page: neither waits for the other.

package viewer

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
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
	h := open(t, searched(t))
	slow := &slowly{Search: h.viewer.Visitor.Options.Search, release: make(chan error)}
	h.viewer.Visitor.Options.Search = slow
	for path, total := range map[string]string{"/twilio/calls": " held", "/twilio/calls?understudy.sort=-duration": " held",
		"/search?q=kind:calls": " found"} {
		page := h.stream(path, "gzip")
		if shell := page.until(`id="rows"`); strings.Contains(shell, `class="facets"`) || !strings.Contains(shell, "Counts by value …") {
			t.Errorf("%s waits for its counts", path)
		}
		slow.release <- nil
		if whole := page.until("</html>\n"); !strings.Contains(whole, `<section class="facets"`) || !strings.Contains(whole, total+"</p>") {
			t.Errorf("%s has no counts", path)
		}
		page = h.stream(path, "identity")
		page.until(`id="rows"`)
		slow.release <- context.DeadlineExceeded
		if whole := page.until("</html>\n"); !strings.Contains(whole, "Counting by value took too long") {
			t.Errorf("%s does not say why there are no counts", path)
		}
	}
}

// What was counted before a page's rows were held does not stand beside them.
func TestCountsFitTheirPage(t *testing.T) {
	told := regexp.MustCompile(`\d rows? of `)
	h := open(t, searched(t)) // which has no alerts
	if page := h.page("/twilio/alerts", all); told.MatchString(page) {
		t.Error("a page of alerts has a count that is none of theirs")
	}
	if page := h.page("/twilio/calls?understudy.q=duration%3E99999", all); told.MatchString(page) || !strings.Contains(page, "0 rows") {
		t.Error("the page says of how many nothing is")
	}
}
