// Sums: the page of what a search adds up to, for roles that see all, some and none of it.

package sums_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

func TestSums(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	page := h.Page("/search/sums?kind=messages&sum=price&by=month&by=direction", viewertest.All)
	viewertest.CheckHTML(t, "sums", page)
	viewertest.CheckGolden(t, "sums", page)
	for what, c := range map[string]struct {
		query, token string
		status       int
		says         string
	}{
		"count by day":           {"kind=calls", "alltoken", 200, "Matches by day"},
		"all in one":             {"kind=calls&sum=duration&by=nothing", "alltoken", 200, "Duration"},
		"times that passed":      {"kind=messages&sum=delivery&by=status", "alltoken", 200, "at the median of"},
		"nothing":                {"q=xyzzyxyzzy", "alltoken", 200, "Nothing matches."},
		"a mistake":              {"q=stauts:failed", "alltoken", 400, "did you mean"},
		"no such sum":            {"kind=messages&sum=prise", "alltoken", 400, "did you mean"},
		"a hidden price":         {"kind=calls&sum=price", "clerktoken", 403, "can&#39;t see price"},
		"part of a number":       {"kind=calls&sum=count&by=to", "supporttoken", 403, "can&#39;t see to"},
		"the country of a part":  {"kind=calls&sum=count&by=to.country", "supporttoken", 403, "can&#39;t see to"},
		"a hidden kind":          {"kind=messages", "clerktoken", 403, "can&#39;t see messages"},
		"a parameter unknown":    {"what=x", "alltoken", 400, "parameter"},
		"a condition on a price": {"kind=calls&q=price>0", "clerktoken", 403, "can&#39;t see price"},
	} {
		status, body, _ := h.Get("/search/sums?"+c.query, viewertest.Browser{Token: c.token})
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d, want %d and %q: %.2000s", what, status, c.status, c.says, body)
		}
		viewertest.CheckHTML(t, what, body)
	}
	clerk := h.Page("/search/sums?kind=calls", viewertest.Clerk)
	for _, hidden := range []string{`value="price"`, `value="price_unit"`} {
		if strings.Contains(clerk, hidden) {
			t.Errorf("a role is offered what it does not see: %s", hidden)
		}
	}
}

// Each group of a sum leads to its matches, and what is found leads to its sum.
func TestSumsLeadToTheirMatches(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	page := h.Page("/search/sums?q=duration%3E0&kind=calls&by=status", viewertest.All)
	row := regexp.MustCompile(`<th scope="row"><a href="([^"]+)">[^<]+</a></th><td class="num">([0-9,]+)</td>`).FindStringSubmatch(page)
	if row == nil {
		t.Fatal("no group leads anywhere")
	}
	found := h.Page(strings.ReplaceAll(row[1], "&amp;", "&"), viewertest.All)
	if !strings.Contains(found, row[2]+" found") {
		t.Errorf("%s does not find %s", row[1], row[2])
	}
	if back := "/search/sums?q=" + url.QueryEscape("duration>0 status=completed"); !strings.Contains(html.UnescapeString(found), back) {
		t.Errorf("what is found does not lead to %s", back)
	}
}
