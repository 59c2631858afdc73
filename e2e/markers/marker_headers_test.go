// Marker headers: the forms of headers that say where and how long, which no
// marker would be found in.

package markers

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"
)

// The only forms in which answers to the test of markers link and tell times: no
// address of a record, no name of anything but a part of the work, no number but
// of a time.
var (
	linkForm   = regexp.MustCompile(`^</-/static/viewer\.[0-9a-zA-Z_-]+\.css>; rel=preload; as=style$`)
	timingForm = regexp.MustCompile(`^(?:` + timing + `)(?:, ` + timing + `)*$`)
)

const (
	timing = `(?:(?:upstream|store|render|total);dur=\d+(?:\.\d{1,3})?|cache;desc="` + came + `")`
	came   = `(?:found in held records|made from what was known then|fresh from upstream|from upstream, where it was ` + age + ` old|` +
		`held, ` + age + ` old(?:, being refreshed)?|made from held records, ` + age + ` old|` +
		`made from held records; their newest page came ` + age + ` ago, all of them were walked ` + age + ` ago)`
	age = `(?:less than )?\d+ (?:s|min|h|days?)`
)

// oddHeaders are the Link and Server-Timing values that have another form.
func oddHeaders(h http.Header) (odd []string) {
	for name, form := range map[string]*regexp.Regexp{"Link": linkForm, "Server-Timing": timingForm} {
		for _, value := range h.Values(name) {
			if !form.MatchString(value) {
				odd = append(odd, name+": "+value)
			}
		}
	}
	return odd
}

// The other forms are found: the test of markers can fail by them.
func TestOddHeaders(t *testing.T) {
	for value, odd := range map[string]int{
		`</-/static/viewer.0123abcd.css>; rel=preload; as=style`:  0,
		`</twilio/calls/CA1>; rel=preload; as=document`:           1,
		`<http://h/2010/Calls.json?PageToken=PACA1>; rel="next"`:  1,
		`</-/static/viewer.css?of=CA1>; rel=preload; as=style`:    1,
		`</-/static/viewer.1.css>; rel=preload; as=style, <x>; a`: 1,
	} {
		if got := oddHeaders(http.Header{"Link": {value}}); len(got) != odd {
			t.Errorf("%s: %v", value, got)
		}
	}
	for value, odd := range map[string]int{
		`store;dur=0.1`: 0,
		`upstream;dur=0.000, store;dur=0.210, render;dur=3.1, total;dur=4, cache;desc="held, less than 1 s old"`: 0,
		`store;dur=0.1, rows;desc="17"`:                 1,
		`store;dur=0.123456`:                            1,
		`cache;desc="outdated"`:                         1,
		`cache;desc="found in held records, 17 hidden"`: 1,
		`cache;desc="held, 5 s old, being refreshed"`:   0,
		``: 1,
	} {
		if got := oddHeaders(http.Header{"Server-Timing": {value}}); len(got) != odd {
			t.Errorf("%s: %v", value, fmt.Sprint(got))
		}
	}
}
