// Audit: what must be in the audit log before it is shown.

package page_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// When the log cannot be written, what must be in it is 503 and shows nothing; the rest is
// answered.
func TestWithoutAnAuditLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	viewertest.Must(t, os.WriteFile(dir, nil, 0o600))
	h := viewertest.Open(t, viewertest.WithAudit(t, dir))
	id := h.Value("/twilio/calls.json", "calls", "sid")
	number := h.Value("/twilio/calls.json", "calls", "from")
	for _, path := range []string{"/twilio/calls/" + id, "/twilio/calls/" + id + ".json", "/twilio/number/" + number,
		"/twilio/number/" + number + ".json", "/twilio/number/" + number + "/+15005550006", "/twilio/calls.csv", "/twilio/calls.jsonl",
		"/twilio/calls?From=" + number[1:], "/-/audit"} {
		status, body, head := h.Get(path, viewertest.All)
		checktest.Equal(t, status, http.StatusServiceUnavailable, "%s: status", path)
		checktest.True(t, head.Get("Retry-After") != "", `%s: head.Get("Retry-After") is empty`, path)
		checktest.Lacks(t, body, `"date_created"`, "%s: body", path)
		checktest.Lacks(t, body, "duration", "%s: body", path)
	}
	for _, path := range []string{"/", "/twilio/calls", "/twilio/calls.json", "/twilio/messages", "/-/keys"} {
		h.Page(path, viewertest.All)
	}
}

// BenchmarkAuditedRecord is the page of a record with and without an audit log, in turn; the
// medians are in microseconds.
func BenchmarkAuditedRecord(b *testing.B) {
	key, err := audit.ParseKey(understudy.NewSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
	viewertest.Must(b, err)
	l := audit.New(audit.Options{Dir: filepath.Join(b.TempDir(), "audit"), Key: key})
	b.Cleanup(func() { viewertest.Must(b, l.Close()) })
	on, off := viewertest.Open(b, func(o *page.Options) { o.Audit = l }), viewertest.Open(b)
	path := "/twilio/calls/" + on.Value("/twilio/calls.json", "calls", "sid")
	took := map[*viewertest.Fixture][]time.Duration{}
	for b.Loop() {
		for _, h := range []*viewertest.Fixture{on, off} {
			began := time.Now()
			h.Page(path, viewertest.All)
			took[h] = append(took[h], time.Since(began))
		}
	}
	for h, name := range map[*viewertest.Fixture]string{on: "on-µs", off: "off-µs"} {
		slices.Sort(took[h])
		b.ReportMetric(float64(took[h][len(took[h])/2].Microseconds()), name)
	}
}

// A list shows one chosen record by its token, or a kind whole by its page size, and what lies
// under a record by its path: each leaves an entry with the ids that were shown.
func TestListThatShowsChosenRecordsIsListed(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithAudit(t, filepath.Join(t.TempDir(), "audit")))
	id := h.Value("/twilio/messages.json", "messages", "sid")
	entries := func(action string) int {
		return strings.Count(h.Page("/-/audit?action="+action, viewertest.All), "<bdi>everything</bdi>")
	}
	for _, one := range []struct{ path, action string }{
		{"/twilio/messages.json?PageSize=1&PageToken=PA" + id, "export"},
		{"/twilio/messages.json?PageSize=1&Page=1&PageToken=PA" + id, "export"},
		{"/twilio/messages.json?PageSize=1000", "export"},
		{"/twilio/media.json?MessageSid=" + id, "search"},
		{"/twilio/messages.json?PageSize=1&understudy.as_of=" + viewertest.Noon.UTC().Format(time.RFC3339), "export"},
	} {
		before := entries(one.action)
		if status, _, _ := h.Get(one.path, viewertest.All); status != http.StatusOK {
			t.Fatalf("%s: %d", one.path, status)
		}
		if entries(one.action) != before+1 {
			t.Errorf("%s left no entry of %s", one.path, one.action)
		}
	}
	before := entries("export") + entries("search") + entries("list")
	h.Get("/twilio/messages.json", viewertest.All)
	if entries("export")+entries("search")+entries("list") != before {
		t.Error("the newest page of a list is listed")
	}
}
