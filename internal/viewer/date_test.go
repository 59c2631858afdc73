// Dates: read, said, turned.

package viewer

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

func outOfReach(ctx context.Context, source string) page.Snapshot {
	s := snapshot(ctx, source)
	s.State, s.Why, s.Since, s.NextProbe = "down", "5 requests in a row failed: status 503.", noon.Add(-2*time.Minute), noon.Add(21*time.Second)
	return s
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	must(t, err)
	return loc
}

func TestSay(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ at, zone, text, exact string }{
		{"2026-06-01T11:03:10Z", "UTC", "Today 11:03", "Mon, 1 Jun 2026 11:03:10 UTC"},
		{"2026-06-01T11:03:10Z", "Europe/Berlin", "Today 13:03", "Mon, 1 Jun 2026 13:03:10 CEST (UTC+02:00)"},
		{"2026-05-31T23:30:00Z", "UTC", "Yesterday 23:30", "Sun, 31 May 2026 23:30:00 UTC"},
		{"2026-05-31T23:30:00Z", "Europe/Berlin", "Today 01:30", "Mon, 1 Jun 2026 01:30:00 CEST (UTC+02:00)"},
		{"2026-05-31T23:30:00Z", "America/New_York", "Yesterday 19:30", "Sun, 31 May 2026 19:30:00 EDT (UTC-04:00)"},
		{"2026-05-30T10:00:00Z", "UTC", "Sat 30 May 10:00", "Sat, 30 May 2026 10:00:00 UTC"},
		{"2025-12-31T23:00:00Z", "Europe/Berlin", "Thu 1 Jan 00:00", "Thu, 1 Jan 2026 00:00:00 CET (UTC+01:00)"},
		{"2025-12-31T10:00:00Z", "UTC", "31 Dec 2025 10:00", "Wed, 31 Dec 2025 10:00:00 UTC"},
		{"2026-06-02T10:00:00Z", "Asia/Kathmandu", "Tue 2 Jun 15:45", "Tue, 2 Jun 2026 15:45:00 UTC+05:45"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		must(t, err)
		w := page.Say(at, now, zone(t, c.zone), false)
		if w.Text != c.text || w.Exact != c.exact {
			t.Errorf("%s in %s: %q, %q", c.at, c.zone, w.Text, w.Exact)
		}
		if back, err := time.Parse(time.RFC3339, w.Stamp); err != nil || !back.Equal(at) {
			t.Errorf("%s: stamp %s", c.at, w.Stamp)
		}
	}
	if w := page.SayDate(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 31, 23, 0, 0, 0, time.UTC), zone(t, "Europe/Berlin")); w.Text != "Today" || w.Stamp != "2026-06-01" {
		t.Errorf("a plain date: %+v", w)
	}
}

func TestParseDate(t *testing.T) {
	for _, c := range []struct {
		kind, text, want string
		day              bool
	}{
		{understudy.TypeRFC2822, "Mon, 01 Jun 2026 11:03:10 +0000", "2026-06-01T11:03:10Z", false},
		{understudy.TypeRFC2822, "Mon, 1 Jun 2026 13:03:10 +0200", "2026-06-01T11:03:10Z", false},
		{understudy.TypeRFC2822, "2026-06-01", "2026-06-01T00:00:00Z", true},
		{understudy.TypeISO, "2026-06-01T11:03:10.5Z", "2026-06-01T11:03:10.5Z", false},
		{understudy.TypeEpoch, "1780311790", "2026-06-01T11:03:10Z", false},
		{understudy.TypeDate, "2026-06-01", "2026-06-01T00:00:00Z", true},
		{understudy.TypeRFC2822, "yesterday", "", false},
		{understudy.TypeEpoch, "12x", "", false},
		{understudy.TypeEpoch, "99999999999999999", "", false},
	} {
		at, day, ok := page.ParseDate(c.kind, c.text)
		if ok != (c.want != "") || ok && (at.UTC().Format(time.RFC3339Nano) != c.want || day != c.day) {
			t.Errorf("%s %q: %v %v %v", c.kind, c.text, at, day, ok)
		}
	}
}

func TestWriteDate(t *testing.T) {
	at := time.Date(2026, 6, 1, 1, 30, 0, 0, zone(t, "Europe/Berlin"))
	for kind, want := range map[string]string{
		understudy.TypeRFC2822: "2026-05-31T23:30:00Z", understudy.TypeISO: "2026-05-31T23:30:00Z", understudy.TypeDate: "2026-05-31", understudy.TypeEpoch: "1780270200",
	} {
		if got := page.WriteDate(kind, at); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than 1 s", 12 * time.Second: "12 s", 119 * time.Second: "119 s", 3 * time.Minute: "3 min", 5 * time.Hour: "5 h", 80 * time.Hour: "3 days",
	} {
		if got := page.LongAgo(d); got != want {
			t.Errorf("longAgo(%v) = %q", d, got)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0.00 ms", 412 * time.Microsecond: "0.41 ms", 3210 * time.Microsecond: "3.2 ms", 812 * time.Millisecond: "812 ms", 1020 * time.Millisecond: "1.02 s",
	} {
		if got := page.Millis(d); got != want {
			t.Errorf("millis(%v) = %q", d, got)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := page.Thousands(n); got != want {
			t.Errorf("thousands(%d) = %q", n, got)
		}
	}
	for text, want := range map[string]string{
		"+14155551234": "+1 415 555 1234", "+442071838750": "+44 20 7183 8750", "+493060113658": "+49 3060113658", "+97227655454": "+972 27655454",
		"+447700475262": "+44 7700 475262", "+911135241138": "+91 11 3524 1138", "+919876543210": "+91 98765 43210", "+33612345678": "+33 6 12 34 56 78", "+1415555123": "+1 415555123",
		"72975": "72975", "client:anna": "client:anna", "+0123456789": "+0123456789", "": "", "+": "+", "+1": "+1", "whatsapp:+14155551234": "whatsapp:+14155551234",
	} {
		if got := strings.ReplaceAll(plan.GroupPhone(text), "\u00a0", " "); got != want {
			t.Errorf("groupPhone(%q) = %q", text, got)
		}
	}
	for name, want := range map[string]string{"api_version": "API version", "sms_url": "SMS URL", "deep.er": "deep er", "body": "body"} {
		if got := plan.Spell(name); got != want {
			t.Errorf("spell(%q) = %q", name, got)
		}
	}
}

func FuzzGroupPhone(f *testing.F) {
	for _, s := range []string{"+14155551234", "", "+", "+1", "+999999999999999", "72975", "+12345678x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := strings.ReplaceAll(plan.GroupPhone(s), "\u00a0", ""); got != strings.ReplaceAll(s, "\u00a0", "") {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func TestZoneForm(t *testing.T) {
	h := open(t)
	for _, c := range []struct{ form, location, cookie string }{
		{"zone=Europe/Berlin&back=/twilio/calls%3FStatus%3Dbusy", "/twilio/calls?Status=busy", "Europe/Berlin"},
		{"zone=UTC&back=//evil.example/", "/", "UTC"},
		{"zone=UTC&back=https://evil.example/", "/", "UTC"},
		{"zone=UTC&back=%5C%5Cevil.example", "/", "UTC"},
		{"zone=UTC&back=/%5Cevil.example", "/", "UTC"},
		{"zone=UTC&back=/%0d%0aSet-Cookie:x", "/", "UTC"},
		{"zone=UTC&back=javascript:alert(1)", "/", "UTC"},
		{"zone=UTC", "/", "UTC"},
	} {
		status, _, head := h.do("POST", "/-/timezone", c.form, as{headers: map[string]string{"Sec-Fetch-Site": "same-origin"}})
		cookie, err := http.ParseSetCookie(head.Get("Set-Cookie"))
		must(t, err)
		if status != 303 || head.Get("Location") != c.location || cookie.Value != c.cookie || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
			t.Errorf("%s: %d to %q, %v", c.form, status, head.Get("Location"), cookie)
		}
	}
	for _, form := range []string{"zone=Mars/Base", "zone=", "zone=../../etc/passwd", "zone=Local", "zone=" + strings.Repeat("x", 100)} {
		if status, body, head := h.do("POST", "/-/timezone", form, all); status != 400 || head.Get("Set-Cookie") != "" || !strings.Contains(body, "no timezone") {
			t.Errorf("%s: %d", form, status)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		if status, _, head := h.do("POST", "/-/timezone", "zone=UTC", as{headers: map[string]string{"Sec-Fetch-Site": site}}); status != 403 || head.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d", site, status)
		}
	}
	if status, _, _ := h.do("POST", "/-/timezone", "zone=UTC", as{headers: map[string]string{"Origin": "https://evil.example"}}); status != 403 {
		t.Errorf("from another origin: %d", status)
	}
	if page := h.page("/", all); !strings.Contains(page, `data-zone="unset"`) || strings.Contains(h.page("/", berlin), `data-zone`) {
		t.Error("the page does not know whether the browser has said its zone")
	}
	for _, name := range page.Offered {
		if h.viewer.Zones.Find(name) == nil {
			t.Errorf("offered, but unknown: %s", name)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/", "/a?b=c", "//x", `/\x`, "https://x/", "/%2f/x", "/%5cx", "javascript:1", "/a#b", "\t/a", "/\t/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := page.LocalPath(s)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t") {
			t.Errorf("%q leads to %q", s, got)
		}
	})
}
