// Limits: the primary limits of requests an hour, of searches a minute, and the secondary one.

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

// limits count requests. A primary limit is a number in a window that begins
// with a request; searches have one of their own. The secondary limit, when there is one, is
// a number a second, of all.
type limits struct {
	set          bounds
	mu           sync.Mutex
	now          func() time.Time
	core, search window
	second       time.Time // of the secondary limit
	within       int
	until        time.Time // refused so long
}

// bounds are what POST /-/limits sets.
type bounds struct {
	Limit      int `json:"limit"`
	Seconds    int `json:"seconds"`
	Searches   int `json:"searches"`    // in a minute
	Burst      int `json:"burst"`       // requests a second; 0: no secondary limit
	RetryAfter int `json:"retry_after"` // seconds, of a refusal by it
}

// usual are GitHub's own ("Rate limits for the REST API", "REST API endpoints for search").
var usual = bounds{Limit: 5000, Seconds: 3600, Searches: 30}

// window is one primary limit.
type window struct {
	resource string
	limit    int
	lasts    time.Duration
	used     int
	ends     time.Time
}

// of is the window of a path, begun anew when the last one is over. The caller holds mu.
func (l *limits) of(path string) *window {
	w := &l.core
	if w.resource, w.limit, w.lasts = "core", l.set.Limit, time.Duration(l.set.Seconds)*time.Second; strings.HasPrefix(path, "/search/") {
		w = &l.search
		w.resource, w.limit, w.lasts = "search", l.set.Searches, time.Minute
	}
	if now := l.now(); !now.Before(w.ends) {
		w.used, w.ends = 0, now.Add(w.lasts)
	}
	return w
}

// take counts a request; the error is that of a limit that is reached.
func (l *limits) take(path string) *format.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, w := l.now(), l.of(path)
	if l.set.Burst > 0 {
		if now.Sub(l.second) >= time.Second {
			l.second, l.within = now, 0
		}
		l.within++
		if l.within > l.set.Burst && !now.Before(l.until) {
			l.until = now.Add(time.Duration(l.set.RetryAfter) * time.Second)
		}
		if now.Before(l.until) {
			return new(with(refuse(http.StatusForbidden, secondaryText, "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"),
				"Retry-After", strconv.Itoa(int(l.until.Sub(now).Seconds())+1)))
		}
	}
	if w.used >= w.limit {
		return new(refuse(http.StatusForbidden, "API rate limit exceeded for user ID 1000000.",
			"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"))
	}
	w.used++
	return nil
}

// back takes back the last request.
func (l *limits) back(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of(path)
	w.used = max(w.used-1, 0)
}

// header tells the state of the primary limit of a path.
func (l *limits) header(path string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of(path)
	return map[string]string{
		"X-Ratelimit-Limit": strconv.Itoa(w.limit), "X-Ratelimit-Remaining": strconv.Itoa(w.limit - w.used),
		"X-Ratelimit-Used": strconv.Itoa(w.used), "X-Ratelimit-Reset": strconv.FormatInt(w.ends.Unix(), 10),
		"X-Ratelimit-Resource": w.resource,
	}
}

// show is the answer of /rate_limit, which costs nothing.
func (l *limits) show(path string) format.Answer {
	l.back(path)
	rate := func(path string) string {
		h := l.header(path)
		return fmt.Sprintf(`{"limit":%s,"used":%s,"remaining":%s,"reset":%s}`, h["X-Ratelimit-Limit"], h["X-Ratelimit-Used"],
			h["X-Ratelimit-Remaining"], h["X-Ratelimit-Reset"])
	}
	return format.Answer{Status: http.StatusOK,
		Body: []byte(`{"resources":{"core":` + rate(path) + `,"search":` + rate("/search/") + `},"rate":` + rate(path) + `}`)}
}

// replace is POST /-/limits: other limits, and a new window.
func (l *limits) replace(raw []byte) (any, error) {
	in := usual
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
	l.set = in
	l.core, l.search, l.until = window{}, window{}, time.Time{}
	return in, nil
}
