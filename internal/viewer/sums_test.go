// Sums: the page of what a search adds up to, for roles that see all, some and none of it.

package viewer

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestSums(t *testing.T) {
	h := open(t, searched(t))
	page := h.page("/search/sums?kind=messages&sum=price&by=month&by=direction", all)
	wellFormed(t, "sums", page)
	golden(t, "sums", page)
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
		"a hidden price":         {"kind=calls&sum=price", "clerktoken", 403, "does not fully see price"},
		"part of a number":       {"kind=calls&sum=count&by=to", "supporttoken", 403, "does not fully see to"},
		"the country of a part":  {"kind=calls&sum=count&by=to.country", "supporttoken", 403, "does not fully see to"},
		"a hidden kind":          {"kind=messages", "clerktoken", 403, "may not see messages"},
		"a parameter unknown":    {"what=x", "alltoken", 400, "parameter"},
		"a condition on a price": {"kind=calls&q=price>0", "clerktoken", 403, "does not fully see price"},
	} {
		status, body, _ := h.get("/search/sums?"+c.query, as{token: c.token})
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d, want %d and %q: %.2000s", what, status, c.status, c.says, body)
		}
		wellFormed(t, what, body)
	}
	clerk := h.page("/search/sums?kind=calls", as{token: "clerktoken"})
	for _, hidden := range []string{`value="price"`, `value="price_unit"`} {
		if strings.Contains(clerk, hidden) {
			t.Errorf("a role is offered what it does not see: %s", hidden)
		}
	}
}

// Each group of a sum leads to its matches, and what is found leads to its sum.
func TestSumsLeadToTheirMatches(t *testing.T) {
	h := open(t, searched(t))
	page := h.page("/search/sums?q=duration%3E0&kind=calls&by=status", all)
	row := regexp.MustCompile(`<th scope="row"><a href="([^"]+)">[^<]+</a></th><td class="num">([0-9,]+)</td>`).FindStringSubmatch(page)
	if row == nil {
		t.Fatal("no group leads anywhere")
	}
	found := h.page(strings.ReplaceAll(row[1], "&amp;", "&"), all)
	if !strings.Contains(found, row[2]+" found") {
		t.Errorf("%s does not find %s", row[1], row[2])
	}
	if back := "/search/sums?q=" + url.QueryEscape("duration>0 status=completed"); !strings.Contains(html.UnescapeString(found), back) {
		t.Errorf("what is found does not lead to %s", back)
	}
}

// Ready searches stand on the home page and the page of searches, for roles that see what is
// in them.
func TestReadySearches(t *testing.T) {
	const byStatus, unused = "Messages of 30 days, by status", "Numbers unused for 30 days"
	h := open(t, searched(t))
	for _, path := range []string{"/", "/search"} {
		if page := h.page(path, all); !strings.Contains(page, byStatus) || !strings.Contains(page, unused) {
			t.Errorf("%s has no ready searches", path)
		}
		if page := h.page(path, as{token: "supporttoken"}); !strings.Contains(page, byStatus) || strings.Contains(page, unused) {
			t.Errorf("%s shows a role that sees parts of numbers which are idle", path)
		}
		if page := h.page(path, as{token: "clerktoken"}); strings.Contains(page, byStatus) || strings.Contains(page, unused) {
			t.Errorf("%s shows a role searches of what it does not see", path)
		}
	}
}
