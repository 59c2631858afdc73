// Exports: what a list of the viewer offers is answered, whether it is composed or not.

package e2e

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Lists that no spec says how to compose are exported page by page.
func TestExportsThatAreOfferedAreAnswered(t *testing.T) {
	t.Parallel()
	s := startTunnelled(t, "role: all", "--arrivals", "0")
	offered := regexp.MustCompile(`href="([^"]*\.csv[^"]*)" download`)
	lists := map[string]string{"/twilio/calls": "", "/stripe/customers": "", "/github/repos": "acme/tracker"}
	for _, kind := range []string{"issues", "comments", "labels", "pulls", "commits", "releases"} {
		lists["/github/"+kind+"?owner=acme&repo=tracker"] = ""
	}
	for list, row := range lists {
		page := get(t, "", s.URL("viewer")+list)
		if page.status != http.StatusOK {
			t.Errorf("%s: %d", list, page.status)
			continue
		}
		all := offered.FindAllStringSubmatch(string(page.body), -1)
		if len(all) == 0 {
			t.Errorf("%s offers no export", list)
		}
		for _, one := range all {
			r := get(t, "", s.URL("viewer")+html.UnescapeString(one[1]))
			if r.status != http.StatusOK {
				t.Errorf("%s: %d %.300s", one[1], r.status, r.body)
				continue
			}
			if n := strings.Count(string(r.body), "\n"); n < 2 {
				t.Errorf("%s has %d lines: %.300s", one[1], n, r.body)
			}
			if !strings.Contains(string(r.body), row) {
				t.Errorf("%s lacks %s: %.300s", one[1], row, r.body)
			}
		}
	}
}
