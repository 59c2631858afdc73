// Dates: read, said, turned.

package page

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/viewer/plan"
	"understudy/request"
	"understudy/spec"
)

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
		{"2026-06-01T11:03:10Z", "Europe/Berlin", "Today 13:03", "Mon, 1 Jun 2026 13:03:10 CEST (UTC+02:00), 11:03:10 UTC"},
		{"2026-05-31T23:30:00Z", "UTC", "Yesterday 23:30", "Sun, 31 May 2026 23:30:00 UTC"},
		{"2026-05-31T23:30:00Z", "Europe/Berlin", "Today 01:30", "Mon, 1 Jun 2026 01:30:00 CEST (UTC+02:00), 31 May 23:30:00 UTC"},
		{"2026-05-31T23:30:00Z", "America/New_York", "Yesterday 19:30", "Sun, 31 May 2026 19:30:00 EDT (UTC-04:00), 23:30:00 UTC"},
		{"2026-05-30T10:00:00Z", "UTC", "Sat 30 May 10:00", "Sat, 30 May 2026 10:00:00 UTC"},
		{"2025-12-31T23:00:00Z", "Europe/Berlin", "Thu 1 Jan 00:00", "Thu, 1 Jan 2026 00:00:00 CET (UTC+01:00), 31 Dec 23:00:00 UTC"},
		{"2025-12-31T10:00:00Z", "UTC", "31 Dec 2025 10:00", "Wed, 31 Dec 2025 10:00:00 UTC"},
		{"2026-06-02T10:00:00Z", "Asia/Kathmandu", "Tue 2 Jun 15:45", "Tue, 2 Jun 2026 15:45:00 UTC+05:45, 10:00:00 UTC"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		must(t, err)
		w := (&Clock{Start: now, Zone: zone(t, c.zone)}).FormatMoment(at, false)
		if w.Text != c.text || w.Exact != c.exact {
			t.Errorf("%s in %s: %q, %q", c.at, c.zone, w.Text, w.Exact)
		}
		if back, err := time.Parse(time.RFC3339, w.Stamp); err != nil || !back.Equal(at) {
			t.Errorf("%s: stamp %s", c.at, w.Stamp)
		}
	}
	if w := formatDate(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 31, 23, 0, 0, 0, time.UTC),
		zone(t, "Europe/Berlin")); w.Text != "Today" || w.Stamp != "2026-06-01" {
		t.Errorf("a plain date: %+v", w)
	}
}

func TestParseAgo(t *testing.T) {
	now := time.Date(2026, 3, 30, 1, 30, 40, 0, time.UTC) // Berlin's clocks went forward the day before
	for _, c := range []struct{ text, zone, want string }{
		{"-1h", "UTC", "2026-03-30T00:30:00Z"}, {"today", "UTC", "2026-03-30T00:00:00Z"},
		{"-7d", "UTC", "2026-03-23T00:00:00Z"}, {"-2w", "UTC", "2026-03-16T00:00:00Z"}, {"-90m", "UTC", "2026-03-30T00:00:00Z"},
		{"today", "Europe/Berlin", "2026-03-29T22:00:00Z"}, {"-1d", "Europe/Berlin", "2026-03-28T23:00:00Z"},
		{"today", "America/New_York", "2026-03-29T04:00:00Z"},
	} {
		if at, ok := ParseRelative(c.text, now, zone(t, c.zone)); !ok || at.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%s in %s: %v, want %s", c.text, c.zone, at.UTC(), c.want)
		}
	}
	for _, text := range []string{"", "-", "7d", "--7d", "-soon", "Today", "2026-03-30", "1h", "-9999999999999d"} {
		if at, ok := ParseRelative(text, now, time.UTC); ok {
			t.Errorf("%q is %v", text, at)
		}
	}
}

func TestParseDate(t *testing.T) {
	for _, c := range []struct {
		kind, text, want string
		day              bool
	}{
		{spec.TypeRFC2822, "Mon, 01 Jun 2026 11:03:10 +0000", "2026-06-01T11:03:10Z", false},
		{spec.TypeRFC2822, "Mon, 1 Jun 2026 13:03:10 +0200", "2026-06-01T11:03:10Z", false},
		{spec.TypeRFC2822, "2026-06-01", "2026-06-01T00:00:00Z", true},
		{spec.TypeISO, "2026-06-01T11:03:10.5Z", "2026-06-01T11:03:10.5Z", false},
		{spec.TypeEpoch, "1780311790", "2026-06-01T11:03:10Z", false},
		{spec.TypeDate, "2026-06-01", "2026-06-01T00:00:00Z", true},
		{spec.TypeRFC2822, "yesterday", "", false},
		{spec.TypeEpoch, "12x", "", false},
		{spec.TypeEpoch, "99999999999999999", "", false},
	} {
		at, day, ok := ParseDate(c.kind, c.text)
		if ok != (c.want != "") || ok && (at.UTC().Format(time.RFC3339Nano) != c.want || day != c.day) {
			t.Errorf("%s %q: %v %v %v", c.kind, c.text, at, day, ok)
		}
	}
}

func TestWriteDate(t *testing.T) {
	at := time.Date(2026, 6, 1, 1, 30, 0, 0, zone(t, "Europe/Berlin"))
	for kind, want := range map[string]string{
		spec.TypeRFC2822: "2026-05-31T23:30:00Z", spec.TypeISO: "2026-05-31T23:30:00Z", spec.TypeDate: "2026-05-31", spec.TypeEpoch: "1780270200",
	} {
		if got := WriteDate(kind, at); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than 1 s", 12 * time.Second: "12 s", 119 * time.Second: "119 s", 3 * time.Minute: "3 min", 5 * time.Hour: "5 h",
		80 * time.Hour: "3 days",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("LongAgo(%v) = %q", d, got)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0.00 ms", 412 * time.Microsecond: "0.41 ms", 3210 * time.Microsecond: "3.2 ms", 812 * time.Millisecond: "812 ms",
		1020 * time.Millisecond: "1.02 s",
	} {
		if got := FormatMillis(d); got != want {
			t.Errorf("millis(%v) = %q", d, got)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("thousands(%d) = %q", n, got)
		}
	}
	for text, want := range map[string]string{
		"+14155551234": "+1 415 555 1234", "+442071838750": "+44 20 7183 8750", "+493060113658": "+49 3060113658",
		"+97227655454":  "+972 27655454",
		"+447700475262": "+44 7700 475262", "+911135241138": "+91 11 3524 1138", "+919876543210": "+91 98765 43210",
		"+33612345678": "+33 6 12 34 56 78", "+1415555123": "+1 415555123",
		"72975": "72975", "client:anna": "client:anna", "+0123456789": "+0123456789", "": "", "+": "+", "+1": "+1",
		"whatsapp:+14155551234": "whatsapp:+14155551234",
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

func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/", "/a?b=c", "//x", `/\x`, "https://x/", "/%2f/x", "/%5cx", "javascript:1", "/a#b", "\t/a", "/\t/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := LocalPath(s)
		checktest.True(t, strings.HasPrefix(got, "/"), "got is %q", got)
		checktest.True(t, !strings.HasPrefix(got, "//"), "got is %q", got)
		checktest.True(t, !strings.ContainsAny(got, "\\\r\n\t"), `strings.ContainsAny(got, "\\\r\n\t") is true`)
	})
}

// The menu offers every zone that Go has, with its offset now.
func TestMenuOffersEveryZone(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	all, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	zones := newZones(time.UTC)
	summer := string(zones.options(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)))
	for _, f := range all.File {
		if strings.HasSuffix(f.Name, "/") || f.Name == "Factory" {
			continue
		}
		if zones.find(f.Name) == nil || !strings.Contains(summer, `<option value="`+f.Name+`">`+f.Name+" (UTC") {
			t.Errorf("%s is not offered: write it into zones.txt", f.Name)
		}
	}
	winter := string(zones.options(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)))
	if !strings.Contains(summer, "Europe/Berlin (UTC+02:00)") || !strings.Contains(winter, "Europe/Berlin (UTC+01:00)") {
		t.Error("the offset is not that of the moment")
	}
}

// Part 2, no. 8: a list made from records says how old what is new is, and how
// old the walk is that it may miss something since.
func TestAListFromRecordsNamesBothAges(t *testing.T) {
	q := &Exchange{Answer: &request.Response{Outcome: request.Composed, Age: 22 * time.Minute, Newest: 5 * time.Second}}
	how := q.AnswerOrigin()
	if !strings.Contains(how, FormatDuration(5*time.Second)+" ago") || !strings.Contains(how, FormatDuration(22*time.Minute)+" ago") {
		t.Error(how)
	}
	if q.Answer.Newest = 0; strings.Contains(q.AnswerOrigin(), "newest") {
		t.Error(q.AnswerOrigin())
	}
}
