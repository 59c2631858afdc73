package actions_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

// Rows that were selected on a list are marked as handled together, or none of them is.
func TestSelectedRowsAreMarkedTogether(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	failed := text(h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool { return m["status"] == "failed" })["sid"])
	delivered := text(h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool {
		return m["status"] == "delivered"
	})["sid"])
	page := h.Page("/twilio/messages?understudy.form=select", viewertest.Person("sender"))
	for _, want := range []string{`value="twilio/messages/` + failed + `"`, `action="/-/do/selected"`, ">Mark as handled<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the list lacks %s", want)
		}
	}
	if page := h.Page("/twilio/messages", viewertest.Person("sender")); strings.Contains(page, `name="record"`) {
		t.Error("rows have boxes although nothing is to be selected")
	}
	names := func(ids ...string) (all []string) {
		for _, id := range ids {
			all = append(all, "twilio/messages/"+id)
		}
		return all
	}
	both, back := names(failed, delivered), []string{"/twilio/messages"}
	const path = "/-/do/selected"
	for _, c := range []struct {
		what, role string
		form       url.Values
		want       int
		says       string
	}{
		{"nothing is selected", "sender", url.Values{"do": {"handled"}, "back": back}, 400, "Tick the boxes"},
		{"too many", "sender", url.Values{"do": {"handled"}, "record": slices.Repeat(both, 51)}, 400, "At most 100"},
		{"an unknown button", "sender", url.Values{"do": {"shout"}, "record": both}, 400, "shout"},
		{"an unknown kind", "sender", url.Values{"do": {"handled"}, "record": {"twilio/nothing/" + failed}}, 400, "This form is not valid"},
		{"an unknown source", "sender", url.Values{"do": {"csv"}, "record": {"nobody/messages/" + failed}}, 400, "This form is not valid"},
		{"one that a rule on rows hides", "few", url.Values{"do": {"handled"}, "record": both}, 404, ""},
		{"one that is unknown", "sender", url.Values{"do": {"handled"}, "record": append(names("SM"+strings.Repeat("0", 32)), both...)}, 404, ""},
	} {
		h.Post(browser(c.role), path, c.form, c.want, c.says)
		for _, id := range []string{failed, delivered} {
			if a := h.Store.Annotations.Annotation("twilio", "messages", id); a != nil {
				t.Fatalf("%s: %s is marked: %+v", c.what, id, a)
			}
		}
	}
	h.Post(viewertest.Person("sender"), path, url.Values{"do": {"handled"}, "record": both, "back": back}, http.StatusSeeOther)
	for _, id := range []string{failed, delivered} {
		if a := h.Store.Annotations.Annotation("twilio", "messages", id); a == nil || a.Handled == nil {
			t.Errorf("%s is not marked: %+v", id, a)
		}
	}
	e := h.Audit.Last()
	checktest.Equal(t, e.Action, understudy.ActionNote, "audited: e.Action")
	checktest.True(t, slices.Equal(e.IDs, []string{failed, delivered}), "audited: e.IDs is %v", e.IDs)
	checktest.Equal(t, e.Kind, "messages", "audited: e.Kind")
	h.Post(viewertest.Person("sender"), path, url.Values{"do": {"open"}, "record": names(failed), "back": back}, http.StatusSeeOther)
	if a := h.Store.Annotations.Annotation("twilio", "messages", failed); a != nil && a.Handled != nil {
		t.Errorf("it is still marked: %+v", a)
	}
}
