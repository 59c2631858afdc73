// Allowance: the headers of vendors and of the drafts.

package throttle

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

var xRateLimit = Fields{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Resource"}

func TestAllowances(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) // 1780315200
	openAI := Fields{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", ""}
	for _, c := range []struct {
		header string
		names  Fields
		want   string // limit remaining reset; "" = none
	}{
		{"X-RateLimit-Limit: 5000|X-RateLimit-Remaining: 4999|X-RateLimit-Reset: 1780315260", xRateLimit, "5000 4999 1m0s"},
		{"X-RateLimit-Remaining: 0|X-RateLimit-Reset: 1780315260|Date: Mon, 01 Jun 2026 12:00:30 GMT", xRateLimit, "0 0 30s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: 1780315260500", xRateLimit, "0 3 1m0.5s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: 17", xRateLimit, "0 3 17s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: 1780315100", xRateLimit, "0 3 0s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: soon", xRateLimit, "0 3 0s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: -5", xRateLimit, "0 3 0s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: 1e300", xRateLimit, "0 3 0s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: NaN", xRateLimit, "0 3 0s"},
		{"X-RateLimit-Remaining: 3|X-RateLimit-Reset: 99999999", xRateLimit, "0 3 744h0m0s"},
		{"X-RateLimit-Remaining: -1", xRateLimit, ""},
		{"X-RateLimit-Limit: 5", xRateLimit, ""},
		{"X-RateLimit-Remaining-Requests: 59|X-RateLimit-Limit-Requests: 60|X-RateLimit-Reset-Requests: 6m0s", openAI, "60 59 6m0s"},
		{"X-RateLimit-Remaining-Requests: 59|X-RateLimit-Reset-Requests: 2026-06-01T12:00:10Z", openAI, "0 59 10s"},
		{"X-RateLimit-Remaining-Requests: 59|X-RateLimit-Reset-Requests: Mon, 01 Jun 2026 12:00:05 GMT", openAI, "0 59 5s"},
		{"RateLimit-Limit: 100, 100;w=60|RateLimit-Remaining: 7|RateLimit-Reset: 5", xRateLimit, "100 7 5s"},
		{`RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400|RateLimit: "burst";r=50;t=30, "daily";r=20;t=36000`, xRateLimit,
			"1000 20 10h0m0s"},
		{`RateLimit: "default";r=0;t=9`, xRateLimit, "0 0 9s"},
		{`RateLimit: default;r=4;t=9;pk=:abc:`, xRateLimit, "0 4 9s"},
		{"RateLimit: limit=100, remaining=50, reset=5", xRateLimit, "100 50 5s"},
		{`RateLimit: "default";t=9`, xRateLimit, ""},
		{"RateLimit: ;;;,,,=,\"", xRateLimit, ""},
		{"", xRateLimit, ""},
	} {
		got, ok := c.names.Read(headerOf(c.header), at)
		if ok != (c.want != "") || ok && text(got) != c.want {
			t.Errorf("%s: %s, %v; want %q", c.header, text(got), ok, c.want)
		}
	}
}

func text(a Allowance) string {
	return strings.Join([]string{strconv.FormatInt(a.Limit, 10), strconv.FormatInt(a.Remaining, 10), a.Reset.String()}, " ")
}

func headerOf(lines string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(lines, "|") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

// FuzzAllowance: whatever stands there, the numbers are none below zero and the wait has a
// bound.
func FuzzAllowance(f *testing.F) {
	f.Add("5000", "0", "1780315260", `"a";r=1;t=2`, `"a";q=3`)
	f.Add("", "", "", "limit=1, remaining=0, reset=9999999999999999999", "")
	f.Fuzz(func(t *testing.T, limit, remaining, reset, draft, policy string) {
		h := http.Header{"X-Ratelimit-Limit": {limit}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {reset},
			"Ratelimit": {draft}, "Ratelimit-Policy": {policy}}
		a, ok := xRateLimit.Read(h, time.Unix(1780315200, 0))
		checktest.MustTrue(t, a.Limit >= 0, "a.Limit is %v, want >= 0", a.Limit)
		checktest.MustTrue(t, a.Remaining >= 0, "a.Remaining is %v, want >= 0", a.Remaining)
		checktest.MustTrue(t, a.Reset >= 0, "a.Reset is %v, want >= 0", a.Reset)
		checktest.MustTrue(t, a.Reset <= maxReset, "a.Reset is %v", a.Reset)
		checktest.MustTrue(t, !(!ok && a != (Allowance{})), "!ok && a != (Allowance{}); a is %v", a)
	})
}
