// Reason: the code of a failed record.

package viewer_test

import (
	"regexp"
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

// The failed record's page says which code it carries and where that is explained.
func TestReason(t *testing.T) {
	h := viewertest.Open(t)
	rows := h.Page("/twilio/messages?PageSize=1000", viewertest.All)
	for _, m := range regexp.MustCompile(`<tr class="failed">.*?/twilio/messages/((?:SM|MM)[0-9a-f]{32})`).FindAllStringSubmatch(rows, -1) {
		page := h.Page("/twilio/messages/"+m[1], viewertest.All)
		if code := regexp.MustCompile(`Error code (\d+): [A-Z]`).FindStringSubmatch(page); code != nil {
			if !strings.Contains(page, `href="https://www.twilio.com/docs/api/errors/`+code[1]+`" rel="noopener noreferrer external"`) {
				t.Errorf("code %s is not explained", code[1])
			}
			return
		}
	}
	t.Error("no failed message with a code")
}
