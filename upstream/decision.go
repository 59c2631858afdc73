// Decision: what the status and the header of an answer say of upstream.

package upstream

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/spec"
	"understudy/upstream/throttle"
)

// blindWait is how long to wait at a limit of which upstream says that it is reached, and
// not until when. GitHub asks for a minute.
const blindWait = time.Minute

// decision is what an answer says of upstream: FailNone when it is about the request alone.
// wait is how long upstream wants no request; 0: it does not say.
func decision(s *spec.Spec, status int, h http.Header, body []byte, at time.Time) (why understudy.Failure, wait time.Duration) {
	wait = retryAfter(h, at)
	if listed := slices.Contains(s.Limits.Statuses, status); listed || status == http.StatusTooManyRequests {
		a, told := allowance(s, h, at)
		if over := told && a.Remaining == 0; over {
			wait = max(wait, min(a.Reset, maxRetryAfter))
		} else if listed && wait == 0 && !holdsOneOf(body, s.Limits.Words) {
			listed = false
		}
		if listed && wait == 0 {
			wait = blindWait
		}
		if listed || status == http.StatusTooManyRequests {
			return understudy.FailLimited, wait
		}
	}
	switch {
	case s.Auth.Refuses(status):
		return understudy.FailCredential, wait
	case status >= 500:
		return understudy.FailServer, wait
	}
	return understudy.FailNone, wait
}

// noteLimits takes over what an answer says of upstream's limits. When nothing remains the next
// request would be refused: none goes out until the window ends.
func (c *Client) noteLimits(a *answer) {
	s := c.o.Source.Spec
	left, told := allowance(s, a.header, a.at)
	why, _ := decision(s, a.status, a.header, a.body, a.at)
	if told {
		left = a.by.told(left)
	}
	if told && c.budget.Told(left) && why == understudy.FailNone {
		c.breaker.Hold(&understudy.UpstreamError{Why: understudy.FailLimited, RetryAfter: min(left.Reset, maxRetryAfter),
			Err: errors.New("nothing remains of what it takes")})
	}
	if limited := why == understudy.FailLimited; !limited || !told || left.Remaining > 0 {
		c.budget.Crowded(limited, a.at.Add(-a.took))
	}
}

// allowance is what an answer says of the requests that upstream still takes.
func allowance(s *spec.Spec, h http.Header, at time.Time) (throttle.Allowance, bool) {
	return throttle.Fields{Limit: s.Limits.Limit, Remaining: s.Limits.Remaining, Reset: s.Limits.Reset}.Read(h, at)
}

// mostWorded is how much of a body is looked at for words, in bytes.
const mostWorded = 16 << 10

func holdsOneOf(body []byte, words []string) bool {
	text := bytes.ToLower(body[:min(len(body), mostWorded)])
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(text, []byte(w)) })
}
