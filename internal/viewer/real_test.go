// The viewer over the real mirror and store, as the product wires it.

package viewer_test

import (
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

func TestOverRealParts(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	first := h.Page("/twilio/calls?Status=completed&PageSize=20", viewertest.All)
	if !strings.Contains(first, "fetched just now") {
		t.Error("the first page does not come from upstream")
	}
	again := h.Page("/twilio/calls?PageSize=20&Status=completed", viewertest.All)
	if !strings.Contains(again, "cached, less than 1 s old") {
		t.Error("the second time the page is not held")
	}
	next := h.Page(viewertest.Href(first, "Older"), viewertest.All)
	call := regexp.MustCompile(`/twilio/calls/CA[0-9a-f]{32}`).FindString(next)
	if page := h.Page(call, viewertest.All); !strings.Contains(page, "Raw JSON") {
		t.Error("no call")
	}
	h.Upstream.Close()
	for _, path := range []string{"/twilio/calls?Status=completed&PageSize=20", call, viewertest.Href(next, "Newer")} {
		h.Page(path, viewertest.All)
	}
	status, body, head := h.Get("/twilio/messages?From=%2B15550000000", viewertest.All)
	checktest.Equal(t, status, 503, "what is not held, without upstream: status")
	checktest.True(t, head.Get("Retry-After") != "",
		`what is not held, without upstream: head.Get("Retry-After") is empty`)
	checktest.Contains(t, body, "Twilio is not answering", "what is not held, without upstream: body")
}
