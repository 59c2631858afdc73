// Counts beside a page, and by themselves.

package viewer

import (
	"regexp"
	"strings"
	"testing"
)

// Counts that came late are asked for without the page around them.
func TestCountsAlone(t *testing.T) {
	h := open(t, searched(t))
	h.page("/twilio/calls", all) // held from now on
	for path, total := range map[string]string{
		"/twilio/calls?understudy.facets=1":                           "held",
		"/twilio/calls?understudy.facets=1&understudy.sort=-duration": "held",
		"/search?q=kind:calls&facets=1":                               "found",
	} {
		whole := h.counted(t, path)
		part := ""
		for range 10 {
			if part = h.page(path, as{token: all.token, headers: map[string]string{partHeader: partCounts}}); !strings.Contains(part, "data-late") {
				break
			}
		}
		facets := regexp.MustCompile(`(?s)<section class="facets".*?</section>`)
		if got := facets.FindString(part); got == "" || got != facets.FindString(whole) {
			t.Errorf("%s: %q", path, got)
		}
		if !regexp.MustCompile(`^<span id="total">[\w ,]* `+total+`</span>`).MatchString(part) || strings.Contains(part, "<table") || strings.Contains(part, "<html") {
			t.Errorf("%s: %s", path, clip(part))
		}
	}
}

// What was counted before a page's rows were held does not stand beside them.
func TestCountsFitTheirPage(t *testing.T) {
	h := open(t, searched(t)) // which has no alerts
	if page := h.page("/twilio/alerts", all); strings.Contains(page, "held</span>") || !strings.Contains(page, `data-late="/twilio/alerts?understudy.facets=1"`) {
		t.Error("a page of alerts has a count that is none of theirs, or does not ask again")
	}
	if page := h.page("/twilio/alerts?understudy.facets=1", all); strings.Contains(page, "held</span>") || strings.Contains(page, "data-late") {
		t.Error("a page that waited for its counts has others, or asks for ever")
	}
	for _, path := range []string{"/twilio/calls?understudy.q=duration%3E99999&understudy.facets=1", "/twilio/calls?understudy.q=duration%3E99999"} {
		if page := h.page(path, all); strings.Contains(page, "held</span>") || !strings.Contains(page, "0 rows") {
			t.Errorf("%s says of how many nothing is", path)
		}
	}
}
