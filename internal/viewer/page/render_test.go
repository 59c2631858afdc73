// Render: the footer of a page.

package page_test

import (
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

// The footer of a page says how long upstream takes for what it shows (22), to who
// sees everything.
func TestFooterSaysUpstreamsTimes(t *testing.T) {
	h := viewertest.Open(t)
	const calls, whole = "for Calls (waiting): 1.01 s ± 110 ms, 860 ms – 1.22 s, median 1.04 s, 99 % within 1.21 s",
		"for Twilio: 1.01 s"
	call := "/twilio/calls/" + h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`)
	message := "/twilio/messages/" + h.FirstID("/twilio/messages", `SM[0-9a-f]{32}`)
	for path, want := range map[string]string{call: calls, message: whole, "/twilio/number/" + h.OwnNumber(): whole, "/": "",
		"/twilio/calls": ""} {
		page := h.Page(path, viewertest.All)
		foot := page[strings.Index(page, "<footer>"):]
		if got := strings.Contains(foot, "99 %") || strings.Contains(foot, "(waiting)"); got != (want != "") ||
			!strings.Contains(foot, want) {
			t.Errorf("%s: %s", path, foot)
		}
	}
	if page := h.Page(call, viewertest.Support); strings.Contains(page[strings.Index(page, "<footer>"):], "99 %") {
		t.Error("a role that does not see everything is told upstream's times")
	}
}
