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
