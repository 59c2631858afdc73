// This file reads from an answer how many more requests the upstream accepts.

package throttle

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
)

// Allowance is what an answer reports about the requests that the upstream still accepts.
type Allowance struct {
	LimitName string        // the name of the limit, if the upstream has several limits
	Limit     int64         // the number of requests that a complete window allows, or 0 if unknown
	Remaining int64         // the number of requests that are left until the window ends
	Reset     time.Duration // the time until the window ends; 0 if it ends now or if that is unknown
	Named     bool          // whether the allowance was read from the header fields in Fields
}

// maxReset is the maximum remaining time of a window that is accepted as true.
const maxReset = 31 * 24 * time.Hour

// Fields are the canonical names of the header fields that report an Allowance. Resource is the field with the name of
// the limit if the API has several, such as GitHub's core and search.
type Fields struct{ Limit, Remaining, Reset, Resource string }

// Read finds an allowance in an answer's header: in the fields f, in RateLimit and RateLimit-Policy (IETF draft
// httpapi-ratelimit-headers), or in RateLimit-Limit and similar fields (earlier drafts). ok is false if no
// field says how much remains. If upstream names several limits, Read returns the one with the fewest requests
// left. at is the time of the answer. Times of day are compared with the answer's own Date.
func (f Fields) Read(h http.Header, at time.Time) (a Allowance, ok bool) {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		at = date
	}
	for i, names := range [...]Fields{f, {"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", ""}} {
		if a.Remaining, ok = leadingNumber(field(h, names.Remaining)); ok {
			a.Limit, _ = leadingNumber(field(h, names.Limit))
			a.Reset, a.Named = readReset(field(h, names.Reset), at), i == 0
			if of := field(h, f.Resource); isWord(of) {
				a.LimitName = of
			}
			return a, true
		}
	}
	return readRateLimit(strings.Join(h["Ratelimit"], ","), strings.Join(h["Ratelimit-Policy"], ","))
}

// field returns the first value of a header field.
func field(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return strings.TrimSpace(values[0])
	}
	return ""
}

// Count returns the whole number in a header field, or 0.
func Count(h http.Header, name string) int64 {
	n, _ := leadingNumber(field(h, name))
	return n
}

// isWord reports whether a text is at most 40 letters, digits, - and _.
func isWord(text string) bool {
	return len(text) <= 40 && !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	})
}

// leadingNumber returns the whole number at the beginning of a text such as 100, "100;w=60" or 4.5.
func leadingNumber(text string) (int64, bool) {
	n := 0
	for n < len(text) && n < 18 && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	number, err := strconv.ParseInt(text[:n], 10, 64)
	return number, err == nil
}

// The minimum numbers that mean a point in time. From epochMillis on a number is milliseconds since 1970, from
// epochSeconds on seconds since 1970. A lower number is seconds from now.
const (
	epochSeconds = 5e8
	epochMillis  = 1e12
)

// readReset returns the time until a window ends. The text has seconds from now or since 1970, milliseconds since 1970, a
// duration (6m0s), or a date of RFC 3339 or HTTP. readReset returns 0 for a past or malformed time.
func readReset(text string, at time.Time) time.Duration {
	var left time.Duration
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case !(number >= 0 && number < 1e15):
			return 0
		case number >= epochMillis:
			left = time.UnixMilli(int64(number)).Sub(at)
		case number >= epochSeconds:
			left = time.Unix(int64(number), 0).Sub(at)
		default:
			left = time.Duration(min(number, maxReset.Seconds()) * float64(time.Second))
		}
	} else if left, err = time.ParseDuration(text); err != nil {
		end, err := understudy.ParseTime(text, time.UTC, time.RFC3339)
		if err != nil {
			end, err = http.ParseTime(text)
		}
		if err != nil {
			return 0
		}
		left = end.Sub(at)
	}
	return max(0, min(left, maxReset))
}

// readRateLimit reads the RateLimit field, which has items like "name";r=50;t=30, separated by commas, or
// limit=100, remaining=50, reset=30 of an earlier draft. The policy has the limits (q) under the same names.
func readRateLimit(text, policy string) (a Allowance, ok bool) {
	const most = 16 // the maximum number of limits that are read
	whole := map[string]int64{}
	for i, item := range strings.SplitN(policy, ",", most+1) {
		name, params := readItem(item)
		if q, told := params["q"]; told && i < most {
			whole[name] = q
		}
	}
	old := map[string]int64{}
	for i, item := range strings.SplitN(text, ",", most+1) {
		name, params := readItem(item)
		r, told := params["r"]
		switch key, value, dictionary := strings.Cut(name, "="); {
		case i == most:
		case told && (!ok || r < a.Remaining):
			a, ok = Allowance{Limit: whole[name], Remaining: r, Reset: seconds(params["t"])}, true
		case dictionary:
			if n, number := leadingNumber(strings.TrimSpace(value)); number {
				old[strings.TrimSpace(key)] = n
			}
		}
	}
	if r, told := old["remaining"]; told && !ok {
		return Allowance{Limit: old["limit"], Remaining: r, Reset: seconds(old["reset"])}, true
	}
	return a, ok
}

// seconds returns a number of seconds as a duration, at most maxReset.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(maxReset/time.Second))) * time.Second
}

// readItem reads a structured item (RFC 9651, 3.3): a name, and the parameters that are whole numbers.
func readItem(item string) (name string, params map[string]int64) {
	name, rest, _ := strings.Cut(item, ";")
	params = map[string]int64{}
	for part := range strings.SplitSeq(rest, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if n, ok := leadingNumber(value); ok && len(params) < 8 {
			params[key] = n
		}
	}
	return strings.Trim(strings.TrimSpace(name), `"`), params
}
