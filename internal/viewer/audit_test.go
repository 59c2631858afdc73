// Audit: what is looked at is in the audit log before it is shown, and the page of the log.

package viewer

import (
	"html"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/viewer/page"
)

// withAudit gives a viewer an audit log in a folder.
func withAudit(t *testing.T, dir string) func(*page.Options) {
	key, err := audit.ParseKey(understudy.NewSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
	must(t, err)
	l := audit.New(audit.Options{Dir: dir, Key: key, Now: func() time.Time { return noon }})
	t.Cleanup(func() { must(t, l.Close()) })
	return func(o *page.Options) { o.Audit, o.Trail = l, l }
}

// The entries of a reader's pages say what was looked at, by which numbers and words, and
// are found by them.
func TestTheAuditLogOfPages(t *testing.T) {
	h := open(t, withAudit(t, filepath.Join(t.TempDir(), "audit")))
	id := h.field("/twilio/calls.json", "calls", "sid")
	number := h.field("/twilio/calls.json", "calls", "from")
	masked := as{token: "supporttoken"}
	for _, path := range []string{"/twilio/calls", "/twilio/calls/" + id, "/twilio/calls/" + id + ".json", "/twilio/calls?From=" + number[1:],
		"/twilio/number/" + number, "/twilio/number/" + number + "/+15005550006", "/twilio/calls.csv"} {
		h.get(path, all)
	}
	h.page("/twilio/calls/"+id, masked)
	page := html.UnescapeString(h.page("/-/audit", all))
	for _, want := range []string{"looked at a record", "exported 400 calls", "read the audit log",
		"searched <small class=\"fine\">number</small>", "conversation",
		`<a href="/twilio/calls/` + id + `">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if strings.Contains(page, "looked at a list</td>") {
		t.Error("a list without a filter is listed")
	}
	// Who looked at this number? The masked role has not: it does not see it.
	page = h.page("/-/audit?value="+strings.ReplaceAll(number, "+", "%2B"), all)
	if n := strings.Count(page, "<bdi>everything</bdi>"); n < 4 || strings.Contains(page, "<bdi>masked</bdi>") {
		t.Errorf("%d entries for the number, or one of the masked role:\n%s", n, page)
	}
	if page = h.page("/-/audit?record="+id, all); strings.Count(page, "<bdi>masked</bdi>") != 1 {
		t.Error("the masked role's look at the record is not found once")
	}
	if page = h.page("/-/audit?who=nobody", all); !strings.Contains(page, "No entry fits") {
		t.Error("somebody who did nothing has entries")
	}
	golden(t, "audit", h.page("/-/audit?who=masked&action=record", all))
	for path, want := range map[string]int{"/-/audit?x=1": 400, "/-/audit?since=never": 400, "/-/audit?value=415+555+0100": 400,
		"/-/audit?before=x": 400, "/-/audit?since=2026-06-01": 200} {
		if status, _, _ := h.get(path, all); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	for _, token := range []string{"supporttoken", "clerktoken", "nobodytoken"} {
		if status, _, _ := h.get("/-/audit", as{token: token}); status != http.StatusForbidden {
			t.Errorf("%s: %d", token, status)
		}
	}
}

// An export has a begin and an end in the log and is one row of the page; what no person did is named as what did it.
// The file has every entry.
func TestTheAuditLogInPlainWords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	var log page.Trail
	h := open(t, withAudit(t, dir), func(o *page.Options) {
		log = o.Trail
		for _, e := range []understudy.AuditEntry{
			{Caller: understudy.CommandCaller, Action: understudy.ActionAdminister, What: "sync"},
			{Action: understudy.ActionExport, What: "export begins", Source: "twilio", Kind: "messages", Request: "R-1", Rows: 20},
			{Action: understudy.ActionExport, What: "export", Source: "twilio", Kind: "messages", Request: "R-1", Rows: 1184},
			{Action: understudy.ActionExport, What: "export begins", Request: "R-2"},
			{Action: understudy.ActionNote, What: "=1+1", IDs: []string{"SM1", "SM2"}},
		} {
			e.AsPerson = true
			must(t, o.Audit.Audit(t.Context(), e))
		}
	})
	text := h.page("/-/audit", all)
	for want, n := range map[string]int{"exported 1,184 messages": 1, "began to export": 1, "began to export rows": 1, "the command line": 1,
		"read the audit log": 1, "administered": 2} { // one is the choice of the filter
		if got := strings.Count(text, want); got != n {
			t.Errorf("the page says %q %d times, want %d", want, got, n)
		}
	}
	status, csv, head := h.get("/-/audit.csv?until=2026-07-01", all)
	if lines := strings.Count(csv, "\r\n"); status != 200 || lines != 8 || !strings.Contains(head.Get("Content-Type"), "text/csv") {
		t.Errorf("the file is %d with %d lines, %q:\n%s", status, lines, head.Get("Content-Type"), csv)
	}
	for _, want := range []string{",export begins,twilio,messages,,20,R-1,,", ",'=1+1,,,SM1 SM2,", ",export,audit log,"} {
		if !strings.Contains(csv, want) {
			t.Errorf("the file lacks %s:\n%s", want, csv)
		}
	}
	if found, err := log.Search(t.Context(), audit.Filter{Action: understudy.ActionExport}); err != nil || len(found.Entries) != 4 {
		t.Errorf("the log has %v of exports: %v", found, err)
	}
	for _, who := range []as{{token: "supporttoken"}, {}} {
		if status, body, _ := h.get("/-/audit.csv", who); status < 400 || strings.Contains(body, "R-1") {
			t.Errorf("%v gets the file: %d", who, status)
		}
	}
	if status, _, _ := h.get("/-/audit.csv?x=1", all); status != 400 {
		t.Errorf("an unknown parameter: %d", status)
	}
}

// field is the first value of a field in a list.
func (h *fixture) field(path, list, name string) string {
	h.Helper()
	for _, v := range h.hiddenFrom(path, list, name) {
		if name != "from" || strings.HasPrefix(v, "+") {
			return v
		}
	}
	h.Fatalf("%s: no %s", path, name)
	return ""
}

// When the log cannot be written, what must be in it is 503 and shows nothing; the rest is
// answered.
func TestWithoutAnAuditLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	must(t, os.WriteFile(dir, nil, 0o600))
	h := open(t, withAudit(t, dir))
	id := h.field("/twilio/calls.json", "calls", "sid")
	number := h.field("/twilio/calls.json", "calls", "from")
	for _, path := range []string{"/twilio/calls/" + id, "/twilio/calls/" + id + ".json", "/twilio/number/" + number,
		"/twilio/number/" + number + ".json", "/twilio/number/" + number + "/+15005550006", "/twilio/calls.csv", "/twilio/calls.jsonl",
		"/twilio/calls?From=" + number[1:], "/-/audit"} {
		status, body, head := h.get(path, all)
		if status != http.StatusServiceUnavailable || head.Get("Retry-After") == "" || strings.Contains(body, `"date_created"`) ||
			strings.Contains(body, "duration") {
			t.Errorf("%s: %d, Retry-After %q", path, status, head.Get("Retry-After"))
		}
	}
	for _, path := range []string{"/", "/twilio/calls", "/twilio/calls.json", "/twilio/messages", "/-/keys"} {
		h.page(path, all)
	}
}

// BenchmarkAuditedRecord is the page of a record with and without an audit log, in turn; the
// medians are in microseconds.
func BenchmarkAuditedRecord(b *testing.B) {
	key, err := audit.ParseKey(understudy.NewSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
	must(b, err)
	l := audit.New(audit.Options{Dir: filepath.Join(b.TempDir(), "audit"), Key: key})
	b.Cleanup(func() { must(b, l.Close()) })
	on, off := open(b, func(o *page.Options) { o.Audit = l }), open(b)
	path := "/twilio/calls/" + on.field("/twilio/calls.json", "calls", "sid")
	took := map[*fixture][]time.Duration{}
	for b.Loop() {
		for _, h := range []*fixture{on, off} {
			began := time.Now()
			h.page(path, all)
			took[h] = append(took[h], time.Since(began))
		}
	}
	for h, name := range map[*fixture]string{on: "on-µs", off: "off-µs"} {
		slices.Sort(took[h])
		b.ReportMetric(float64(took[h][len(took[h])/2].Microseconds()), name)
	}
}

// A list shows one chosen record by its token, or a kind whole by its page size, and what lies
// under a record by its path: each leaves an entry with the ids that were shown.
func TestListThatShowsChosenRecordsIsListed(t *testing.T) {
	h := open(t, withAudit(t, filepath.Join(t.TempDir(), "audit")))
	id := h.field("/twilio/messages.json", "messages", "sid")
	entries := func(action string) int {
		return strings.Count(h.page("/-/audit?action="+action, all), "<bdi>everything</bdi>")
	}
	for _, one := range []struct{ path, action string }{
		{"/twilio/messages.json?PageSize=1&PageToken=PA" + id, "export"},
		{"/twilio/messages.json?PageSize=1&Page=1&PageToken=PA" + id, "export"},
		{"/twilio/messages.json?PageSize=1000", "export"},
		{"/twilio/media.json?MessageSid=" + id, "search"},
		{"/twilio/messages.json?PageSize=1&understudy.as_of=" + noon.UTC().Format(time.RFC3339), "export"},
	} {
		before := entries(one.action)
		if status, _, _ := h.get(one.path, all); status != http.StatusOK {
			t.Fatalf("%s: %d", one.path, status)
		}
		if entries(one.action) != before+1 {
			t.Errorf("%s left no entry of %s", one.path, one.action)
		}
	}
	before := entries("export") + entries("search") + entries("list")
	h.get("/twilio/messages.json", all)
	if entries("export")+entries("search")+entries("list") != before {
		t.Error("the newest page of a list is listed")
	}
}
