// Message: the page of a message.

package viewer_test

import (
	"regexp"
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

func TestMessageWithoutTextSaysSo(t *testing.T) {
	h := viewertest.Open(t)
	list := h.Page("/twilio/messages?PageSize=1000", viewertest.All)
	row := regexp.MustCompile(`<tr><td class="when"><a href="(/twilio/messages/[A-Z0-9a-f]+)">[^\n]*>no text<`).FindStringSubmatch(list)
	if row == nil {
		t.Fatal("no message is without text")
	}
	shown := h.Page(row[1], viewertest.All)
	if !strings.Contains(shown, `<span class="none">no text</span>`) || strings.Contains(shown, "segment, ") {
		t.Error("the page of a message without text counts its segments")
	}
}
