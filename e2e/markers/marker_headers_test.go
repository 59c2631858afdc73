// Marker headers: the forms of headers that say where and how long, which no
// marker would be found in.

package markers

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The only forms in which answers to the test of markers link and tell times: no
// address of a record but one that was asked for, no name of anything but a part
// of the work, no number but of a time.
var (
	linkForm      = regexp.MustCompile(`^</-/static/viewer\.[0-9a-zA-Z_-]+\.css>; rel=preload; as=style$`)
	canonicalForm = regexp.MustCompile(`^<(/[^<>\s]*)>; rel="canonical"$`)
	timingForm    = regexp.MustCompile(`^(?:` + timing + `)(?:, ` + timing + `)*$`)
)

const (
	timing = `(?:(?:upstream|store|render|total);dur=\d+(?:\.\d{1,3})?|cache;desc="` + came + `")`
	came   = `(?:found in stored records|assembled from the versions of that time|fetched just now(?:, ` + age + ` old)?|` +
		`cached, ` + age + ` old(?:, refreshing in the background)?|assembled from records, ` + age + ` old|` +
		`assembled from records; newest page fetched ` + age + ` ago, full check ` + age + ` ago)`
	age = `(?:less than )?\d+ (?:s|min|h|days?)`
)

// oddHeaders are the Link and Server-Timing values that have another form, in the answer to a request for a path.
func oddHeaders(h http.Header, asked string) (odd []string) {
	for name, form := range map[string]*regexp.Regexp{"Link": linkForm, "Server-Timing": timingForm} {
		for _, value := range h.Values(name) {
			canonical := canonicalForm.FindStringSubmatch(value)
			if !form.MatchString(value) && (name != "Link" || canonical == nil || !repeats(canonical[1], asked)) {
				odd = append(odd, name+": "+value)
			}
		}
	}
	return odd
}

// clockForm is a time as it was asked for, with its day.
var clockForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)T\d\d:\d\d$`)

// repeats reports whether an address says nothing but what the one that was asked for says: the same path, and of its
// parameters only those that were asked with, whose values are pieces that were asked with under the same name. A time
// may be its day alone, or have the seconds and the zone.
func repeats(address, asked string) bool {
	said, err := url.ParseRequestURI(address)
	if err != nil {
		return false
	}
	own, err := url.ParseRequestURI(asked)
	if err != nil || said.EscapedPath() != own.EscapedPath() {
		return false
	}
	parameters, err := url.ParseQuery(said.RawQuery)
	if err != nil {
		return false
	}
	pieces := func(values []string) []string { return strings.Split(strings.Join(values, ","), ",") }
	for name, values := range parameters {
		if !own.Query().Has(name) {
			return false
		}
		had := pieces(own.Query()[name])
		for _, piece := range had {
			if clock := clockForm.FindStringSubmatch(piece); clock != nil {
				had = append(had, clock[1], piece+":00Z")
			}
		}
		for _, piece := range pieces(values) {
			if !slices.Contains(had, piece) {
				return false
			}
		}
	}
	return true
}

// The other forms are found: the test of markers can fail by them.
func TestOddHeaders(t *testing.T) {
	const asked = "/twilio/calls.csv?Status=busy&PageSize=50&understudy.columns=to&understudy.columns=from%2Cprice&" +
		"StartTime=2026-06-01T10%3A00"
	for value, odd := range map[string]int{
		`</-/static/viewer.0123abcd.css>; rel=preload; as=style`:                                 0,
		`</twilio/calls/CA1>; rel=preload; as=document`:                                          1,
		`<http://h/2010/Calls.json?PageToken=PACA1>; rel="next"`:                                 1,
		`</-/static/viewer.css?of=CA1>; rel=preload; as=style`:                                   1,
		`</-/static/viewer.1.css>; rel=preload; as=style, <x>; a`:                                1,
		`</twilio/calls.csv?Status=busy>; rel="canonical"`:                                       0,
		`</twilio/calls.csv?Status=busy&understudy.columns=to%2Cfrom>; rel="canonical"`:          0,
		`</twilio/calls.csv>; rel="canonical"`:                                                   0,
		`</twilio/calls.csv?Status=busy>; rel="canonical", </twilio/calls/CA1>; rel="canonical"`: 1,
		`</twilio/calls/CA1.csv>; rel="canonical"`:                                               1,
		`<http://h/twilio/calls.csv>; rel="canonical"`:                                           1,
		`<//h/twilio/calls.csv>; rel="canonical"`:                                                1,
		`</twilio/calls.csv?Status=failed>; rel="canonical"`:                                     1,
		`</twilio/calls.csv?Status=busy&From=>; rel="canonical"`:                                 1,
		`</twilio/calls.csv?PageToken=PACA1>; rel="canonical"`:                                   1,
		`</twilio/calls.csv?understudy.columns=to%2Cbody>; rel="canonical"`:                      1,
		`</twilio/calls.csv?StartTime=2026-06-01>; rel="canonical"`:                              0,
		`</twilio/calls.csv?StartTime=2026-06-01T10%3A00%3A00Z>; rel="canonical"`:                0,
		`</twilio/calls.csv?StartTime=2026-06-01T10%3A00%3A17Z>; rel="canonical"`:                1,
		`</twilio/calls.csv?StartTime=2026-06-02>; rel="canonical"`:                              1,
		`</twilio/calls.csv?Status=50>; rel="canonical"`:                                         1,
		`</twilio/calls.csv?Status=busy#CA1>; rel="canonical"`:                                   1,
	} {
		if got := oddHeaders(http.Header{"Link": {value}}, asked); len(got) != odd {
			t.Errorf("%s: %v", value, got)
		}
	}
	for value, odd := range map[string]int{
		`store;dur=0.1`: 0,
		`upstream;dur=0.000, store;dur=0.210, render;dur=3.1, total;dur=4, cache;desc="cached, less than 1 s old"`: 0,
		`store;dur=0.1, rows;desc="17"`:                              1,
		`store;dur=0.123456`:                                         1,
		`cache;desc="outdated"`:                                      1,
		`cache;desc="found in stored records, 17 hidden"`:            1,
		`cache;desc="cached, 5 s old, refreshing in the background"`: 0,
		``: 1,
	} {
		if got := oddHeaders(http.Header{"Server-Timing": {value}}, asked); len(got) != odd {
			t.Errorf("%s: %v", value, fmt.Sprint(got))
		}
	}
}
