// Levels: what pages show of hashes and countries.

package page_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

func TestHashesAndCountriesOnPages(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	analyst := viewertest.Analyst
	list := h.Page("/twilio/calls", analyst)
	if number := regexp.MustCompile(`>\+\d+`).FindString(list); number != "" {
		t.Errorf("the list shows %s", number)
	}
	if !regexp.MustCompile(`••••\x{a0}[A-Z]{2}<`).MatchString(list) {
		t.Error("the list shows no country")
	}
	cell := regexp.MustCompile(`data-copy="(h:[a-z2-7]{28})"><a href="(/search\?q=[^"]*)" title="A code[^"]*" ` +
		`aria-label="Code (h:[^:"]*): find`)
	m := cell.FindStringSubmatch(list)
	if m == nil {
		t.Fatalf("the list shows no hash: %s", regexp.MustCompile(`(?s)<tbody.*?</tr>`).FindString(list))
	}
	short := strings.Split(m[3], "…")
	checktest.MustEqual(t, len(short), 2, "len(short)")
	checktest.True(t, strings.HasPrefix(m[1], short[0]), "m[1] is %q", m[1])
	checktest.True(t, strings.HasSuffix(m[1], short[1]), "m[1] is %q", m[1])
	found := h.Page(html.UnescapeString(m[2]), analyst)
	has := strings.Contains(found, `href="/twilio/calls/CA`) && strings.Contains(found, ">"+m[3]+"<")
	if !has || strings.Contains(found, ">+1") {
		t.Errorf("%s does not find the hash: %s", m[2], regexp.MustCompile(`(?s)<main.*</main>`).FindString(found))
	}
	if same := h.Page(html.UnescapeString(m[2]), viewertest.All); !strings.Contains(same, "/twilio/calls/CA") {
		t.Error("who sees everything does not find by the hash")
	}
	status, body, _ := h.Get("/twilio/calls?From=%2B15550001111", analyst)
	if status != 403 || !strings.Contains(body, "write a hash, like h:") {
		t.Errorf("a plain number for a filter: %d", status)
	}
	csv := h.Page("/twilio/calls.csv", analyst)
	if !strings.Contains(csv, m[1]) || regexp.MustCompile(`\+\d{7}`).MatchString(csv) {
		t.Errorf("the export: %.300s", csv)
	}
}
