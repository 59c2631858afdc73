// Audit: what is looked at is in the audit log before it is shown, and the page of the log.

package trail_test

import (
	"html"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// The entries of a reader's pages say what was looked at, by which numbers and words, and
// are found by them.
func TestTheAuditLogOfPages(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithAudit(t, filepath.Join(t.TempDir(), "audit")))
	id := h.Value("/twilio/calls.json", "calls", "sid")
	number := h.Value("/twilio/calls.json", "calls", "from")
	masked := viewertest.Support
	for _, path := range []string{"/twilio/calls", "/twilio/calls/" + id, "/twilio/calls/" + id + ".json", "/twilio/calls?From=" + number[1:],
		"/twilio/number/" + number, "/twilio/number/" + number + "/+15005550006", "/twilio/calls.csv"} {
		h.Get(path, viewertest.All)
	}
	h.Page("/twilio/calls/"+id, masked)
	page := html.UnescapeString(h.Page("/-/audit", viewertest.All))
	for _, want := range []string{"opened a record", "exported 400 calls", "opened the audit log",
		"<td data-t=\"What\">opened a number</td>", "<td data-t=\"What\">opened a conversation</td>",
		`<a href="/twilio/calls/` + id + `">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if strings.Contains(page, "opened a list</td>") {
		t.Error("a list without a filter is listed")
	}
	// Who looked at this number? The masked role has not: it does not see it.
	page = h.Page("/-/audit?value="+strings.ReplaceAll(number, "+", "%2B"), viewertest.All)
	if n := strings.Count(page, "<bdi>everything</bdi>"); n < 4 || strings.Contains(page, "<bdi>masked</bdi>") {
		t.Errorf("%d entries for the number, or one of the masked role:\n%s", n, page)
	}
	if page = h.Page("/-/audit?record="+id, viewertest.All); strings.Count(page, "<bdi>masked</bdi>") != 1 {
		t.Error("the masked role's look at the record is not found once")
	}
	if page = h.Page("/-/audit?who=nobody", viewertest.All); !strings.Contains(page, "No entry matches") {
		t.Error("somebody who did nothing has entries")
	}
	viewertest.CheckGolden(t, "audit", h.Page("/-/audit?who=masked&action=record", viewertest.All))
	for path, want := range map[string]int{"/-/audit?x=1": 400, "/-/audit?since=never": 400, "/-/audit?value=415+555+0100": 400,
		"/-/audit?before=x": 400, "/-/audit?since=2026-06-01": 200} {
		if status, _, _ := h.Get(path, viewertest.All); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	for _, token := range []string{"supporttoken", "clerktoken", "nobodytoken"} {
		if status, _, _ := h.Get("/-/audit", viewertest.Browser{Token: token}); status != http.StatusForbidden {
			t.Errorf("%s: %d", token, status)
		}
	}
}

// An export has a begin and an end in the log and is one row of the page; what no person did is named as what did it.
// The file has every entry.
func TestTheAuditLogInPlainWords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	var log page.Trail
	h := viewertest.Open(t, viewertest.WithAudit(t, dir), func(o *page.Options) {
		log = o.Trail
		for _, e := range []understudy.AuditEntry{
			{Caller: understudy.CommandCaller, Action: understudy.ActionAdminister, What: "sync"},
			{Action: understudy.ActionExport, What: "export begins", Source: "twilio", Kind: "messages", Request: "R-1", Rows: 20},
			{Action: understudy.ActionExport, What: "export", Source: "twilio", Kind: "messages", Request: "R-1", Rows: 1184},
			{Action: understudy.ActionExport, What: "export begins", Request: "R-2"},
			{Action: understudy.ActionSearch, What: "lookup", Values: []string{"+15005550006"}},
			{Action: understudy.ActionNote, What: "=1+1", IDs: []string{"SM1", "SM2"}},
		} {
			e.AsPerson = true
			viewertest.Must(t, o.Audit.RecordAction(t.Context(), e))
		}
	})
	text := h.Page("/-/audit", viewertest.All)
	for want, n := range map[string]int{"exported 1,184 messages": 1, "started to export": 1, "started to export rows": 1,
		"the command line": 1, "<td data-t=\"What\">looked up a number</td>": 1,
		"opened the audit log": 1, "managed": 2} { // one is the choice of the filter
		if got := strings.Count(text, want); got != n {
			t.Errorf("the page says %q %d times, want %d", want, got, n)
		}
	}
	status, csv, head := h.Get("/-/audit.csv?until=2026-07-01", viewertest.All)
	lines := strings.Count(csv, "\r\n")
	checktest.Equal(t, status, 200, "the file is: status")
	checktest.Equal(t, lines, 9, "the file is: lines")
	checktest.Contains(t, head.Get("Content-Type"), "text/csv", `the file is: head.Get("Content-Type")`)
	for _, want := range []string{",export begins,twilio,messages,,20,R-1,,", ",'=1+1,,,SM1 SM2,", ",export,audit log,"} {
		if !strings.Contains(csv, want) {
			t.Errorf("the file lacks %s:\n%s", want, csv)
		}
	}
	if found, err := log.Search(t.Context(), audit.Filter{Action: understudy.ActionExport}); err != nil || len(found.Entries) != 4 {
		t.Errorf("the log has %v of exports: %v", found, err)
	}
	for _, who := range []viewertest.Browser{{Token: "supporttoken"}, {}} {
		if status, body, _ := h.Get("/-/audit.csv", who); status < 400 || strings.Contains(body, "R-1") {
			t.Errorf("%v gets the file: %d", who, status)
		}
	}
	if status, _, _ := h.Get("/-/audit.csv?x=1", viewertest.All); status != 400 {
		t.Errorf("an unknown parameter: %d", status)
	}
}
