// Kinds: every kind of the spec has a page.

package viewer_test

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

// Every kind of the spec has a page, and a record's page where it has an id,
// that shows what upstream has and can be told by a reader of HTML.
func TestEveryKind(t *testing.T) {
	h := viewertest.Open(t)
	conference := h.FirstID("/twilio/conferences", `CF[0-9a-f]{32}`)
	call := h.FirstID("/twilio/notifications", `/twilio/calls/CA[0-9a-f]{32}`)[len("/twilio/calls/"):]
	queue := h.FirstID("/twilio/queues", `QU[0-9a-f]{32}`)
	given := map[string]string{
		"participants": "?ConferenceSid=" + conference, "call_events": "?CallSid=" + call, "queue_members": "?QueueSid=" + queue,
		"available_phone_numbers": "?CountryCode=US", "media": "?MessageSid=" + h.MessageWithMedia(),
	}
	for _, k := range h.Spec.Kinds {
		page := h.Page("/twilio/"+k.Name+given[k.Name], viewertest.Berlin)
		viewertest.CheckHTML(t, k.Name, page)
		rows := regexp.MustCompile(`<tr[ >]`).FindAllString(page, -1)
		switch {
		case len(k.Lists) == 0:
			if !strings.Contains(page, "<dl>") {
				t.Errorf("%s: no fields", k.Name)
			}
			continue
		case len(rows) < 2 && k.Name != "queue_members":
			t.Errorf("%s: no rows", k.Name)
		}
		if len(k.ID) == 0 || len(rows) < 2 {
			continue
		}
		at := regexp.MustCompile(`<td[^>]*><a href="(/twilio/` + k.Name + `/[^"]+)"`).FindStringSubmatch(page)
		if at == nil {
			t.Errorf("%s: no row leads to its record", k.Name)
			continue
		}
		record := h.Page(html.UnescapeString(at[1]), viewertest.Berlin)
		viewertest.CheckHTML(t, at[1], record)
		if !strings.Contains(record, "Raw JSON") || !strings.Contains(record, `aria-label="Breadcrumb"`) {
			t.Errorf("%s is no record", at[1])
		}
		data := strings.Replace(html.UnescapeString(at[1]), "?", ".json?", 1)
		if !strings.Contains(data, "?") {
			data += ".json"
		}
		{
			status, body, _ := h.Get(data, viewertest.All)
			checktest.Equal(t, status, 200, "%s: status", data)
			checktest.True(t, json.Valid([]byte(body)), "%s: json.Valid([]byte(body)) is false", data)
			checktest.Lacks(t, body, "/-/media/", "%s: body", data)
		}
	}
}
