// The way to the rows by keyboard, and moments that come back as they were typed.

package list_test

import (
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

// The first thing in a page with rows leads to them; a page without has no such link.
func TestSkipToRows(t *testing.T) {
	h := viewertest.Open(t)
	link, target := `<a class="skip" href="#rows">`, `<tbody id="rows">`
	for _, path := range []string{"/twilio/calls", "/twilio/messages?PageSize=20"} {
		page := h.Page(path, viewertest.All)
		_, main, _ := strings.Cut(page, "<main")
		first := regexp.MustCompile(`<(a|button|input|select|summary)\b[^>]*>`).FindString(main)
		checktest.Equal(t, first, link, "%s: first", path)
		checktest.Equal(t, strings.Count(page, target), 1, "%s: strings.Count(page, target)", path)
		checktest.Equal(t, strings.Count(page, `id="rows"`), 1, "%s: strings.Count(page, `id=\"rows\"`)", path)
	}
	for _, path := range []string{"/twilio/calls?StartTime%3E=2190-01-01T00:00:00Z", "/twilio/participants"} {
		if page := h.Page(path, viewertest.All); strings.Contains(page, "#rows") {
			t.Errorf("%s: a link to rows that are not there", path)
		}
	}
}

// A moment is shown again in its filter in the reader's zone; what other forms
// carry along is the moment itself.
func TestMomentShownAgain(t *testing.T) {
	h := viewertest.Open(t)
	page := h.Page("/twilio/calls?StartTime%3C=2026-05-20T08:30:00Z", viewertest.Berlin)
	inputs := regexp.MustCompile(`<input [^>]*name="StartTime&lt;"[^>]*>`).FindAllString(page, -1)
	shown := 0
	for _, in := range inputs {
		switch {
		case strings.Contains(in, `type="hidden"`):
			if !strings.Contains(in, `value="2026-05-20T08:30:00Z"`) {
				t.Errorf("carried along as %s", in)
			}
		case strings.Contains(in, `type="datetime-local"`) && strings.Contains(in, `value="2026-05-20T10:30"`):
			shown++
		default:
			t.Errorf("shown as %s", in)
		}
	}
	if shown != 1 {
		t.Errorf("shown %d times in %q", shown, inputs)
	}
}
