// Exports: what a list of the viewer offers is answered, whether it is composed or not.

package viewer

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

// Lists that no spec says how to compose are exported page by page.
func TestExportsThatAreOfferedAreAnswered(t *testing.T) {
	t.Parallel()
	s := rig.StartTunnels(t, "role: all", "--arrivals", "0")
	offered := regexp.MustCompile(`href="([^"]*\.csv[^"]*)" download`)
	lists := map[string]string{"/twilio/calls": "", "/stripe/customers": "", "/github/repos": "acme/tracker"}
	for _, kind := range []string{"issues", "comments", "labels", "pulls", "commits", "releases"} {
		lists["/github/"+kind+"?owner=acme&repo=tracker"] = ""
	}
	for list, row := range lists {
		page := rig.Get(t, "", s.URL("viewer")+list)
		if page.Status != http.StatusOK {
			t.Errorf("%s: %d", list, page.Status)
			continue
		}
		all := offered.FindAllStringSubmatch(string(page.Body), -1)
		if len(all) == 0 {
			t.Errorf("%s offers no export", list)
		}
		for _, one := range all {
			r := rig.Get(t, "", s.URL("viewer")+html.UnescapeString(one[1]))
			if r.Status != http.StatusOK {
				t.Errorf("%s: %d %.300s", one[1], r.Status, r.Body)
				continue
			}
			if n := strings.Count(string(r.Body), "\n"); n < 2 {
				t.Errorf("%s has %d lines: %.300s", one[1], n, r.Body)
			}
			if !strings.Contains(string(r.Body), row) {
				t.Errorf("%s lacks %s: %.300s", one[1], row, r.Body)
			}
		}
	}
}
