// Links of rows: where a row leads, and rows that lead nowhere.

package list_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

// A row that has no id leads where upstream's own addresses do.
func TestRowsWithoutAnID(t *testing.T) {
	h := viewertest.Open(t)
	if at := viewertest.Href(h.Page("/twilio/countries", viewertest.All), "US"); at != "/twilio/available_phone_numbers?CountryCode=US" {
		t.Errorf("a country leads to %q", at)
	}
}

// L16: a record whose id no path can hold is text in its list; the others are
// links, and each of them opens.
func TestNoLinkWhereNoPathLeads(t *testing.T) {
	h := viewertest.Open(t)
	const list = "/twilio/calls"
	id := regexp.MustCompile(`href="/twilio/calls/(CA[^"?]*)"`)
	before := id.FindAllStringSubmatch(h.Page(list, viewertest.All), -1)
	var ids []string
	for _, m := range before {
		if !slices.Contains(ids, m[1]) {
			ids = append(ids, m[1])
		}
	}
	if len(ids) < 5 {
		t.Fatalf("%d ids", len(ids))
	}
	odd := []string{"CA\\" + ids[0][3:], strings.Repeat("CA", 1<<20), ".."}
	h.Rewrite(func(body string) string {
		for i, o := range odd {
			body = strings.ReplaceAll(body, `"`+ids[i]+`"`, `"`+strings.ReplaceAll(o, `\`, `\\`)+`"`)
		}
		return body
	})
	page := h.Page(list, viewertest.All)
	for _, o := range odd {
		if strings.Contains(page, `href="`+list+"/"+url.PathEscape(o)) {
			t.Errorf("the list links %.40q", o)
		}
	}
	if !strings.Contains(page, odd[0][3:]) {
		t.Error("the list does not show the odd ids")
	}
	if status, _, _ := h.Get(list+"/"+url.PathEscape(odd[0]), viewertest.All); status < http.StatusBadRequest {
		t.Errorf("%s opens: %d", odd[0], status)
	}
	links := id.FindAllStringSubmatch(page, -1)
	if len(links) == 0 || len(links) >= len(before) {
		t.Errorf("%d links, before %d", len(links), len(before))
	}
	for _, m := range links[:3] {
		h.Page(list+"/"+m[1], viewertest.All)
	}
}
