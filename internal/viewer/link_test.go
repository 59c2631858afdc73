package viewer

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// L16: a record whose id no path can hold is text in its list; the others are
// links, and each of them opens.
func TestNoLinkWhereNoPathLeads(t *testing.T) {
	h := open(t)
	const list = "/twilio/calls"
	id := regexp.MustCompile(`href="/twilio/calls/(CA[^"?]*)"`)
	before := id.FindAllStringSubmatch(h.page(list, all), -1)
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
	h.rewrite(func(body string) string {
		for i, o := range odd {
			body = strings.ReplaceAll(body, `"`+ids[i]+`"`, `"`+strings.ReplaceAll(o, `\`, `\\`)+`"`)
		}
		return body
	})
	page := h.page(list, all)
	for _, o := range odd {
		if strings.Contains(page, `href="`+list+"/"+url.PathEscape(o)) {
			t.Errorf("the list links %.40q", o)
		}
	}
	if !strings.Contains(page, odd[0][3:]) {
		t.Error("the list does not show the odd ids")
	}
	if status, _, _ := h.get(list+"/"+url.PathEscape(odd[0]), all); status < http.StatusBadRequest {
		t.Errorf("%s opens: %d", odd[0], status)
	}
	links := id.FindAllStringSubmatch(page, -1)
	if len(links) == 0 || len(links) >= len(before) {
		t.Errorf("%d links, before %d", len(links), len(before))
	}
	for _, m := range links[:3] {
		h.page(list+"/"+m[1], all)
	}
}
