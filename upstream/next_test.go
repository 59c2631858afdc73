// Next pages and Retry-After: what upstream points at.

package upstream

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/spec"
)

func TestNextKey(t *testing.T) {
	twilio, shelf := builtInSpec(t, "twilio"), specFile(t, "shelf")
	links, counted := specFile(t, "links"), specFile(t, "counted")
	const calls = "/2010-04-01/Accounts/AC1/Calls.json"
	for _, c := range []struct {
		spec       *spec.Spec
		path, ask  string
		body, link string
		want, why  string
	}{
		{twilio, calls, "", `{"calls":[],"next_page_uri":null}`, "", "", ""},
		{twilio, calls, "", `{"calls":[]}`, "", "", ""},
		{twilio, calls, "", `{"calls":[],"next_page_uri":""}`, "", "", ""},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"` + calls + `?PageToken=PA1&Page=1&PageSize=50"}`, "", calls +
			"?PageSize=50&Page=1&PageToken=PA1", ""},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"https:\/\/evil.example` + calls + `?Page=1"}`, "", calls + "?PageSize=50&Page=1", ""},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"//evil.example` + calls + `?Page=1"}`, "", calls + "?PageSize=50&Page=1", ""},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"?Page=1"}`, "", calls + "?PageSize=50&Page=1", ""},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"Calls.json?Page=1"}`, "", calls + "?PageSize=50&Page=1", ""},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"` + calls + `?PageSize=50"}`, "", "", ""}, // itself
		{twilio, calls, "", `{"calls":[],"next_page_uri":"/2010-04-01/Accounts/AC1/Messages.json"}`, "", "", "does not lead to a list of calls"},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"/x%zz"}`, "", "", "percent escape"},
		{twilio, calls, "", `{"calls":[],"next_page_uri":"/2010-04-01/../x"}`, "", "", "path segment"},
		{shelf, "/v3/main/books", "", `{"data":{"items":[{"id":7},{"id":"a b"}]},"paging":{"more":true}}`, "",
			"/v3/main/books?limit=20&after=a+b", ""},
		{shelf, "/v3/main/books", "author=X&after=3&before=4&limit=5", `{"data":{"items":[{"id":7}]},"paging":{"more":true}}`, "",
			"/v3/main/books?author=X&limit=5&after=7", ""},
		{shelf, "/v3/main/books", "after=7", `{"data":{"items":[{"id":7}]},"paging":{"more":true}}`, "", "", "this page again"},
		{shelf, "/v3/main/books", "", `{"data":{"items":[{"id":7}]},"paging":{"more":false}}`, "", "", ""},
		{shelf, "/v3/main/books", "", `{"data":{"items":[{"id":7}]},"paging":{"more":"true"}}`, "", "/v3/main/books?limit=20&after=7", ""},
		{shelf, "/v3/main/books", "", `{"data":{"items":[]},"paging":{"more":true}}`, "", "", "it has no record"},
		{links, "/events", "", `[]`, `<https://links.example/events?page=2&per_page=30>; rel="next"`, "/events?per_page=30&page=2", ""},
		{links, "/events", "per_page=5", `[]`, `</by-number/7/events?page=2&per_page=5>; rel="next"`, "/events?per_page=5&page=2", ""},
		{links, "/by-number/7/events", "", `[]`, `</events?page=3>; rel="next"`, "/by-number/7/events?per_page=30&page=3", ""},
		{links, "/events", "", `[]`, `<https://links.example/events?page=1&per_page=30>; rel="next"`, "", ""},
		{links, "/events", "", `[]`, `</events?page=9>; rel="prev"`, "", ""},
		{counted, "/numbers", "", `{"data":[{"id":1},{"id":2}],"meta":{"total":3}}`, "", "/numbers?limit=2&page=2", ""},
		{counted, "/numbers", "page=2", `{"data":[{"id":3}],"meta":{"total":3}}`, "", "", ""},
		{counted, "/numbers", "page=2", `{"data":[{"id":3}]}`, "", "", ""},
		{counted, "/tokens", "from=a", `[]`, "a", "", ""}, // itself, without rows
		{counted, "/offsets", "start=2", `{"data":[{"id":3},{"id":4}]}`, "", "/offsets?limit=2&start=4", ""},
		{counted, "/offsets", "start=2", `{"data":[{"id":3}]}`, "", "", ""},
		{counted, "/totals", "", `{"data":[1,{}]}`, "", "/totals?limit=2&start=2", ""}, // no records, and rows all the same
		{counted, "/tokens", "limit=5", `[{"id":1}]`, "a+b", "/tokens?limit=5&from=a%2Bb", ""},
		{counted, "/tokens", "from=a", `[{"id":1}]`, "a", "", "this page again"},
		{counted, "/tokens", "from=a", `[{"id":1}]`, "", "", ""},
		{counted, "/cursors", "before=9", `{"data":[{"id":7},{"id":8}],"more":true}`, "", "/cursors?before=7", ""},
	} {
		target, err := c.spec.Resolve("s", c.path, c.ask)
		if err != nil {
			t.Fatal(err)
		}
		at := newOrigins(&spec.Source{Spec: c.spec, PublicURL: "http://127.0.0.1:4115"}, "")
		long := strings.Replace(c.body, `{"id":`, `{"pad":"`+strings.Repeat("x", 2000)+`","id":`, 1) // its rows are nearly all of it
		for _, body := range []string{c.body, long} {
			doc := document1(t, []byte(body))
			f := readList(newPlan(c.spec, target.Kind), target.List, c.spec.PagingOf(target.List), []byte(body), doc, 0)
			list := spec.ListAnswer{Target: target, Header: http.Header{"Link": {c.link}, "X-Next": {c.link}}, Body: []byte(body), Doc: doc,
				Array: f.array, Next: f.next, Rows: f.rows, Count: f.count, Local: at.localPath}
			key, _, err := list.FindNextPage()
			if c.why != "" {
				checktest.MustTrue(t, err != nil, "%.200s %s: err is nil", body, c.link)
				checktest.Contains(t, err.Error(), c.why, "%.200s %s: err.Error()", body, c.link)
				checktest.True(t, key.IsZero(), "%.200s %s: key.IsZero() is false; %v", body, c.link, err)
				continue
			}
			if err != nil || key.URI != c.want {
				t.Errorf("%.200s %s: %q %v, want %q", body, c.link, key.URI, err, c.want)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "5.7": 5700 * time.Millisecond, "1.2.3": 0, ".": 0, "soon": 0,
		"Fri, 02 Jan 2026 03:04:35 +0000": 30 * time.Second, "Fri, 02 Jan 2026 04:04:35 +0100": 30 * time.Second,
		"3601": time.Hour, "99999999999999999999": time.Hour,
		"Fri, 02 Jan 2026 03:04:35 GMT":  30 * time.Second,
		"Friday, 02-Jan-26 03:04:35 GMT": 30 * time.Second,
		"Fri Jan  2 03:04:35 2026":       30 * time.Second,
		"Fri, 02 Jan 2026 03:04:00 GMT":  0,
		"Fri, 02 Jan 2099 03:04:00 GMT":  time.Hour,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("7")
	f.Add("Fri, 02 Jan 2026 03:04:35 GMT")
	f.Add("999999999999")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, after string) {
		if d := retryAfter(http.Header{"Retry-After": {after}}, now); d < 0 || d > time.Hour {
			t.Fatalf("%q: %v", after, d)
		}
	})
}
