// Limits: the primary limit of requests an hour, and the secondary one.

package github

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"understudy/internal/slowapi/format"
)

const secondaryText = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."

// limits count requests. The primary limit is a number in a window that begins
// with a request; the secondary one, when there is one, a number a second.
type limits struct {
	bounds
	mu     sync.Mutex
	now    func() time.Time
	used   int
	ends   time.Time // of the window
	second time.Time // of the secondary limit
	within int
	until  time.Time // refused so long
}

// bounds are what POST /-/limits sets.
type bounds struct {
	Limit      int `json:"limit"`
	Seconds    int `json:"seconds"`
	Burst      int `json:"burst"`       // requests a second; 0: no secondary limit
	RetryAfter int `json:"retry_after"` // seconds, of a refusal by it
}

// usual are GitHub's own.
var usual = bounds{Limit: 5000, Seconds: 3600}

// window begins a new window when the last is over. The caller holds mu.
func (l *limits) window(now time.Time) {
	if !now.Before(l.ends) {
		l.used, l.ends = 0, now.Add(time.Duration(l.Seconds)*time.Second)
	}
}

// take counts a request; the error is that of a limit that is reached.
func (l *limits) take() *format.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.window(now)
	if l.Burst > 0 {
		if now.Sub(l.second) >= time.Second {
			l.second, l.within = now, 0
		}
		l.within++
		if l.within > l.Burst && !now.Before(l.until) {
			l.until = now.Add(time.Duration(l.RetryAfter) * time.Second)
		}
		if now.Before(l.until) {
			a := with(refuse(http.StatusForbidden, secondaryText, "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"),
				"Retry-After", strconv.Itoa(int(l.until.Sub(now).Seconds())+1))
			return &a
		}
	}
	if l.used >= l.Limit {
		a := refuse(http.StatusForbidden, "API rate limit exceeded for user ID 1000000.",
			"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api")
		return &a
	}
	l.used++
	return nil
}

// back takes back the last request.
func (l *limits) back() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = max(l.used-1, 0)
}

// header tells the state of the primary limit.
func (l *limits) header() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window(l.now())
	return map[string]string{
		"X-Ratelimit-Limit": strconv.Itoa(l.Limit), "X-Ratelimit-Remaining": strconv.Itoa(l.Limit - l.used),
		"X-Ratelimit-Used": strconv.Itoa(l.used), "X-Ratelimit-Reset": strconv.FormatInt(l.ends.Unix(), 10), "X-Ratelimit-Resource": "core",
	}
}

// show is the answer of /rate_limit, which costs nothing.
func (l *limits) show() format.Answer {
	l.back()
	h := l.header()
	rate := fmt.Sprintf(`{"limit":%s,"used":%s,"remaining":%s,"reset":%s}`, h["X-Ratelimit-Limit"], h["X-Ratelimit-Used"],
		h["X-Ratelimit-Remaining"], h["X-Ratelimit-Reset"])
	return format.Answer{Status: http.StatusOK,
		Body: []byte(`{"resources":{"core":` + rate + `,"search":` + rate + `},"rate":` + rate + `}`)}
}

// replace is POST /-/limits: other limits, and a new window.
func (l *limits) replace(raw []byte) (any, error) {
	in := usual
	if err := format.Strict(raw, &in); err != nil {
		return nil, err
	}
	for name, n := range map[string]int{"limit": in.Limit, "seconds": in.Seconds, "burst": in.Burst, "retry_after": in.RetryAfter} {
		if n < 0 || n > 1e9 {
			return nil, fmt.Errorf("%s must be 0 to 10^9", name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds = in
	l.ends, l.until = time.Time{}, time.Time{}
	return in, nil
}
