// Tests of header fields: items of lists, seconds, the wait preference.

package header

import (
	"strings"
	"testing"
	"time"
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
			if item == "" || item != strings.Trim(item, " \t") || !strings.Contains(text, item) {
				t.Fatalf("%q has the item %q", text, item)
			}
			total += len(item)
		}
		if total > 2*len(text) {
			t.Fatalf("%q: items are longer than the header", text)
		}
		if d, ok := Wait(lines); d < 0 || d > MaxSeconds*time.Second || ok && !strings.Contains(strings.ToLower(text), "wait") {
			t.Fatalf("%q: %v", text, d)
		}
	})
}
