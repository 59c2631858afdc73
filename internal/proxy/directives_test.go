// Wishes: the request headers we read, by table and by fuzzing.

package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/kit/header"
)

// text writes directives as the narrowest header that says them.
func (w directives) text() string {
	var all []string
	add := func(said bool, text string) {
		if said {
			all = append(all, text)
		}
	}
	add(w.noCache, "no-cache")
	add(w.onlyIfCached, "only-if-cached")
	add(w.maxAge.isSet, fmt.Sprintf("max-age=%d", w.maxAge.Duration/time.Second))
	add(w.minFresh.isSet, fmt.Sprintf("min-fresh=%d", w.minFresh.Duration/time.Second))
	if w.maxStale.Duration == anyTime {
		add(w.maxStale.isSet, "max-stale")
	} else {
		add(w.maxStale.isSet, fmt.Sprintf("max-stale=%d", w.maxStale.Duration/time.Second))
	}
	return strings.Join(all, ", ")
}

func TestCacheControl(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "no-cache": "no-cache", "No-Cache": "no-cache", `no-cache="x"`: "no-cache", "no-cached": "", "no cache": "",
		"max-age=5": "max-age=5", "MAX-AGE=5": "max-age=5", `max-age="7"`: "max-age=7", "max-age=0, no-store": "max-age=0", "no-store": "",
		"max-age": "", "max-age=": "", `max-age=""`: "", "max-age=-1": "", "max-age=+1": "", "max-age=x": "", "max-age=1.5": "",
		"max-age=0x10": "", "max-age=1e3": "",
		"max-age= 5": "", "max-age =5": "", "max-age=5 ": "max-age=5", `max-age="5`: "", `max-age="5" x`: "", "max-age=5;x": "",
		"max-age=5=5": "", `max-age="\5"`: "",
		"max-age=٣": "", "max-age=007": "max-age=7",
		"max-age=9, max-age=3": "max-age=3", "max-age=3, max-age=9": "max-age=3", "max-age=x, max-age=9": "max-age=9",
		"max-age=2147483648": "max-age=2147483648", "max-age=2147483649": "max-age=2147483648",
		"max-age=99999999999999999999": "max-age=2147483648",
		"min-fresh=5":                  "min-fresh=5", "min-fresh=5, min-fresh=9, min-fresh=7": "min-fresh=9", "min-fresh": "",
		"min-fresh=0":                    "min-fresh=0",
		"min-fresh=99999999999999999999": "min-fresh=2147483648",
		"max-stale":                      "max-stale", "max-stale=": "", "max-stale=x": "", "max-stale=0": "max-stale=0",
		"max-stale, max-stale=9":   "max-stale=9",
		"max-stale=9, max-stale":   "max-stale=9",
		"max-stale=9, max-stale=4": "max-stale=4", "Max-Stale, MAX-STALE": "max-stale",
		"only-if-cached": "only-if-cached", "Only-If-Cached, max-stale=600": "only-if-cached, max-stale=600",
		",, no-cache ,\t,only-if-cached,": "no-cache, only-if-cached",
		`x="no-cache, max-age=1"`:         "", `x="\", no-cache`: "", `x="a\", b", no-cache`: "no-cache", `private="a, max-age=5`: "",
		"no-transform, immutable, max-age=4, stale-if-error=9, foo=bar": "max-age=4",
		"max-age=600, min-fresh=30, max-stale=60, no-cache":             "no-cache, max-age=600, min-fresh=30, max-stale=60",
	} {
		if got := cacheControl([]string{header}).text(); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
	if got := cacheControl([]string{"max-age=9", "no-cache, max-age=3"}).text(); got != "no-cache, max-age=3" {
		t.Errorf("lines are one list: %q", got)
	}
	for header, want := range map[string]bool{"no-cache": true, "NO-CACHE": true, "x, no-cache": true, "": false, "no-cache=1": false,
		"cache": false} {
		if got := pragma([]string{header}).noCache; got != want {
			t.Errorf("Pragma %q: %v", header, got)
		}
	}
}

func FuzzWishes(f *testing.F) {
	for _, s := range []string{"gzip;q=0.5, *", `max-age="5", no-cache`, "wait=10;x", `"a`, `"\`, `,,"\",`, `W/"x-gzip", *`, ";;==",
		"\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		lines := []string{header, header}
		if hasTag(lines, "0123456789abcdefghijkl") && !strings.Contains(header, "*") && !strings.Contains(header, "0123456789abcdefghijkl") {
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

// FuzzCacheControl: what is read has its word in the header, is within its bounds,
// reads the same from its narrowest header, and does not depend on how the header is
// cut into lines or on unknown directives.
func FuzzCacheControl(f *testing.F) {
	for _, s := range []string{"no-cache", `max-age="5", no-store`, "max-stale", "max-stale=5, max-stale", "min-fresh=9,min-fresh=1",
		"only-if-cached,max-age=99999999999999999999",
		`a="\",no-cache`, "max-age =5", `,,"\",`, "max-age=-0", "max-age=5\x00", "MAX-AGE=5, max-age"} {
		f.Add(s, "x=y")
	}
	f.Fuzz(func(t *testing.T, text, more string) {
		w := cacheControl([]string{text})
		if again := cacheControl([]string{w.text()}); again != w {
			t.Fatalf("%q is %+v, said again %+v", text, w, again)
		}
		lower := strings.ToLower(text)
		for word, said := range map[string]bool{
			"no-cache": w.noCache, "only-if-cached": w.onlyIfCached, "max-age=": w.maxAge.isSet, "min-fresh=": w.minFresh.isSet,
			"max-stale": w.maxStale.isSet,
		} {
			if said && !strings.Contains(lower, word) {
				t.Fatalf("%q says no %s: %+v", text, word, w)
			}
		}
		for _, l := range []limit{w.maxAge, w.minFresh, w.maxStale} {
			checktest.MustTrue(t, l.Duration <= header.MaxSeconds*time.Second, "%q: l.Duration is %v", text,
				l.Duration)
			checktest.MustTrue(t, !(l.Duration < 0 && l != (limit{true, anyTime})),
				"%q: l.Duration < 0 && l != (limit{true, anyTime}); l.Duration is %v, l is %v", text, l.Duration, l)
			checktest.MustTrue(t, !(!l.isSet && l.Duration != 0),
				"%q: !l.said && l.Duration != 0", text)
		}
		if w.maxAge.Duration < 0 || w.minFresh.Duration < 0 {
			t.Fatalf("%q: %+v", text, w)
		}
		if two := cacheControl([]string{text, text}); two != w {
			t.Fatalf("%q said twice is %+v, not %+v", text, two, w)
		}
		// More directives only narrow.
		both := cacheControl([]string{text, more})
		checktest.MustTrue(t, !(w.noCache && !both.noCache), "%q and %q: w.noCache && !both.noCache", text, more)
		checktest.MustTrue(t, !(w.onlyIfCached && !both.onlyIfCached),
			"%q and %q: w.onlyIfCached && !both.onlyIfCached", text, more)
		checktest.MustTrue(t, !(w.maxAge.isSet && both.maxAge.Duration > w.maxAge.Duration),
			"%q and %q: w.maxAge.said && both.maxAge.Duration > w.maxAge.Duration", text, more)
		checktest.MustTrue(t, both.minFresh.Duration >= w.minFresh.Duration,
			"%q and %q: both.minFresh.Duration is %v", text, more, both.minFresh.Duration)
		checktest.MustTrue(t, !(w.maxStale.isSet && w.maxStale.Duration != anyTime && both.maxStale.Duration > w.maxStale.Duration),
			"%q and %q: w.maxStale.Duration is %v, anyTime is %v", text, more, w.maxStale.Duration, anyTime)
		if swapped := cacheControl([]string{more, text}); swapped != both {
			t.Fatalf("%q and %q: %+v, swapped %+v", text, more, both, swapped)
		}
	})
}

// FuzzOverrideIn: whatever stands before it, a parameter that names a method is found.
func FuzzOverrideIn(f *testing.F) {
	f.Add("a=1;b=%zz")
	f.Fuzz(func(t *testing.T, before string) {
		if got := overridesOfForm(before + "&_method=DELETE"); !slices.Contains(got, "DELETE") {
			t.Errorf("%q: %q", before, got)
		}
		part := before + "\r\n--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE"
		if got := overridesOfBody(nil, nil, []byte(part)); !slices.Contains(got, "DELETE") {
			t.Errorf("%q as a part: %q", before, got)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(before + "&_method=DELETE")) // a buffer has no error
		_ = z.Close()
		if got := overridesOfBody(nil, []string{"gzip"}, packed.Bytes()); !slices.Contains(got, "DELETE") {
			t.Errorf("%q in gzip: %q", before, got)
		}
		if plain, ok := unpack([]string{"gzip"}, []byte(before)); !ok && string(plain) != before || len(plain) > maxUnpacked {
			t.Errorf("%q was unpacked as %d bytes, %v", before, len(plain), ok)
		}
		object := `{"x":` + strconv.Quote(before) + `,"_method":"DELETE"}` + before
		if json.Valid([]byte(strconv.Quote(before))) && !slices.Contains(overridesOfBody(nil, nil, []byte(object)), "DELETE") {
			t.Errorf("%q in JSON", before)
		}
		lines := before + "\n" + `{"_method":"DELETE"}`
		if json.Valid([]byte(before)) && !slices.Contains(overridesOfJSON([]byte(lines)), "DELETE") {
			t.Errorf("%q on the line before", before)
		}
	})
}
