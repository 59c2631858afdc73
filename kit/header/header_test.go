// Tests of header fields: items of lists, seconds, dates, the wait preference.

package header

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

func TestWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"wait=10": 10 * time.Second, "WAIT = 3": 3 * time.Second, "respond-async, wait=2": 2 * time.Second, `wait="4"; x=y`: 4 * time.Second,
		"wait=1, wait=5": time.Second, "wait": -1, "wait=": -1, "wait=-1": -1, "waiting=1": -1, "": -1, "wait=0": 0,
	} {
		got, ok := Wait([]string{text})
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestDate(t *testing.T) {
	noon := time.Date(2050, 8, 8, 12, 0, 5, 0, time.UTC)
	for _, text := range []string{"Mon, 08 Aug 2050 12:00:05 GMT", "Monday, 08-Aug-50 12:00:05 GMT", "Mon Aug  8 12:00:05 2050",
		"MON, 08 AUG 2050 12:00:05 gmt", "mon aug  8 12:00:05 2050", "Sun, 08 Aug 2050 12:00:05 GMT"} {
		if got, ok := Date(text); !ok || !got.Equal(noon) {
			t.Errorf("%q: %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "0", "-1",
		"Mon, 08 Aug 2050 12:00:05 UTC", "Mon, 08 Aug 2050 12:00:05 +0000", "Mon, 08 Aug 50 12:00:05 GMT",
		"Mon 08 Aug 2050 12:00:05 GMT", "Mon, 08  Aug  2050 12:00:05 GMT",
		"Mon,  08 Aug 2050 12:00:05 GMT",
		"Mon, 8 Aug 2050 12:00:05 GMT", "Mon, 08-Aug-2050 12:00:05 GMT",
		"Mon, 08 Aug 2050 12.00.05 GMT", "Mon, 08 Aug 2050 2:00:05 GMT", "Mon, 08 Aug 2050 12:00:05 GMT ",
		"Mon, 30 Feb 2050 12:00:05 GMT", "Mon, 08 Aug 2050 12:00:05.5 GMT", "Monday, 08-Aug-50 12:00:05 CET", "Mon Aug 8 12:00:05 2050"} {
		if got, ok := Date(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A date is one that net/http reads alike once it is written as it should be.
func FuzzDate(f *testing.F) {
	for _, s := range []string{"Mon, 08 Aug 2050 12:00:05 GMT", "Monday, 08-Aug-50 12:00:05 GMT", "Mon Aug  8 12:00:05 2050",
		"mon,  8 AUG 50 2:0:5 gmt"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Date(text)
		if !ok {
			return
		}
		want, err := http.ParseTime(got.Format(http.TimeFormat))
		if err != nil || !got.Equal(want) {
			t.Fatalf("%q: %v, net/http %v: %v", text, got, want, err)
		}
		if was, err := http.ParseTime(text); err == nil && !got.Equal(was) {
			t.Fatalf("%q: %v, net/http %v", text, got, was)
		}
	})
}

// Whatever a header says, its items are parts of it, and a wait is within its bounds.
func FuzzItems(f *testing.F) {
	for _, s := range []string{"gzip;q=0.5, *", `max-age="5", no-cache`, "wait=10;x", `"a`, `"\`, `,,"\",`, `W/"x-gzip", *`, ";;==",
		"\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := []string{text, text}
		total := 0
		for item := range Items(lines) {
			checktest.MustTrue(t, item != "", "item is empty; text %q", text)
			checktest.MustEqual(t, item, strings.Trim(item, " \t"), "item; text %q", text)
			checktest.MustContains(t, text, item, "text")
			total += len(item)
		}
		if total > 2*len(text) {
			t.Fatalf("%q: items are longer than the header", text)
		}
		d, ok := Wait(lines)
		checktest.MustTrue(t, d >= 0, "%q: d is %v, want >= 0", text, d)
		checktest.MustTrue(t, d <= MaxSeconds*time.Second, "%q: d is %v", text, d)
		checktest.MustTrue(t, !(ok && !strings.Contains(strings.ToLower(text), "wait")),
			`%q: ok && !strings.Contains(strings.ToLower(text), "wait")`, text)
	})
}
