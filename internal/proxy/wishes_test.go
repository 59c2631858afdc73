// Wishes: the request headers we read, by table and by fuzzing.

package proxy

import (
	"strings"
	"testing"
	"time"
)

func TestTakesGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "deflate, gzip;q=1.0, *;q=0.5": true, "br": false,
		"gzip;q=0": false, "gzip; q=0.000": false, "gzip ; Q=0.001": true, "*": true, "*;q=0": false, "*;q=0, gzip": true,
		"gzip;q=0, *": false, "identity": false, "identity;q=1, gzip;q=0.5": false, "identity;q=0.5, gzip;q=1": true, "identity, gzip": true,
		"gzip;q=2": false, "gzip;q=-1": false, "gzip;q=0.0001": false, "gzip;q=x": false, "gzip;q=": false, "gzip;q=1.5": false, "gzip;q=0.-1": false,
		"gzipped": false, ",,gzip,,": true, "gzip;level=9": true,
	} {
		if got := takesGzip([]string{header}); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
	if takesGzip(nil) || !takesGzip([]string{"br", "gzip"}) {
		t.Error("lines are one list")
	}
}

func TestCacheControl(t *testing.T) {
	for header, want := range map[string]wish{
		"": {}, "no-cache": {noCache: true}, "No-Cache": {noCache: true}, "max-age=5": {hasMaxAge: true, maxAge: 5 * time.Second},
		"max-age=0, no-store": {hasMaxAge: true}, `max-age="7"`: {hasMaxAge: true, maxAge: 7 * time.Second}, "max-age": {}, "max-age=-1": {}, "max-age=x": {}, "max-age=1.5": {},
		"max-age=9, max-age=3": {hasMaxAge: true, maxAge: 3 * time.Second}, `x="no-cache, max-age=1"`: {}, "no-cached": {},
		"max-age=99999999999999999999": {hasMaxAge: true, maxAge: maxSeconds * time.Second},
		`private="a\", no-cache`:       {},
	} {
		if got := cacheControl([]string{header}); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
}

func TestPrefer(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"wait=10": 10 * time.Second, "WAIT = 3": 3 * time.Second, "respond-async, wait=2": 2 * time.Second, `wait="4"; x=y`: 4 * time.Second,
		"wait=1, wait=5": time.Second, "wait": -1, "wait=": -1, "wait=-1": -1, "waiting=1": -1, "": -1, "wait=0": 0,
	} {
		got, ok := preferredWait([]string{header})
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

func FuzzWishes(f *testing.F) {
	for _, s := range []string{"gzip;q=0.5, *", `max-age="5", no-cache`, "wait=10;x", `"a`, `"\`, `,,"\",`, `W/"x-gzip", *`, ";;==", "\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		lines := []string{header, header}
		total := 0
		for item := range items(lines) {
			if item == "" || item != strings.Trim(item, " \t") || !strings.Contains(header, item) {
				t.Fatalf("%q has the item %q", header, item)
			}
			total += len(item)
		}
		if total > 2*len(header) {
			t.Fatalf("%q: items are longer than the header", header)
		}
		if takesGzip(lines) && !strings.Contains(strings.ToLower(header), "gzip") && !strings.Contains(header, "*") {
			t.Fatalf("%q takes gzip", header)
		}
		if w := cacheControl(lines); w.maxAge < 0 || w.maxAge > maxSeconds*time.Second || w.noCache && !strings.Contains(strings.ToLower(header), "no-cache") {
			t.Fatalf("%q: %+v", header, w)
		}
		if d, ok := preferredWait(lines); d < 0 || d > maxSeconds*time.Second || ok && !strings.Contains(strings.ToLower(header), "wait") {
			t.Fatalf("%q: %v", header, d)
		}
		if noneMatch(lines, "0123456789abcdefghijkl") && !strings.Contains(header, "*") && !strings.Contains(header, "0123456789abcdefghijkl") {
			t.Fatalf("%q matches", header)
		}
		quoted := string(appendQuoted(nil, header))
		for i := range len(quoted) {
			if quoted[i] < ' ' || quoted[i] > '~' {
				t.Fatalf("%q is quoted as %q", header, quoted)
			}
		}
		if strings.Count(strings.ReplaceAll(strings.ReplaceAll(quoted, `\\`, ""), `\"`, ""), `"`) != 0 {
			t.Fatalf("%q is quoted as %q", header, quoted)
		}
	})
}
