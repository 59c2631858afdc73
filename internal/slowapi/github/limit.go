// Rate limits: the primary limits for requests and for searches, and the secondary limit.

package github

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/slowapi/format"
)

const secondaryText = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."

// limits counts requests for GitHub's rate limits. A primary limit permits a number of requests in a window of time,
// which begins with a request. Searches have a primary limit of their own. The secondary limit, which is off by
// default, permits a number of requests a second.
type limits struct {
	bounds       bounds
	mu           sync.Mutex
	now          func() time.Time
	core, search window
	secondStart  time.Time // when the second began in which the secondary limit now counts
	secondCount  int       // the number of requests in the current second of the secondary limit
	blockedUntil time.Time // the secondary limit refuses all requests until this time
}

// bounds are the limits that POST /-/limits sets.
type bounds struct {
	Limit      int `json:"limit"`       // the number of requests in a window; searches do not count
	Seconds    int `json:"seconds"`     // the length in seconds of the window for the primary limit
	Searches   int `json:"searches"`    // the number of searches that are permitted in a minute
	Burst      int `json:"burst"`       // the secondary limit, in requests a second; 0 means that there is none
	RetryAfter int `json:"retry_after"` // how long the secondary limit refuses requests, in seconds
}

// defaultBounds are GitHub's own limits ("Rate limits for the REST API", "REST API endpoints for search").
var defaultBounds = bounds{Limit: 5000, Seconds: 3600, Searches: 30}

// window is the state of one primary limit.
type window struct {
	resource string // the name of the limit in the header X-RateLimit-Resource
	limit    int
	length   time.Duration
	used     int
	end      time.Time
}

// currentWindow returns the window of the primary limit for a path. It begins a new window if the last one has ended.
// The caller holds mu.
func (l *limits) currentWindow(path string) *window {
	w := &l.core
	w.resource, w.limit, w.length = "core", l.bounds.Limit, time.Duration(l.bounds.Seconds)*time.Second
	if strings.HasPrefix(path, "/search/") {
		w = &l.search
		w.resource, w.limit, w.length = "search", l.bounds.Searches, time.Minute
	}
	if now := l.now(); !now.Before(w.end) {
		w.used, w.end = 0, now.Add(w.length)
	}
	return w
}

// take counts a request. It returns an error response if a limit is reached, otherwise nil.
func (l *limits) take(path string) *format.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, w := l.now(), l.currentWindow(path)
	if l.bounds.Burst > 0 {
		if now.Sub(l.secondStart) >= time.Second {
			l.secondStart, l.secondCount = now, 0
		}
		l.secondCount++
		if l.secondCount > l.bounds.Burst && !now.Before(l.blockedUntil) {
			l.blockedUntil = now.Add(time.Duration(l.bounds.RetryAfter) * time.Second)
		}
		if now.Before(l.blockedUntil) {
			return new(withHeader(refuse(http.StatusForbidden, secondaryText, "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"),
				"Retry-After", strconv.Itoa(int(l.blockedUntil.Sub(now).Seconds())+1)))
		}
	}
	if w.used >= w.limit {
		return new(refuse(http.StatusForbidden, "API rate limit exceeded for user ID 1000000.",
			"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"))
	}
	w.used++
	return nil
}

// refund takes back the count of a request that does not count for the primary limit.
func (l *limits) refund(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.currentWindow(path)
	w.used = max(w.used-1, 0)
}

// header returns the headers that tell the client the state of the primary limit for a path.
func (l *limits) header(path string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.currentWindow(path)
	return map[string]string{
		"X-Ratelimit-Limit": strconv.Itoa(w.limit), "X-Ratelimit-Remaining": strconv.Itoa(w.limit - w.used),
		"X-Ratelimit-Used": strconv.Itoa(w.used), "X-Ratelimit-Reset": strconv.FormatInt(w.end.Unix(), 10),
		"X-Ratelimit-Resource": w.resource,
	}
}

// show answers /rate_limit. Such a request does not count for the limits.
func (l *limits) show(path string) format.Answer {
	l.refund(path)
	rate := func(path string) string {
		h := l.header(path)
		return fmt.Sprintf(`{"limit":%s,"used":%s,"remaining":%s,"reset":%s}`, h["X-Ratelimit-Limit"], h["X-Ratelimit-Used"],
			h["X-Ratelimit-Remaining"], h["X-Ratelimit-Reset"])
	}
	return format.Answer{Status: http.StatusOK,
		Body: []byte(`{"resources":{"core":` + rate(path) + `,"search":` + rate("/search/") + `},"rate":` + rate(path) + `}`)}
}

// replace handles POST /-/limits. It sets the limits and begins new windows.
func (l *limits) replace(raw []byte) (any, error) {
	in := defaultBounds
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	for name, n := range map[string]int{"limit": in.Limit, "seconds": in.Seconds, "searches": in.Searches, "burst": in.Burst,
		"retry_after": in.RetryAfter} {
		if n < 0 || n > 1e9 {
			return nil, fmt.Errorf("%s must be 0 to 10^9", name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds = in
	l.core, l.search, l.blockedUntil = window{}, window{}, time.Time{}
	return in, nil
}
